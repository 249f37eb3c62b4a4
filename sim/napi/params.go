package napi

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// params are the checked parameters of a NIC. What was not given is not in them.
type params map[string]any

func (p params) text(name string) string { s, _ := p[name].(string); return s }

// readBody reads what must be a JSON object.
func (c *call) readBody() (map[string]any, error) {
	var body any
	if err := c.given(&body); err != nil {
		return nil, err
	}
	object, ok := body.(map[string]any)
	if !ok {
		return nil, invalid(wrong("parameters", "Parameters must be objects"))
	}
	return object, nil
}

// given reads the body. The message is close to that of node.js about such a text.
func (c *call) given(to any) error {
	body := c.body
	if len(body) == 0 { // is no parameter
		body = []byte("{}")
	}
	err := json.Unmarshal(body, to)
	if err == nil {
		return nil
	}
	complaint := "Unexpected end of JSON input"
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok && !strings.Contains(err.Error(), "unexpected end") {
		complaint = unexpected(string(body), int(syntax.Offset)-1, err)
	}
	return &fault{status: http.StatusBadRequest, Code: "InvalidContent", Message: "Invalid JSON: " + complaint}
}

// unexpected is the message of node.js for a character that cannot stand where it does,
// with ten characters of the text on either side.
func unexpected(text string, at int, err error) string {
	if strings.Contains(err.Error(), "object key") {
		return fmt.Sprintf("Expected property name or '}' in JSON at position %d", at)
	}
	const around = 10
	before, after := "", ""
	from, to := max(0, at-around), min(len(text), at+around)
	switch {
	case len(text) <= 2*around:
		from, to = 0, len(text)
	case from > 0:
		before = "..."
		fallthrough
	default:
		if to < len(text) {
			after = "..."
		}
	}
	return fmt.Sprintf(`Unexpected token '%c', %s"%s"%s is not valid JSON`, text[at], before, text[from:to], after)
}

// nicParams checks the parameters of a NIC, each by itself. Others are dropped,
// but where the checking is strict.
func nicParams(n *world.NAPI, body map[string]any) (params, []fieldFault) {
	p := params{}
	var errs []fieldFault
	var unknown []string
	for _, name := range sortedKeys(body) {
		check, known := nicChecks()[name]
		if !known {
			unknown = append(unknown, name)
			continue
		}
		value, problem := check(n, name, body[name])
		if problem != nil {
			errs = append(errs, *problem)
			continue
		}
		p[name] = value
	}
	if n.Checking == "strict" && len(unknown) > 0 {
		errs = append(errs, strange(unknown))
	}
	return p, errs
}

type check func(n *world.NAPI, name string, value any) (any, *fieldFault)

func nicChecks() map[string]check {
	all := map[string]check{
		"belongs_to_type": oneOf("other", "server", "zone"), "state": oneOf("provisioning", "stopped", "running"),
		"belongs_to_uuid": checkUUID, "owner_uuid": checkUUID, "cn_uuid": checkUUID, "network_uuid": checkNetwork,
		"primary": checkFlag, "reserved": checkFlag, "check_owner": checkFlag,
		"ip": checkIP, "mac": checkMAC, "model": checkText, "nic_tag": checkTag, "nic_tags_provided": checkTags, "vlan_id": checkVLAN,
	}
	for _, flag := range flags() {
		all[flag] = checkFlag
	}
	return all
}

func bad(name, format string, args ...any) (any, *fieldFault) {
	f := wrong(name, format, args...)
	return nil, &f
}

func oneOf(words ...string) check {
	return func(_ *world.NAPI, name string, value any) (any, *fieldFault) {
		if s, ok := value.(string); ok && slices.Contains(words, s) {
			return s, nil
		}
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = strconv.Quote(w)
		}
		return bad(name, "must be one of: %s", strings.Join(quoted, ", "))
	}
}

func checkUUID(_ *world.NAPI, name string, value any) (any, *fieldFault) {
	if s, ok := value.(string); ok && isUUID(s) {
		return s, nil
	}
	return bad(name, "invalid UUID")
}

func checkNetwork(n *world.NAPI, name string, value any) (any, *fieldFault) {
	s, _ := value.(string)
	net := findNetwork(n, s)
	switch {
	case net == nil && isUUID(s):
		return bad(name, "network does not exist")
	case net == nil:
		return bad(name, "invalid UUID")
	}
	return net.UUID, nil
}

func checkFlag(_ *world.NAPI, name string, value any) (any, *fieldFault) {
	switch value {
	case true, "true":
		return true, nil
	case false, "false":
		return false, nil
	}
	return bad(name, "must be a boolean value")
}

func checkText(_ *world.NAPI, name string, value any) (any, *fieldFault) {
	if s, ok := value.(string); ok {
		return s, nil
	}
	return bad(name, "must be a string")
}

func checkIP(_ *world.NAPI, name string, value any) (any, *fieldFault) {
	s, _ := value.(string)
	a, err := netip.ParseAddr(s)
	switch {
	case err != nil:
		return bad(name, "invalid IP address")
	case !a.Is4():
		return bad(name, "Invalid parameters") // so it says
	}
	return a.String(), nil
}

func checkMAC(_ *world.NAPI, name string, value any) (any, *fieldFault) {
	s, _ := value.(string)
	if mac, ok := parseMAC(s); ok {
		return mac, nil
	}
	return bad(name, "invalid MAC address")
}

func hasTag(n *world.NAPI, name string) bool {
	name, _, _ = strings.Cut(name, "/")
	return slices.ContainsFunc(n.Tags, func(t *world.NAPITag) bool { return t.Name == name })
}

func checkTag(n *world.NAPI, name string, value any) (any, *fieldFault) {
	s, ok := value.(string)
	switch {
	case !ok:
		return bad(name, "must be a string")
	case !hasTag(n, s):
		return bad(name, "nic tag does not exist")
	}
	return s, nil
}

func checkTags(n *world.NAPI, name string, value any) (any, *fieldFault) {
	list, ok := value.([]any)
	var tags, unknown []string
	for _, e := range list {
		s, _ := e.(string)
		if !hasTag(n, s) {
			unknown = append(unknown, s)
		}
		tags = append(tags, s)
	}
	if !ok || len(unknown) > 0 {
		f := wrong(name, "nic tag does not exist")
		f.Invalid = unknown
		return nil, &f
	}
	return tags, nil
}

// checkVLAN takes 1 in spite of what it says (NAPI-364).
func checkVLAN(_ *world.NAPI, name string, value any) (any, *fieldFault) {
	n, ok := value.(float64)
	if s, isText := value.(string); isText {
		var err error
		n, err = strconv.ParseFloat(s, 64)
		ok = err == nil
	}
	if !ok || n != math.Trunc(n) || n < 0 || n > 4094 {
		return bad(name, "VLAN ID must be a number between 0 and 4094, and not 1")
	}
	return int(n), nil
}
