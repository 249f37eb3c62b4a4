package reap

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host/fault"
)

// Choice is what the operator lets a reap remove. The zero value: all that
// should not be there.
type Choice struct {
	// All removes everything that is certainly ours, needed or not, running or
	// not, as the sled agent of 2021 did when it started. What is being worked on,
	// is protected, or is the sled's own network stays; so does what is unknown.
	All     bool
	Include []Pattern // if any: only what one of them fits
	Exclude []Pattern // never what one of them fits
	// Plan, if not nil: only these objects, if they are still the same.
	Plan []Object
	// Basis is the ledger by which the plan was made; nil: that is not known.
	Basis *Basis
}

// takes says whether a judged object goes.
func (f *Findings) takes(o Object) bool {
	if f.choice.Plan != nil && !f.plans(o.key(), o.Identity) && !f.plansWhole(o) && !f.continues(o) {
		return false
	}
	return f.choice.wants(o) && f.choice.lets(o)
}

// plans says whether the saved plan names this very object.
func (f *Findings) plans(key, identity string) bool {
	p, planned := f.planned[key]
	return planned && p.Identity == identity
}

// plansWhole says whether a record goes with a saved plan that does not name it:
// the plan names what it was of. That is gone, and the process that removed it did not live
// to say so.
func (f *Findings) plansWhole(o Object) bool {
	for key, identity := range o.about {
		if p, planned := f.planned[key]; planned && (identity == "" || p.Identity == identity) {
			return true
		}
	}
	return false
}

// begins notes which zones of the saved plan a reap that died was removing.
func (f *Findings) begins(died []operation.OpenIntent) {
	f.begun = map[string]bool{}
	for _, run := range died {
		for _, o := range run.Removes {
			if run.Subject == subject && o.Kind == KindZone && f.plans(o.Kind+" "+o.Name, o.Identity) {
				f.begun[o.Name] = true
			}
		}
	}
}

// continues says whether an object is what is left of a zone that the saved plan
// names and whose removal was begun: a zone that is uninstalled has no uuid any
// more, and its dataset and the snapshots of its clone may outlive it.
func (f *Findings) continues(o Object) bool {
	switch o.Kind {
	case KindZone:
		return f.begun[o.Name]
	case KindDataset, KindDirectory:
		return f.begun[path.Base(o.Name)]
	case KindSnapshot:
		_, snapshot, _ := strings.Cut(o.Name, "@")
		zone, ok := cloneOf(snapshot)
		return ok && f.begun[zone]
	}
	return false
}

// wants says whether the object would go if nothing was left out.
func (c Choice) wants(o Object) bool {
	switch {
	case o.Kind == KindRecord:
		return o.Verdict == StaleRec && !o.final
	case o.Verdict == Unknown:
		return false
	case o.Verdict.Removed():
		return true
	case o.rests && !o.final && c.names(o):
		return true
	}
	return c.All && !o.final
}

// names says whether the operator has named this very object, with no star.
func (c Choice) names(o Object) bool {
	return slices.Contains(c.Include, Pattern{Kind: o.Kind, Name: o.Name})
}

func (c Choice) lets(o Object) bool {
	fits := func(p Pattern) bool { return p.Fits(o) }
	return (len(c.Include) == 0 || slices.ContainsFunc(c.Include, fits)) && !slices.ContainsFunc(c.Exclude, fits)
}

// Pattern fits objects by kind and name: KIND, or KIND/NAME, where a * stands
// for any characters, the slashes of datasets and paths too.
type Pattern struct{ Kind, Name string }

// PatternError is a pattern that can fit nothing.
type PatternError struct{ Pattern, Of string }

// Error names the kinds.
func (e *PatternError) Error() string {
	return fmt.Sprintf("pattern %q: %q is no kind of object: want one of %s, or *", e.Pattern, e.Of, strings.Join(Kinds(), ", "))
}

func (*PatternError) Kind() fault.Kind { return fault.Failed }

// ParsePattern reads KIND or KIND/NAME. The error is a *PatternError.
func ParsePattern(s string) (Pattern, error) {
	kind, name, named := strings.Cut(s, "/")
	if !named {
		name = "*"
	}
	if kind != "*" && !slices.Contains(Kinds(), kind) {
		return Pattern{}, &PatternError{Pattern: s, Of: kind}
	}
	return Pattern{Kind: kind, Name: name}, nil
}

// Fits says whether an object is meant.
func (p Pattern) Fits(o Object) bool {
	return (p.Kind == "*" || p.Kind == o.Kind) && fits(p.Name, o.Name)
}

// fits matches * against any characters, each as few as possible: what stands
// between two stars is found where it first occurs.
func fits(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	last := len(parts) - 1
	name, ok := strings.CutPrefix(name, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1:last] {
		at := strings.Index(name, part)
		if at < 0 {
			return false
		}
		name = name[at+len(part):]
	}
	return strings.HasSuffix(name, parts[last])
}

// Change is an object of a saved plan that is not as it was when the plan was
// made.
type Change struct {
	Object
	Now string // what is there instead
}

// changes compares the saved plan with what was judged now.
func (f *Findings) changes() []Change {
	now := make(map[string]Object, len(f.Objects))
	for _, o := range f.Objects {
		now[o.key()] = o
	}
	var changed []Change
	for _, p := range f.choice.Plan {
		switch o, there := now[p.Kind+" "+p.Name]; {
		case !there:
			changed = append(changed, Change{p, "no longer exists, or goes with another object"})
		case o.Removed:
		case o.Identity != p.Identity:
			changed = append(changed, Change{p, fmt.Sprintf("is another one: %s, and the plan has %s", orNone(o.Identity), orNone(p.Identity))})
		case !o.Removed && !f.choice.lets(o):
			continue // left out by the operator
		case !o.Removed:
			changed = append(changed, Change{p, fmt.Sprintf("is %s now: %s", o.Verdict, o.Reason)})
		}
	}
	return changed
}

func orNone(identity string) string {
	if identity == "" {
		return "none"
	}
	return identity
}
