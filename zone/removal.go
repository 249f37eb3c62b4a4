package zone

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sledctl/sledctl/host"
)

// The steps that take a zone down. They are done when listings say so: a zone
// that is halted or uninstalled already is what was wanted; one that does not
// exist is host.ErrNotFound.

// Removal is the steps that remove a zone found like this, in order. It is
// decided by the state, because each state allows only its own command
// (sanity_check of usr/src/cmd/zoneadm/zoneadm.c). For a state that is not
// known it is the shortest way, which zoneadm refuses if it is wrong. There is
// no removal of the global zone.
func Removal(z Zone) []any {
	if z.Name == Global {
		return nil
	}
	uninstall, remove := Uninstall{Name: z.Name}, Delete{Name: z.Name}
	switch z.State {
	case Configured:
		return []any{remove}
	case Incomplete:
		return []any{Discard{Name: z.Name}}
	case Ready, Running, ShuttingDown, Down:
		return []any{Halt{Name: z.Name}, uninstall, remove}
	case Mounted:
		return []any{Unmount{Name: z.Name}, uninstall, remove}
	}
	return []any{uninstall, remove}
}

// Halt stops a zone without its shutdown scripts: afterwards it is installed
// and its links are back in the global zone. While the zone is going down, halt
// is repeated until the context ends.
type Halt struct{ Name string }

// Unmount ends the scratch zone of a zone that is mounted.
type Unmount struct{ Name string }

// Uninstall removes what an install or a clone made; the zone stays configured.
// The omicron1 brand leaves the zonepath's dataset.
type Uninstall struct{ Name string }

// Delete removes a zone's configuration, and nothing that lies on disk.
type Delete struct{ Name string }

// Discard removes an incomplete zone: it is uninstalled, and deleted in any
// case. Brands' hooks cannot always uninstall what is half made (that of sparse
// wants to find one boot environment: omniosorg/pkg5 src/brand/sparse/uninstall),
// and such a zone would be in the way forever. Its dataset may then be left.
type Discard struct{ Name string }

// Verb names the step.
func (Halt) Verb() string { return "zone.halt" }

// Limit is several times what a zone under load took.
func (Halt) Limit() (most time.Duration, waits bool) { return 3 * time.Minute, false }

// Verb names the step.
func (Unmount) Verb() string { return "zone.unmount" }

// Verb names the step.
func (Uninstall) Verb() string { return "zone.uninstall" }

// Limit is that of what removes a file system.
func (Uninstall) Limit() (most time.Duration, waits bool) { return 5 * time.Minute, false }

// Verb names the step.
func (Delete) Verb() string { return "zone.delete" }

// Verb names the step.
func (Discard) Verb() string { return "zone.discard" }

// Limit is that of what removes a file system.
func (Discard) Limit() (most time.Duration, waits bool) { return 5 * time.Minute, false }

// Undo is nil.
func (Halt) Undo() any { return nil }

// Undo is nil.
func (Unmount) Undo() any { return nil }

// Undo is nil.
func (Uninstall) Undo() any { return nil }

// Undo is nil.
func (Delete) Undo() any { return nil }

// Undo is nil.
func (Discard) Undo() any { return nil }

// Explain is the zoneadm halt.
func (s Halt) Explain() []host.Line { return []host.Line{host.CommandLine(haltCommand(s.Name))} }

// Explain is the zoneadm unmount.
func (s Unmount) Explain() []host.Line { return []host.Line{host.CommandLine(unmountCommand(s.Name))} }

// Explain is the zoneadm uninstall.
func (s Uninstall) Explain() []host.Line {
	return []host.Line{host.CommandLine(uninstallCommand(s.Name))}
}

// Needs is what lists zones.
func (s Delete) Needs() []string { return []string{"zoneadm"} }

// Explain is the zonecfg delete.
func (s Delete) Explain() []host.Line { return []host.Line{host.CommandLine(deleteCommand(s.Name))} }

// Explain is the zoneadm uninstall and the zonecfg delete.
func (s Discard) Explain() []host.Line {
	return append(Uninstall(s).Explain(), Delete(s).Explain()...)
}

// haltPause is the longest time between two halts of a zone that does not go down.
const haltPause = 800 * time.Millisecond

