package napi

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// filters say, for each member that lists of NICs are filtered by, whether a record has
// one of the values. A list looks at every record: they allocate nothing.
func filters() map[string]func(n *world.NAPI, r *record, given []string) bool {
	type fits = func(n *world.NAPI, r *record, given []string) bool
	of := func(value func(r *record) string) fits {
		return func(_ *world.NAPI, r *record, given []string) bool { return slices.Contains(given, value(r)) }
	}
	return map[string]fits{
		"owner_uuid":      of(func(r *record) string { return r.OwnerUUID }),
		"belongs_to_uuid": of(func(r *record) string { return r.BelongsToUUID }),
		"belongs_to_type": of(func(r *record) string { return r.BelongsToType }),
		"cn_uuid":         of(func(r *record) string { return r.CNUUID }),
		"network_uuid":    of(func(r *record) string { return r.Network }),
		"state":           of(func(r *record) string { return r.State }),
		"nic_tag": func(n *world.NAPI, r *record, given []string) bool {
			if net := findNetwork(n, r.Network); net != nil && r.Tag == "" {
				return slices.Contains(given, net.Tag)
			}
			return slices.Contains(given, r.Tag)
		},
		"nic_tags_provided": func(_ *world.NAPI, r *record, given []string) bool {
			return slices.ContainsFunc(r.Provided, func(tag string) bool { return slices.Contains(given, tag) })
		},
	}
}

const maxPage = 1000

// query is a list's filters and page.
type query struct {
	filters       []func(*world.NAPI, *record) bool
	limit, offset int
}

// storeSyntax is what the server's store makes of a filter without a value.
func storeSyntax() *fault {
	return &fault{status: http.StatusInternalServerError, Message: "expected '(', but found ')'"}
}

func (c *call) listNICs() (answer, error) {
	q, err := c.query()
	if err != nil {
		return answer{}, err
	}
	list := []printedNIC{}
	err = c.view(c.r.Context(), func(tx *world.Tx, n *world.NAPI) error {
		macs := sortedMACs(n, func(r *record) bool {
			return !slices.ContainsFunc(q.filters, func(fits func(*world.NAPI, *record) bool) bool { return !fits(n, r) })
		})
		macs = macs[min(q.offset, len(macs)):]
		macs = macs[:min(q.limit, len(macs))]
		for _, mac := range macs {
			list = append(list, c.printed(n, mac, n.NICs[mac]))
		}
		if n.Shuffled { // what needs no network is known at once
			slices.SortStableFunc(list, func(a, b printedNIC) int { return strings.Compare(a.Network, b.Network) })
		}
		return nil
	})
	return answer{status: http.StatusOK, body: list}, err
}

// query reads the filters. Which are not known depends on the era: an early
// server ignores them.
func (c *call) query() (query, error) {
	q := query{limit: maxPage}
	loose := !c.era.strict
	if err := c.view(c.r.Context(), func(_ *world.Tx, n *world.NAPI) error { loose = loose || n.Checking == "loose"; return nil }); err != nil {
		return q, err
	}
	if !c.era.paging {
		q.limit = int(^uint(0) >> 1)
	}
	values := c.r.URL.Query()
	known := filters()
	var unknown []string
	var errs []fieldFault
	for _, key := range keysInOrder(c.r.URL.RawQuery) {
		given := strings.Split(strings.Join(values[key], ","), ",")
		switch {
		case malformed(key, values[key]) != "" && c.era.strict:
			errs = append(errs, wrong(key, "%s", malformed(key, values[key])))
		case key == "limit" && c.era.paging && len(values[key]) > 1:
			return q, errGone // the process ends
		case known[key] != nil && (key != "cn_uuid" || c.era.cn):
			uuids := strings.HasSuffix(key, "_uuid")
			if uuids && values.Get(key) == "" {
				return q, storeSyntax()
			}
			if bad := slices.DeleteFunc(slices.Clone(given), isUUID); uuids && len(bad) > 0 {
				errs = append(errs, fieldFault{Field: key, Code: "InvalidParameter", Message: "invalid UUID", Invalid: bad})
			}
			q.filters = append(q.filters, func(n *world.NAPI, r *record) bool { return known[key](n, r, given) })
		case slices.Contains(flags(), key):
			want := values.Get(key)
			if want != "true" && want != "false" {
				errs = append(errs, wrong(key, "must be a boolean value"))
			}
			q.filters = append(q.filters, func(_ *world.NAPI, r *record) bool { return slices.Contains(r.Allowed, key) == (want == "true") })
		case c.era.paging && (key == "limit" || key == "offset"):
			errs = append(errs, q.page(key, values.Get(key))...)
		default:
			unknown = append(unknown, key)
		}
	}
	if len(unknown) > 0 && !loose {
		errs = append(errs, strange(unknown))
	}
	if len(errs) > 0 {
		return q, invalid(errs...)
	}
	return q, nil
}

// malformed says what is wrong with how often a filter is given, or with a value
// that is empty.
func malformed(key string, values []string) string {
	switch {
	case key == "state" && len(values) > 1:
		return "must be a string"
	case key == "state" && values[0] == "":
		return "must not be empty"
	case (key == "belongs_to_type" || strings.HasPrefix(key, "nic_tag")) && strings.Join(values, "") == "":
		return "must be an array of strings"
	}
	return ""
}

// integer reads a number as the server does (jsprim's parseInteger): with a sign,
// and with 0x for those to another base.
func integer(s string) (int, error) {
	digits, negative := strings.CutPrefix(s, "-")
	if !negative {
		digits = strings.TrimPrefix(digits, "+")
	}
	base := 10
	for prefix, other := range map[string]int{"0b": 2, "0o": 8, "0t": 10, "0x": 16} {
		if rest, has := strings.CutPrefix(strings.ToLower(digits), prefix); has {
			digits, base = rest, other
		}
	}
	n, err := strconv.ParseUint(digits, base, 31)
	if negative {
		return -int(n), err
	}
	return int(n), err
}

// page reads limit or offset.
func (q *query) page(key, value string) []fieldFault {
	n, err := integer(value)
	switch {
	case key == "limit" && (err != nil || n < 1 || n > maxPage):
		return []fieldFault{wrong("limit", "invalid limit, must be an integer greater than 0 or less than or equal to 1000")}
	case key == "offset" && (err != nil || n < 0):
		return []fieldFault{wrong("offset", "invalid value, offset must be an integer greater than or equal to 0")}
	case key == "limit":
		q.limit = n
	default:
		q.offset = n
	}
	return nil
}

// keysInOrder are the keys of a query as they stand in it, each once.
func keysInOrder(raw string) []string {
	var keys []string
	for pair := range strings.SplitSeq(raw, "&") {
		key, _, _ := strings.Cut(pair, "=")
		if name, err := url.QueryUnescape(key); err == nil && name != "" && !slices.Contains(keys, name) {
			keys = append(keys, name)
		}
	}
	return keys
}
