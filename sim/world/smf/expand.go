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
	service, instance := r.Lookup(fmri)
	if instance == nil {
		return MethodCall{}, fmt.Errorf("%s: no such instance", fmri)
	}
	snapshot := service.Snapshot(instance)
	script, err := expand(m.Exec, service.Name, instance.Name, snapshot)
	if err != nil {
		return MethodCall{}, fmt.Errorf("%s method: %w", name, err)
	}
	env := map[string]string{
		"PATH": "/usr/sbin:/usr/bin", "SMF_FMRI": fmri, "SMF_METHOD": name,
		"SMF_RESTARTER": RestarterFMRI, "SMF_ZONENAME": zone,
	}
	for _, group := range []string{"method_context", name} { // the method's own context wins
		if p := snapshot.Find(group).Property("environment"); p != nil {
			for _, pair := range p.Values {
				key, value, _ := strings.Cut(pair, "=")
				env[key] = value
			}
		}
	}
	return MethodCall{Zone: zone, FMRI: fmri, Name: name, Script: script, Env: env}, nil
}

// expand replaces the method tokens of smf_method(7): %%, %r, %s, %i, %f and
// %{group/property[:,]}.
func expand(exec, service, instance string, snapshot scf.Groups) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(exec, "%")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		if rest == "" {
			return "", fmt.Errorf("%q ends with a %%", exec)
		}
		token := rest[0]
		exec = rest[1:]
		switch token {
		case '%':
			out.WriteByte('%')
		case 'r':
			out.WriteString("svc.startd")
		case 's':
			out.WriteString(service)
		case 'i':
			out.WriteString(instance)
		case 'f':
			out.WriteString("svc:/" + service + ":" + instance)
		case '{':
			name, after, closed := strings.Cut(exec, "}")
			if !closed {
				return "", fmt.Errorf("%%{%s has no closing brace", name)
			}
			values, err := expandProperty(name, snapshot)
			if err != nil {
				return "", err
			}
			out.WriteString(values)
			exec = after
		default:
			return "", fmt.Errorf("unknown method token %%%c", token)
		}
	}
}

func expandProperty(token string, snapshot scf.Groups) (string, error) {
	separator := " "
	name, option, has := strings.Cut(token, ":")
	if has {
		separator = option
	}
	group, property, ok := strings.Cut(name, "/")
	if !ok {
		group, property = "application", name
	}
	p := snapshot.Find(group).Property(property)
	if p == nil {
		return "", fmt.Errorf("expansion of %%{%s}: no such property", token)
	}
	quoted := make([]string, len(p.Values))
	for i, v := range p.Values {
		quoted[i] = escapeMethod(v)
	}
	return strings.Join(quoted, separator), nil
}

// escapeMethod puts a backslash before what a shell would not take as it is.
func escapeMethod(value string) string {
	var out strings.Builder
	for _, r := range value {
		if strings.ContainsRune(";&()|^<>\n \t\\\"'`", r) {
			out.WriteByte('\\')
		}
		out.WriteRune(r)
	}
	return out.String()
}