// Do halts the zone. A halt may fail although the zone is gone (its brand's last
// hook failed) and may leave it shutting_down or down (something in the global
// zone holds a link or a file system): zone_halt of zoneadmd.c.
func (s Halt) Do(ctx context.Context, h host.Host) error {
	if err := ValidateName(s.Name); err != nil {
		return err
	}
	for wait := newBackOff(haltPause); ; {
		err := run(ctx, h, haltCommand(s.Name), s.Name)
		if err != nil && !isCommandError(err) {
			return err
		}
		stopped := inState(ctx, h, s.Name, Installed)
		if stopped == nil {
			return nil
		}
		if !errors.Is(stopped, host.ErrTransient) && ctx.Err() == nil {
			return firstOf(err, stopped)
		}
		if wait.pause(ctx); ctx.Err() != nil {
			return fmt.Errorf("%w: %w", firstOf(err, stopped), context.Cause(ctx))
		}
	}
}

// Do unmounts the zone.
func (s Unmount) Do(ctx context.Context, h host.Host) error {
	if err := ValidateName(s.Name); err != nil {
		return err
	}
	err := run(ctx, h, unmountCommand(s.Name), s.Name)
	if err != nil && !isCommandError(err) {
		return err
	}
	if left := inState(ctx, h, s.Name, Installed, Incomplete); left != nil {
		return firstOf(err, left)
	}
	return nil
}

// Do uninstalls the zone. If the brand's hook fails, the zone is incomplete; one
// more try often gets further, because the hook starts again. The error then
// holds what the hook said.
//
// Guess second-uninstall-gets-further: a brand's hook that failed to uninstall gets further the
// second time.
// Check: `zoneadm -z ZONE uninstall -F` on a zone that was left incomplete, twice
func (s Uninstall) Do(ctx context.Context, h host.Host) error {
	if err := ValidateName(s.Name); err != nil {
		return err
	}
	for again := true; ; again = false {
		err := run(ctx, h, uninstallCommand(s.Name), s.Name)
		if err != nil && !isCommandError(err) {
			return err
		}
		left := inState(ctx, h, s.Name, Configured)
		if left == nil {
			return nil
		}
		e, _ := errors.AsType[*StateError](left)
		if !again || err == nil || e == nil || e.State != Incomplete {
			return firstOf(err, left)
		}
	}
}

// Do deletes the configuration; two listings must lack the zone.
func (s Delete) Do(ctx context.Context, h host.Host) error {
	if err := ValidateName(s.Name); err != nil {
		return err
	}
	c := deleteCommand(s.Name)
	r, err := h.Run(ctx, c)
	if err != nil {
		return err
	}
	failed := zonecfgFailure(c, r, s.Name)
	if errors.Is(failed, host.ErrNotFound) {
		return failed
	}
	gone, err := Gone(ctx, h, s.Name)
	if err == nil && !gone {
		err = fmt.Errorf("zone %s is still there after zonecfg delete: %w", s.Name, host.ErrState)
	}
	if err == nil {
		err = removeUnnamed(h.Files(), s.Name) // a zonecfg that was killed may have left it
	}
	if err != nil {
		return firstOf(failed, err)
	}
	return nil
}

// Do uninstalls and deletes the zone. zonecfg delete -F accepts a zone that is
// incomplete (zonecfg_destroy of libzonecfg).
//
// Guess delete-of-an-incomplete-zone: `zonecfg delete -F` accepts a zone that is incomplete.
// Check: `zonecfg -z ZONE delete -F` of one
// State: settled by usr/src/lib/libzonecfg/common/libzonecfg.c:354
func (s Discard) Do(ctx context.Context, h host.Host) error {
	if err := (Uninstall(s)).Do(ctx, h); err != nil {
		if inState(ctx, h, s.Name, Incomplete) != nil {
			return err
		}
	}
	return Delete(s).Do(ctx, h)
}

// run runs a command and types its failure.
func run(ctx context.Context, h host.Host, c host.Command, name string) error {
	r, err := h.Run(ctx, c)
	if err == nil && r.Exit != 0 {
		err = failure(c, r, name)
	}
	return err
}

func isCommandError(err error) bool {
	_, ok := errors.AsType[*host.CommandError](err)
	return ok
}

// firstOf prefers the host's own message to what a listing showed afterwards.
func firstOf(said, seen error) error {
	if said != nil {
		return said
	}
	return seen
}
