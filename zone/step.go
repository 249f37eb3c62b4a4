package zone

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
)

// The steps that bring a zone up. Each is strict, and when it fails it takes
// back what it may have half made, unless the host's command is still running
// or the failure is one that comes before anything is changed.

// Configure writes a zone's configuration: zonecfg create -b and all resources,
// attrs first, in one process. A zone of that name must not exist
// (host.ErrExists). What was written is read back (*MismatchError). A zonecfg that
// was killed between the configuration and the index (zonecfg_save of
// usr/src/lib/libzonecfg) leaves a zone that no listing has and that exists for
// zonecfg all the same: where its configuration is this one, it is written over.
type Configure struct {
	Name   string
	Config Config
}

// Clone makes a configured zone bootable by cloning Source, an installed zone
// of the same brand. Zonepath is that of the new zone.
type Clone struct {
	Name, Source string
	Zonepath     string
}

// Install makes a configured zone bootable; Args are for its brand, without
// blanks or characters special to a shell.
type Install struct {
	Name     string
	Zonepath string
	Args     []string
}

// Boot boots an installed zone and waits until it runs under a zone id that it
// did not have before. No service need be up by then. Where one of its links is
// busy it is booted again for a while.
type Boot struct{ Name string }

// Verb names the step.
func (Configure) Verb() string { return "zone.configure" }

// Verb names the step.
func (Clone) Verb() string { return "zone.clone" }

// Limit leaves room for a brand that copies.
func (Clone) Limit() (most time.Duration, waits bool) { return 5 * time.Minute, false }

// Verb names the step.
func (Install) Verb() string { return "zone.install" }

// Limit is many times the 8 s of omicron#4399.
func (Install) Limit() (most time.Duration, waits bool) { return 10 * time.Minute, false }

// Verb names the step.
func (Boot) Verb() string { return "zone.boot" }

// Limit is several times what a zone under load took.
func (Boot) Limit() (most time.Duration, waits bool) { return 3 * time.Minute, false }

// Undo is Delete.
func (s Configure) Undo() any { return Delete{Name: s.Name} }

// Undo is Uninstall.
func (s Clone) Undo() any { return Uninstall{Name: s.Name} }

// Undo is Uninstall.
func (s Install) Undo() any { return Uninstall{Name: s.Name} }

// Undo is Halt.
func (s Boot) Undo() any { return Halt(s) }

// Needs is what lists zones.
func (s Configure) Needs() []string { return []string{"zoneadm"} }

// Explain is the zonecfg; nothing if Do would refuse the values.
func (s Configure) Explain() []host.Line {
	c, err := configureCommand(s.Name, s.Config)
	if err != nil {
		return nil
	}
	return []host.Line{host.CommandLine(c)}
}

// Explain is the zoneadm clone.
func (s Clone) Explain() []host.Line {
	return []host.Line{host.CommandLine(cloneCommand(s.Name, s.Source))}
}

// Explain is the zoneadm install; nothing if Do would refuse the arguments.
func (s Install) Explain() []host.Line {
	c, err := installCommand(s.Name, s.Args)
	if err != nil {
		return nil
	}
	return []host.Line{host.CommandLine(c)}
}

// Explain is the zoneadm boot and the wait.
func (s Boot) Explain() []host.Line {
	return []host.Line{
		host.CommandLine(bootCommand(s.Name)),
		host.WaitLine("zone " + s.Name + " is running"),
	}
}

// Do configures the zone. zonecfg create on an installed zone is refused with
// exit code 0, and the statements after it change that zone: so a listing must
// lack it first.
func (s Configure) Do(ctx context.Context, h host.Host) error {
	c, err := configureCommand(s.Name, s.Config)
	if err != nil {
		return err
	}
	switch _, found, err := Find(ctx, h, s.Name); {
	case err != nil:
		return err
	case found:
		return fmt.Errorf("zone %s %w", s.Name, host.ErrExists)
	case s.readBack(h.Files()) == nil:
		c = overwriting(c)
	}
	r, err := h.Run(ctx, c)
	if err != nil {
		return err
	}
	if err = zonecfgFailure(c, r, s.Name); err == nil {
		err = s.readBack(h.Files())
	}
	if err == nil || errors.Is(err, host.ErrExists) {
		return err // ErrExists: somebody else's zone since the listing
	}
	return cleanUp(ctx, err, func(ctx context.Context) error {
		switch _, found, err := Find(ctx, h, s.Name); {
		case err != nil:
			return err
		case !found:
			return removeUnnamed(h.Files(), s.Name)
		}
		return Delete{Name: s.Name}.Do(ctx, h)
	})
}

