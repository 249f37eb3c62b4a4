package smf

import (
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/scf"
)

// methodCall prepares a method: tokens of its exec expanded, and its context's
// environment (smf_method(7)).
func methodCall(tx *world.Tx, zone, fmri, name string, m world.Method) (MethodCall, error) {
	r, err := ReadRepository(tx, zone)
	if err != nil {
		return MethodCall{}, err
	}
	e, ok := r.Lookup(fmri)
	if !ok {
		return MethodCall{}, fmt.Errorf("%s: no such instance", fmri)
	}
	snapshot := e.Service.Snapshot(e.Instance)
	script, err := expand(m.Exec, snapshot)
	if err != nil {
		return MethodCall{}, fmt.Errorf("%s method: %w", name, err)
	}
	env := map[string]string{
		"PATH": "/usr/sbin:/usr/bin", "SMF_FMRI": fmri, "SMF_METHOD": name,
		"SMF_RESTARTER": RestarterFMRI, "SMF_ZONENAME": zone,
	}
	if p := snapshot.Find("method_context").Property("environment"); p != nil {
		for _, pair := range p.Values {
			key, value, _ := strings.Cut(pair, "=")
			env[key] = value
		}
	}
	return MethodCall{Zone: zone, FMRI: fmri, Name: name, Script: script, Env: env}, nil
}

// expand replaces %{group/property}, of the method tokens of smf_method(7) the one
// that sledctl's manifests have.
func expand(exec string, snapshot scf.Groups) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(exec, "%")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}")
		group, property, _ := strings.Cut(strings.TrimPrefix(name, "{"), "/")
		p := snapshot.Find(group).Property(property)
		if !closed || p == nil || !strings.HasPrefix(name, "{") {
			return "", fmt.Errorf("not simulated: what %%%s is in a method", rest)
		}
		for i, v := range p.Values {
			out.WriteString(map[bool]string{true: " "}[i > 0] + Escape(v))
		}
		exec = after
	}
}

// Escape puts a backslash before what a shell would not take as it is.
func Escape(value string) string {
	var out strings.Builder
	for _, r := range value {
		if strings.ContainsRune(";&()|^<>\n \t\\\"'`", r) {
			out.WriteByte('\\')
		}
		out.WriteRune(r)
	}
	return out.String()
}
