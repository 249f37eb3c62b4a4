package zone

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sledctl/sledctl/host"
)

// Reconfigure changes the resources of a zone that is configured as Old, and does not
// run, into those of New: it counts from the next boot (zonecfg of an installed zone
// refuses a change of zonepath and brand, and no other: set_func of
// usr/src/cmd/zonecfg/zonecfg.c). What is not a resource must be the same in both.
// A zone that is not as Old is left alone (host.ErrState).
type Reconfigure struct {
	Name     string
	Old, New Config
}

// Verb names the step.
func (Reconfigure) Verb() string { return "zone.reconfigure" }

// Undo is the way back.
func (s Reconfigure) Undo() any { return Reconfigure{Name: s.Name, Old: s.New, New: s.Old} }

// Needs is what lists zones.
func (s Reconfigure) Needs() []string { return []string{"zoneadm"} }

// Explain is the zonecfg; nothing if Do would refuse the values.
func (s Reconfigure) Explain() []host.Line {
	c, err := reconfigureCommand(s.Name, s.Old, s.New)
	if err != nil {
		return nil
	}
	return []host.Line{host.CommandLine(c)}
}

// Do changes the configuration and reads it back. A zonecfg that fails may have written
// a part of it, which is taken back.
func (s Reconfigure) Do(ctx context.Context, h host.Host) error {
	c, err := reconfigureCommand(s.Name, s.Old, s.New)
	if err != nil {
		return err
	}
	switch z, found, err := Find(ctx, h, s.Name); {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("zone %s: %w", s.Name, host.ErrNotFound)
	case z.State != Installed:
		return &StateError{Zone: s.Name, State: z.State, Wanted: []State{Installed}}
	}
	if err := s.is(h.Files(), s.Old); err != nil {
		if wrong, ok := errors.AsType[*MismatchError](err); ok {
			d := wrong.Differences[0]
			return fmt.Errorf("zone %s: %s is %s, expected %s: %w", s.Name, d.Property, cmp.Or(d.Found, "absent"), cmp.Or(d.Wanted, "absent"), host.ErrState)
		}
		return err
	}
	r, err := h.Run(ctx, c)
	if err != nil {
		return err
	}
	if err = zonecfgFailure(c, r, s.Name); err == nil {
		err = s.is(h.Files(), s.New)
	}
	if err == nil {
		return nil
	}
	return cleanUp(ctx, err, func(ctx context.Context) error { return s.takeBack(ctx, h) })
}

// takeBack makes the zone as Old again, from whatever it is.
func (s Reconfigure) takeBack(ctx context.Context, h host.Host) error {
	found, err := ReadConfig(h.Files(), s.Name)
	if err != nil || len(Compare(s.Old, found)) == 0 {
		return err
	}
	c, err := reconfigureCommand(s.Name, found, s.Old)
	if err != nil {
		return err
	}
	r, err := h.Run(ctx, c)
	if err == nil {
		err = zonecfgFailure(c, r, s.Name)
	}
	if err == nil {
		err = s.is(h.Files(), s.Old)
	}
	return err
}

// is fails unless the zone is configured like that.
func (s Reconfigure) is(f host.Files, wanted Config) error {
	found, err := ReadConfig(f, s.Name)
	if err != nil {
		return err
	}
	if d := Compare(wanted, found); len(d) > 0 {
		return &MismatchError{Zone: s.Name, Differences: d}
	}
	return nil
}

// reconfigureCommand is one zonecfg process. The new attrs come first, and the old ones
// go after them: at any time one says whose the zone is. All else is removed and added, so
// that the resources stand in the order in which configureCommand writes them.
func reconfigureCommand(name string, old, wanted Config) (host.Command, error) {
	if err := ValidateName(name); err != nil {
		return host.Command{}, err
	}
	if err := wanted.Validate(); err != nil {
		return host.Command{}, err
	}
	if d := Compare(resourceless(wanted), resourceless(old)); len(d) > 0 {
		return host.Command{}, &ValueError{Property: d[0].Property, Value: d[0].Wanted, Reason: "cannot be changed once the zone exists"}
	}
	b := batch{"-z", name}
	for _, a := range lacking(wanted.Attrs, old.Attrs) {
		b.add("attr", [2]string{"name", a.Name}, [2]string{"type", a.Type}, [2]string{"value", a.Value})
	}
	for _, a := range lacking(old.Attrs, wanted.Attrs) {
		b.remove("attr", "name", a.Name)
	}
	for _, f := range old.FS {
		b.remove("fs", "dir", f.Dir)
	}
	for _, n := range old.Nets {
		b.remove("net", "physical", n.Physical)
	}
	for _, d := range old.Devices {
		b.remove("device", "match", d)
	}
	b.addResources(wanted)
	if len(b) > 2 {
		b = slices.Delete(b, 2, 3) // the first statement has no ";" before it
	}
	return host.Command{Program: "zonecfg", Args: b}, nil
}

// resourceless is what of a configuration a Reconfigure does not change.
func resourceless(c Config) Config {
	c.Attrs, c.FS, c.Nets, c.Devices = nil, nil, nil, nil
	return c
}

// lacking are the attrs that others lack.
func lacking(all, others []Attr) []Attr {
	return slices.DeleteFunc(slices.Clone(all), func(a Attr) bool { return slices.Contains(others, a) })
}

// remove is the statement that removes the resource with this property.
func (b *batch) remove(resource, property, value string) {
	*b = append(*b, ";", "remove", resource, property+"="+quote(value))
}