// zonecfgFailure is nil only if zonecfg said nothing on standard error: it exits 0
// after some errors (zerr without saw_error in usr/src/cmd/zonecfg/zonecfg.c).
func zonecfgFailure(c host.Command, r host.Result, name string) error {
	if r.Exit == 0 && len(r.Stderr) == 0 {
		return nil
	}
	return failure(c, r, name)
}

func (s Configure) readBack(f host.Files) error {
	found, err := ReadConfig(f, s.Name)
	if err != nil {
		return err
	}
	if d := Compare(s.Config, found); len(d) > 0 {
		return &MismatchError{Zone: s.Name, Differences: d}
	}
	return nil
}

// Do clones the zone and proves that its root is there: the snapshot, clone and
// mount are the brand's, and what is written below a root that is not mounted
// lands in the directory under it.
func (s Clone) Do(ctx context.Context, h host.Host) error {
	if err := ValidateName(s.Source); err != nil {
		return err
	}
	if err := makeInstalled(ctx, h, s.Name, cloneCommand(s.Name, s.Source), s.Source); err != nil {
		return err
	}
	return proven(ctx, h, s.Name, s.Zonepath)
}

// proven uninstalls a zone again if its root is missing.
func proven(ctx context.Context, h host.Host, name, zonepath string) error {
	err := rootIsThere(h.Files(), zonepath)
	if err == nil {
		return nil
	}
	return cleanUp(ctx, err, func(ctx context.Context) error { return Uninstall{Name: name}.Do(ctx, h) })
}

// ErrNoRoot is a zone whose root is not on a mounted dataset or is empty.
var ErrNoRoot = errors.New("the zone's root is not on its own dataset")

// rootIsThere checks that ZONEPATH/root holds a system, and that it does not
// lie on the file system of ZONEPATH's parent: the sparse, ipkg and lipkg
// brands mount a dataset on ZONEPATH/root, the clone that is built into zoneadm
// one on ZONEPATH, and omicron1 makes a directory in the one on ZONEPATH.
func rootIsThere(f host.Files, zonepath string) error {
	root := path.Join(zonepath, "root")
	info, err := f.Stat(root)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoRoot, err)
	}
	parent, err := f.Stat(path.Dir(zonepath))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoRoot, err)
	}
	if info.Device == parent.Device {
		return fmt.Errorf("%w: %s is on the file system of %s", ErrNoRoot, root, path.Dir(zonepath))
	}
	if etc, err := f.Stat(path.Join(root, "etc")); err != nil || !etc.Mode.IsDir() {
		return fmt.Errorf("%w: there is no %s/etc", ErrNoRoot, root)
	}
	return nil
}

// Do installs the zone, and proves that its root is there, as Clone does.
func (s Install) Do(ctx context.Context, h host.Host) error {
	c, err := installCommand(s.Name, s.Args)
	if err != nil {
		return err
	}
	if err := makeInstalled(ctx, h, s.Name, c, s.Name); err != nil {
		return err
	}
	return proven(ctx, h, s.Name, s.Zonepath)
}

// makeInstalled runs an install or a clone of a configured zone, and lists the zone
// afterwards. A zone that the command left incomplete is
// uninstalled.
func makeInstalled(ctx context.Context, h host.Host, name string, c host.Command, source string) error {
	if err := ValidateName(name); err != nil {
		return err
	}
	if err := inState(ctx, h, name, Configured); err != nil {
		return err
	}
	r, err := h.Run(ctx, c)
	if err != nil {
		return err
	}
	if r.Exit != 0 {
		err = failure(c, r, name, source)
		if untouched(err) {
			return err
		}
	} else if err = inState(ctx, h, name, Installed); err == nil {
		return nil
	}
	return cleanUp(ctx, err, func(ctx context.Context) error {
		z, found, err := Find(ctx, h, name)
		if err != nil || !found || z.State == Configured {
			return err
		}
		if z.State == Mounted { // the hook of a clone mounts the zone and works in it
			if err := (Unmount{Name: name}).Do(ctx, h); err != nil {
				return err
			}
		}
		return Uninstall{Name: name}.Do(ctx, h)
	})
}

// StateError is a zone that is not in the state in which a step needs it, or
// in which it should have left it.
type StateError struct {
	Zone   string
	State  State // what the listing says; empty: it lacks the zone
	Wanted []State
}

// Error names both states.
func (e *StateError) Error() string {
	wanted := make([]string, len(e.Wanted))
	for i, s := range e.Wanted {
		wanted[i] = string(s)
	}
	state := string(e.State)
	if state == "" {
		state = "absent"
	}
	return fmt.Sprintf("zone %s is %s, not %s", e.Zone, state, strings.Join(wanted, " or "))
}

func (*StateError) Kind() fault.Kind { return fault.Failed }

