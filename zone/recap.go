package zone

import (
	"context"
	"fmt"

	"github.com/sledctl/sledctl/host"
)

// SetCap changes the cap in the configuration of a zone from Old to New, which are CPUCaps
// of a Config; Old may be one that no capped-cpu makes. It counts from the zone's next boot
// (zonecfg(8)): one that runs keeps the cap with which it was booted. A zone that has
// another cap than Old is left alone (host.ErrState).
//
// Guess zonecfg-caps-running-zone: zonecfg of a running zone removes and adds capped-cpu, and
// changes nothing of what runs (it refuses zonepath and brand of an installed zone, and no other:
// set_func of usr/src/cmd/zonecfg/zonecfg.c).
// Check: `sledctl instance ensure web1 --cpu-cap 1.5`; `zonecfg -z ZONE remove capped-cpu`;
// `sledctl instance ensure web1`; `prctl -n zone.cpu-cap -i zone ZONE`
type SetCap struct {
	Name     string
	Old, New int
}

// Verb names the step.
func (SetCap) Verb() string { return "zone.set-cap" }

// Undo is the way back; nil to a cap that no capped-cpu makes.
func (s SetCap) Undo() any {
	if s.Old < 0 {
		return nil
	}
	return SetCap{Name: s.Name, Old: s.New, New: s.Old}
}

// Needs is what lists zones.
func (s SetCap) Needs() []string { return []string{"zoneadm"} }

// Explain is the zonecfg; nothing if Do would refuse the values.
func (s SetCap) Explain() []host.Line {
	c, err := setCapCommand(s.Name, s.Old, s.New)
	if err != nil {
		return nil
	}
	return []host.Line{host.CommandLine(c)}
}

// Do changes the cap and reads it back. A zonecfg that fails may have removed the old one,
// which is put back.
func (s SetCap) Do(ctx context.Context, h host.Host) error {
	c, err := setCapCommand(s.Name, s.Old, s.New)
	if err != nil {
		return err
	}
	switch _, found, err := Find(ctx, h, s.Name); {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("zone %s: %w", s.Name, host.ErrNotFound)
	}
	is, err := ReadConfig(h.Files(), s.Name)
	if err != nil {
		return err
	}
	if is.CPUCap != s.Old {
		return fmt.Errorf("zone %s: %s is %s, expected %s: %w", s.Name, CPUCap, capOrNone(is.CPUCap), capOrNone(s.Old), host.ErrState)
	}
	if err := s.change(ctx, h, c); err != nil {
		return cleanUp(ctx, err, func(ctx context.Context) error { return s.takeBack(ctx, h) })
	}
	return nil
}

// change runs the zonecfg and reads back what it should have made.
func (s SetCap) change(ctx context.Context, h host.Host, c host.Command) error {
	r, err := h.Run(ctx, c)
	if err != nil {
		return err
	}
	if err := zonecfgFailure(c, r, s.Name); err != nil {
		return err
	}
	found, err := ReadConfig(h.Files(), s.Name)
	if err != nil {
		return err
	}
	if found.CPUCap != s.New {
		return &MismatchError{Zone: s.Name, Differences: []Difference{{CPUCap, capText(s.New), capText(found.CPUCap)}}}
	}
	return nil
}

// takeBack makes the cap Old again, from whatever it is; one that no capped-cpu makes stays
// away.
func (s SetCap) takeBack(ctx context.Context, h host.Host) error {
	found, err := ReadConfig(h.Files(), s.Name)
	if err != nil || found.CPUCap == s.Old || s.Old < 0 {
		return err
	}
	c, err := setCapCommand(s.Name, found.CPUCap, s.Old)
	if err != nil {
		return err
	}
	return SetCap{Name: s.Name, New: s.Old}.change(ctx, h, c)
}

func capOrNone(hundredths int) string {
	if hundredths == 0 {
		return "none"
	}
	return capText(hundredths)
}

// setCapCommand is one zonecfg process, which removes what is there first.
func setCapCommand(name string, old, wanted int) (host.Command, error) {
	if err := ValidateName(name); err != nil {
		return host.Command{}, err
	}
	if err := validCap(wanted); err != nil {
		return host.Command{}, err
	}
	b := batch{"-z", name}
	b.removeCap(old)
	b.addCap(wanted)
	if len(b) == 2 {
		return host.Command{}, &ValueError{Property: "capped-cpu ncpus", Value: capOrNone(wanted), Reason: "is the same as before"}
	}
	return host.Command{Program: "zonecfg", Args: append(b[:2:2], b[3:]...)}, nil // the first statement has no ";" before it
}

func (b *batch) addCap(hundredths int) {
	if hundredths > 0 {
		b.add("capped-cpu", [2]string{"ncpus", ncpus(hundredths)})
	}
}

// removeCap removes a cap. One that no capped-cpu makes is a resource control, as which
// alone zonecfg removes it (remove_pcap of usr/src/cmd/zonecfg/zonecfg.c).
func (b *batch) removeCap(hundredths int) {
	switch {
	case hundredths < 0:
		b.remove("rctl", "name", CPUCap)
	case hundredths > 0:
		*b = append(*b, ";", "remove", "capped-cpu")
	}
}
