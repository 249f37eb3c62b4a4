package napi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// mac is the address in the path.
func (c *call) mac() (string, error) {
	mac, ok := parseMAC(c.params["mac"])
	if !ok || c.era.bareMACs && len(c.params["mac"]) != 12 {
		return "", invalid(wrong("mac", "invalid MAC address"))
	}
	return mac, nil
}

// find is the record of an address.
func find(n *world.NAPI, mac string) (*record, error) {
	if r := n.NICs[mac]; r != nil {
		return r, nil
	}
	return nil, notFound("nic not found")
}

func (c *call) one(n *world.NAPI, mac string, r *record) answer {
	a := answer{status: http.StatusOK, body: c.printed(n, mac, r)}
	if c.era.etag {
		a.etag = r.Etag
	}
	return a
}

func (c *call) getNIC() (a answer, err error) {
	mac, err := c.mac()
	if err != nil {
		return a, err
	}
	err = c.view(c.r.Context(), func(_ *world.Tx, n *world.NAPI) error {
		r, err := find(n, mac)
		if err != nil {
			return err
		}
		a = c.one(n, mac, r)
		return c.precondition(r.Etag, &a)
	})
	return a, err
}

// precondition compares the request's tags with that of the record, which may be
// quoted, marked as weak, several, or all.
func (c *call) precondition(etag string, a *answer) error {
	if !c.era.etag {
		return nil
	}
	has := func(header string) bool {
		return slices.ContainsFunc(strings.Split(header, ","), func(tag string) bool {
			tag = strings.Trim(strings.TrimPrefix(strings.TrimSpace(tag), "W/"), `"`)
			return tag == "*" || tag == etag
		})
	}
	if given := c.r.Header.Get("If-Match"); given != "" && !has(given) {
		return &fault{status: http.StatusPreconditionFailed, Code: "PreconditionFailed", Message: fmt.Sprintf("if-match '%s' didn't match etag '%s'", given, etag)}
	}
	if given := c.r.Header.Get("If-None-Match"); given != "" && has(given) {
		if c.r.Method == http.MethodGet || c.r.Method == http.MethodHead {
			*a = answer{status: http.StatusNotModified}
			return nil
		}
		return &fault{status: http.StatusPreconditionFailed, Code: "PreconditionFailed", Message: fmt.Sprintf("if-none-match '%s' matched etag '%s'", given, etag)}
	}
	return nil
}

// checked reads the record that is to be written, and its precondition, before
// the write itself: in between, others may write.
func (c *call) checked(mac string) (etag string, err error) {
	err = c.view(c.r.Context(), func(_ *world.Tx, n *world.NAPI) error {
		r, err := find(n, mac)
		if err != nil {
			return err
		}
		etag = r.Etag
		return c.precondition(etag, &answer{})
	})
	if err != nil {
		return etag, err
	}
	return etag, c.race(mac)
}

// race is what somebody else does meanwhile.
func (c *call) race(mac string) error {
	if armed, err := c.world.FaultsArmed(c.r.Context()); err != nil || !armed {
		return err
	}
	return c.update(c.r.Context(), func(tx *world.Tx, n *world.NAPI) error {
		if r := n.NICs[mac]; r != nil && tx.TakeFault(words(c.r), world.FaultNAPIRace) != nil {
			stamp(tx, r)
		}
		return nil
	})
}

// noMAC is an address that is none: the server draws one, as where none is given.
const noMAC = "00:00:00:00:00:00"

func (c *call) createNIC() (a answer, err error) {
	body, err := c.readBody()
	if err != nil {
		return a, err
	}
	if id := c.params["network"]; id != "" {
		body["network_uuid"] = id
	}
	err = c.update(c.r.Context(), func(tx *world.Tx, n *world.NAPI) error {
		p, errs := nicParams(n, body)
		for _, name := range []string{"belongs_to_type", "belongs_to_uuid", "owner_uuid"} {
			if _, given := body[name]; !given {
				errs = append(errs, missing(name, "Missing parameter"))
			}
		}
		mac := p.text("mac")
		if _, taken := n.NICs[mac]; taken {
			errs = append(errs, fieldFault{Field: "mac", Code: "Duplicate", Message: "Already exists"})
		}
		r := &record{State: "provisioning", Created: tx.Now}
		if len(errs) == 0 {
			errs = place(tx, n, r, p)
		}
		if len(errs) > 0 {
			return refuse(errs)
		}
		if mac == "" || mac == noMAC {
			d := tx.Draw("napi mac")
			mac = fmt.Sprintf("90:b8:d0:%02x:%02x:%02x", byte(d), byte(d>>8), byte(d>>16)) // Triton's own
		}
		stamp(tx, r)
		n.NICs[mac] = r
		a = c.one(n, mac, r)
		return nil
	})
	return a, err
}

// codeFull is a network without a free address.
const codeFull = "SubnetFull"

// refuse tells all that is wrong with the parameters, by their names. That a
// network is full is no fault of theirs.
func refuse(errs []fieldFault) error {
	if errs[0].Code == codeFull {
		return &fault{status: http.StatusInsufficientStorage, Code: codeFull, Message: "no more free IPs", Network: errs[0].Field.(string)}
	}
	slices.SortStableFunc(errs, func(a, b fieldFault) int { return strings.Compare(fmt.Sprint(a.Field), fmt.Sprint(b.Field)) })
	return invalid(errs...)
}

func (c *call) updateNIC() (a answer, err error) {
	mac, err := c.mac()
	if err != nil {
		return a, err
	}
	body, err := c.readBody()
	if err != nil {
		return a, err
	}
	delete(body, "mac") // the path wins
	etag, err := c.checked(mac)
	if err != nil {
		return a, err
	}
	err = c.update(c.r.Context(), func(tx *world.Tx, n *world.NAPI) error {
		r, err := find(n, mac)
		if err != nil {
			return err
		}
		if r.Etag != etag { // the loser is told by the store, not by the API
			return &fault{status: http.StatusInternalServerError, Message: fmt.Sprintf("napi_nics::%d has etag '%s'", number(mac), r.Etag)}
		}
		p, errs := nicParams(n, body)
		changed := *r
		if len(errs) == 0 {
			errs = place(tx, n, &changed, p)
		}
		if len(errs) > 0 {
			return refuse(errs)
		}
		stamp(tx, &changed)
		*r = changed
		a = c.one(n, mac, r)
		return nil
	})
	return a, err
}

func (c *call) deleteNIC() (a answer, err error) {
	mac, err := c.mac()
	if err != nil {
		return a, err
	}
	if _, err := c.checked(mac); err != nil {
		return a, err
	}
	err = c.update(c.r.Context(), func(tx *world.Tx, n *world.NAPI) error {
		r, err := find(n, mac)
		if err == nil {
			err = c.precondition(r.Etag, &a) // once more, with the removal (TRITON-386)
		}
		if err != nil {
			return err
		}
		delete(n.NICs, mac)
		release(tx, n, r)
		return nil
	})
	return answer{status: http.StatusNoContent}, err
}