// Unwrap is host.ErrNotFound for a zone that is absent, host.ErrTransient for
// one that is going down, else host.ErrState.
func (e *StateError) Unwrap() error {
	switch e.State {
	case "":
		return host.ErrNotFound
	case ShuttingDown, Down:
		return host.ErrTransient
	}
	return host.ErrState
}

// inState is nil if a listing shows the zone in one of the states, else a
// *StateError or the listing's.
func inState(ctx context.Context, h host.Host, name string, wanted ...State) error {
	z, _, err := Find(ctx, h, name)
	if err != nil {
		return err
	}
	for _, w := range wanted {
		if z.State == w {
			return nil
		}
	}
	return &StateError{Zone: name, State: z.State, Wanted: wanted}
}

// How long a zone is booted again whose link is busy, and how long it is left alone
// at most in between.
const (
	linkPatience = 10 * time.Second
	linkPause    = time.Second
)

// Do boots the zone. A link that anybody of the global zone has open, be it for the
// moment in which dladm show-linkprop reads its properties (show_linkprop_onelink in
// usr/src/cmd/dladm/dladm.c), cannot be moved into it: the boot fails, and the zone is
// installed as before.
func (s Boot) Do(ctx context.Context, h host.Host) error {
	if err := ValidateName(s.Name); err != nil {
		return err
	}
	began := time.Now()
	for wait := newBackOff(linkPause); ; wait.pause(ctx) {
		err := s.once(ctx, h)
		_, left := errors.AsType[*host.LeftoverError](err)
		switch {
		case left || !errors.Is(err, errLinkBusy) || ctx.Err() != nil:
			return err
		case time.Since(began) >= linkPatience:
			return fmt.Errorf("zone %s: busy for %v: %w", s.Name, time.Since(began).Round(time.Millisecond), err)
		}
	}
}

// once boots it once. zoneadm exits 0 for a zone that is running already and for
// one that is just going down, and then says so on standard error
// (server() of usr/src/cmd/zoneadmd/zoneadmd.c).
func (s Boot) once(ctx context.Context, h host.Host) error {
	if err := inState(ctx, h, s.Name, Installed); err != nil {
		return err
	}
	c := bootCommand(s.Name)
	r, err := h.Run(ctx, c)
	if err != nil {
		return err
	}
	switch {
	case r.Exit != 0:
		err = failure(c, r, s.Name)
	case strings.Contains(string(r.Stderr), "already booted"):
		return failure(c, r, s.Name) // somebody else did, and may use it
	default:
		if err = s.awaitRunning(ctx, h); err == nil {
			return nil
		}
	}
	return cleanUp(ctx, err, func(ctx context.Context) error {
		// A boot that fails takes its platform down itself, but does not tell when it could not.
		if stopped := inState(ctx, h, s.Name, Installed); stopped == nil {
			return nil
		}
		return Halt(s).Do(ctx, h)
	})
}

// bootPause is the longest time between two looks at a zone that boots.
const bootPause = 20 * time.Millisecond

// awaitRunning looks until the zone runs. It was installed before, so any id is
// a new one. Found installed again, its init has ended.
//
// Guess no-reboot-within-milliseconds: a zone whose init reboots it within milliseconds of its boot
// does not occur: found *installed* after `zoneadm boot` exited 0, it counts as failed.
// Check: nothing, until it occurs
func (s Boot) awaitRunning(ctx context.Context, h host.Host) error {
	for wait := newBackOff(bootPause); ; wait.pause(ctx) {
		z, _, err := Find(ctx, h, s.Name)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("zone %s did not get running: %w", s.Name, context.Cause(ctx))
		case isIncomplete(err):
			continue
		case err != nil:
			return err
		case z.State == Running && z.ID != nil:
			return nil
		case z.ID == nil:
			return &StateError{Zone: s.Name, State: z.State, Wanted: []State{Running}}
		}
	}
}

// cleanUpTime is what a step that failed has for taking back what it made,
// beyond the time of its context.
const cleanUpTime = 60 * time.Second

// cleanUp takes back what a failed step has left and tells both errors if that
// fails too. It must not depend on the step's context, which may be why it failed.
func cleanUp(ctx context.Context, cause error, undo func(context.Context) error) error {
	return host.CleanUp(ctx, cleanUpTime, cause, undo)
}

// backOff is a pause that doubles up to a limit.
type backOff struct{ next, limit time.Duration }

func newBackOff(limit time.Duration) *backOff { return &backOff{next: limit / 16, limit: limit} }

// pause waits, or returns early when ctx ends.
func (b *backOff) pause(ctx context.Context) {
	t := time.NewTimer(b.next)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	b.next = min(2*b.next, b.limit)
}
