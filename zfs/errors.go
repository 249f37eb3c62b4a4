package zfs

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
)

// What zfs says, and what it means. A text is believed only as a whole line and
// only if it names the dataset that was asked about, or its mountpoint: a
// command may speak of children too. Anything else has no kind. The texts are
// those of zfs_do_create, zfs_do_destroy and share_mount_one in
// usr/src/cmd/zfs/zfs_main.c and of libzfs_error_description in
// usr/src/lib/libzfs/common/libzfs_util.c.

// What went wrong, beyond the kinds of package host: each of these is one of those
// too.
var (
	// ErrInUse is a pool that another system uses or was the last to use, or a
	// device that belongs to a pool.
	ErrInUse = fmt.Errorf("in use: %w", host.ErrRefused)
	// ErrSpace is a pool, or a quota, that is full.
	ErrSpace = fmt.Errorf("out of space: %w", host.ErrRefused)
	// ErrReadOnlyPool is a pool or dataset that was imported or set read-only.
	ErrReadOnlyPool = fmt.Errorf("read-only: %w", host.ErrRefused)
	// ErrKeyNotLoaded is an encrypted dataset that is locked.
	ErrKeyNotLoaded = fmt.Errorf("key not loaded: %w", host.ErrState)
	// ErrWrongKey is a key that does not fit.
	ErrWrongKey = fmt.Errorf("wrong key: %w", host.ErrRefused)
	// ErrSuspended is a pool that has stopped because its device does not
	// answer. It goes on when the device does and zpool clear was run.
	ErrSuspended = fmt.Errorf("pool is suspended: %w", host.ErrState)
	// ErrStream is a stream that has not ended, or is none.
	ErrStream = errors.New("incomplete stream")
	// ErrIO is a device that answers with errors.
	ErrIO = errors.New("device fails")
)

// rule gives a kind to a line "cannot ACTION 'NAME': REASON".
type rule struct {
	action, reason string // regular expressions for the whole of each
	kind           error
}

// rules is a function and not a variable: compiling costs a failed command
// some microseconds, and every start of the program nothing.
//
// Guess zfs-error-texts: the texts that give an error its kind are those of the sources under
// LC_ALL=C; "pool or dataset is busy" is OpenZFS 2's. An unknown text has no kind, and is shown as
// it is.
// Check: compare what unmount and destroy of something busy say with zfs/errors.go
func rules() []rule {
	return []rule{
		{`open`, `dataset does not exist`, host.ErrNotFound},
		{`create snapshot`, `dataset does not exist`, host.ErrNotFound}, // the snapshot's dataset
		{`create|create snapshot|rename`, `dataset already exists`, host.ErrExists},

		{`.+`, `dataset is busy`, host.ErrBusy},
		{`mount`, `mountpoint or dataset is busy`, host.ErrBusy},
		{`unmount`, `Device busy|pool or dataset is busy`, host.ErrBusy}, // illumos, then OpenZFS 2

		{`mount`, `filesystem already mounted`, host.ErrState},
		{`unmount`, `not currently mounted`, host.ErrState},
		{`mount|unmount`, `legacy mountpoint`, host.ErrState},
		{`mount`, `no mountpoint set`, host.ErrState},
		{`mount`, `'canmount' property is set to 'off'`, host.ErrState},
		{`mount`, `dataset is exported to a local zone`, host.ErrState},
		{`mount`, `encryption key not loaded`, ErrKeyNotLoaded},
		{`create`, `encryption root's key is not loaded or provided`, ErrKeyNotLoaded},
		{`create`, `Raw key too (short|long) \(expected 32\)\.`, ErrWrongKey},
		{`create`, `Encryption feature not enabled\.`, host.ErrRefused},
		{`mount`, `directory is not empty`, host.ErrState},

		{`create`, `parent does not exist`, host.ErrRefused},
		{`create`, `no such pool '.+'`, host.ErrRefused},
		{`create|set property for`, `invalid property '.+'`, host.ErrRefused},
		{`create|set property for|inherit .+ for`, `'[^']+' (is readonly|must be .+|does not apply to datasets of this type)`, host.ErrRefused},
		{`set property for`, `size is greater than available space`, ErrSpace}, // of a volume that grows
		{`set property for`, `size is (greater|less) than .+`, host.ErrRefused},
		{`destroy`, `(filesystem|volume) has children`, host.ErrRefused},
		{`destroy`, `(filesystem|volume|snapshot) has dependent clones|snapshot is cloned`, host.ErrRefused}, // the latter of older ones
		{`rollback to`, `more recent snapshots( or bookmarks)? exist`, host.ErrRefused},                      // older ones know no bookmarks
		{`destroy`, `operation does not apply to pools`, host.ErrRefused},
		{`open`, `operation not applicable to datasets of this type`, host.ErrRefused},

		{`open`, `no such pool`, host.ErrNotFound},
		{`open`, `No such file or directory|no such device in /dev/dsk`, host.ErrNotFound}, // a device
		{`create`, `pool already exists`, host.ErrExists},
		{`import`, `no such pool available`, host.ErrNotFound},
		{`import`, `a pool with that name (already exists|is already created/imported,)`, host.ErrExists},
		{`import`, `pool (may be in use from other system|was previously in use from another system|is imported on ).*`, ErrInUse},
		{`import`, `more than one matching pool`, host.ErrRefused},
		{`export`, `pool is busy`, host.ErrBusy},

		// zfs_standard_error and zpool_standard_error, whatever was done.
		{`.+`, `out of space`, ErrSpace},
		{`.+`, `(pool|dataset) is read-only`, ErrReadOnlyPool},
		{`.+`, `pool I/O is currently suspended`, ErrSuspended},
		{`.+`, `I/O error|one or more devices is currently unavailable`, ErrIO},
		{`.+`, `permission denied`, host.ErrPrivileges},
	}
}

// keyRules give kinds to a line "Key ACTION error: REASON"
// (usr/src/lib/libzfs/common/libzfs_crypto.c).
func keyRules() []rule {
	return []rule{
		{`load`, `Key already loaded for '.+'\.`, host.ErrState},
		{`unload`, `Key already unloaded for '.+'\.`, host.ErrState},
		{`unload`, `'.+' is busy\.`, host.ErrBusy},
		{`load`, `Incorrect key provided for '.+'\.`, ErrWrongKey},
		{`load|change`, `Raw key too (short|long) \(expected 32\)\.`, ErrWrongKey},
		{`change`, `Key must be loaded\.`, ErrKeyNotLoaded},
		{`load|unload`, `'.+' is not encrypted\.`, host.ErrRefused},
		{`load|unload`, `Keys must be (un)?loaded for encryption root of .+`, host.ErrRefused},
		{`change`, `Dataset not encrypted\.|Keys cannot be changed on clones\.`, host.ErrRefused},
		{`.+`, `Permission denied\.`, host.ErrPrivileges},
	}
}

// streamRules give kinds to a line "cannot receive … stream: REASON", or "warning: cannot send 'NAME': REASON"
// (usr/src/lib/libzfs/common/libzfs_sendrecv.c), which name what they are about in the reason, or not at all.
func streamRules() []rule {
	return []rule{
		{`receive`, `destination '.+' exists`, host.ErrExists},
		{`receive`, `destination '.+' does not exist`, host.ErrNotFound},
		{`receive`, `most recent snapshot of .+ does not|destination .+ has been modified`, host.ErrRefused}, // and a second line
		{`receive`, `destination .+ contains partially-complete state from "zfs receive -s"\.?`, host.ErrRefused},
		{`receive`, `checksum mismatch or incomplete stream\.?|failed to read from stream|invalid (backup )?stream.*`, ErrStream},
		{`receive`, `inherited key must be loaded`, ErrKeyNotLoaded},
		{`send`, `(dataset|source) key must be loaded`, ErrKeyNotLoaded},
		{`receive|send`, `out of space`, ErrSpace},
		{`receive|send`, `pool I/O is currently suspended`, ErrSuspended},
		{`receive|send`, `I/O error`, ErrIO},
		{`receive|send`, `permission denied`, host.ErrPrivileges},
	}
}

// kindOfLine is the kind of one line, or nil. Meant tells the names that the
// command was about.
func kindOfLine(line string, meant func(name string) bool) error {
	switch {
	case line == "could not find any snapshots to destroy; check snapshot names.":
		return host.ErrNotFound
	case line == "invalid vdev specification":
		return host.ErrRefused
	case line == "cannot discover pools: permission denied":
		return host.ErrPrivileges
	}
	if parts := partsOf(line, `cannot resolve path '`, `([^']+)'`); parts != nil && meant(parts[1]) {
		return host.ErrNotFound // a device, as OpenZFS 2 has it
	}
	if parts := partsOf(line, `Key `, `(load|unload|change) error: (.+)`); parts != nil {
		return kindOf(keyRules(), parts[1], parts[2])
	}
	if parts := partsOf(line, `cannot receive`, `(?: [a-z ]+ stream)?: (.+)`); parts != nil {
		return kindOf(streamRules(), "receive", parts[1])
	}
	if parts := partsOf(strings.TrimPrefix(line, "warning: "), `cannot send '`, `[^']+': (.+)`); parts != nil {
		return kindOf(streamRules(), "send", parts[1])
	}
	parts := partsOf(line, `cannot `, `([a-z ]+) '([^']+)': (.+)`)
	if parts == nil {
		return nil
	}
	action, name, reason := parts[1], parts[2], parts[3]
	if !meant(name) {
		return nil
	}
	return kindOf(rules(), action, reason)
}

func kindOf(rules []rule, action, reason string) error {
	for _, r := range rules {
		if whole(r.action, action) && whole(r.reason, reason) {
			return r.kind
		}
	}
	return nil
}

// partsOf are those of a line that opens with a text before what a pattern fits; nil: it does not. The
// pattern is compiled only if the line opens so.
func partsOf(line, opens, pattern string) []string {
	rest, ok := strings.CutPrefix(line, opens)
	if !ok {
		return nil
	}
	return regexp.MustCompile(`^(?:` + pattern + `)$`).FindStringSubmatch(rest)
}

// whole reports whether a pattern fits all of a text. Most are texts, with one in the place of
// another: these are not compiled.
func whole(pattern, text string) bool {
	switch {
	case pattern == `.+`:
		return text != ""
	case !strings.ContainsAny(pattern, `\.+*?()[]{}^$`):
		return slices.Contains(strings.Split(pattern, "|"), text)
	}
	return regexp.MustCompile(`^(?:` + pattern + `)$`).MatchString(text)
}

// failure is the error of a command that ended badly: names are the dataset
// that it was about, and its mountpoint if that is known.
func failure(c host.Command, r host.Result, names ...string) error {
	return failureOf(c, r, func(name string) bool { return slices.Contains(names, name) })
}

// failureOf is failure where the names are told by a rule.
func failureOf(c host.Command, r host.Result, meant func(name string) bool) error {
	e := &host.CommandError{Command: c, Result: r}
	if what, ok := lacks(r); ok {
		e.Means = host.ErrRefused
		return &LacksError{Program: c.Program, What: what, Err: e}
	}
	if partOfPool(r) {
		e.Means = ErrInUse
		return e
	}
	for line := range strings.Lines(string(r.Stderr)) {
		if kind := kindOfLine(strings.TrimRight(line, "\n"), meant); kind != nil {
			e.Means = kind
			break
		}
	}
	return e
}

// partOfPool reports whether zpool refused a device because a pool is on it, imported
// or not (usr/src/cmd/zpool/zpool_vdev.c, today's texts and older ones).
func partOfPool(r host.Result) bool {
	if !strings.Contains(string(r.Stderr), " is part of ") {
		return false
	}
	of := regexp.MustCompile(`^.+ is part of (active|exported|potentially active|exported or potentially active) (ZFS )?pool .+$`)
	for line := range strings.Lines(string(r.Stderr)) {
		if of.MatchString(strings.TrimSuffix(line, "\n")) {
			return true
		}
	}
	return false
}

// OtherError is a dataset or pool that is not the one that was meant: the name is the
// same, the GUID is not. Its kind is host.ErrRefused.
type OtherError struct {
	Name     string
	Is, Want string // GUIDs
}

// Error shows both.
func (e *OtherError) Error() string {
	return fmt.Sprintf("%s has the guid %s, not %s: it is another one", e.Name, e.Is, e.Want)
}

func (*OtherError) Kind() fault.Kind { return fault.Failed }

// Unwrap is the kind.
func (e *OtherError) Unwrap() error { return host.ErrRefused }

// ChildrenError is a dataset that is not destroyed because others lie in it.
// Its kind is host.ErrRefused.
type ChildrenError struct {
	Name     string
	Children []string // its children and snapshots, not those further down
}

// Error names some of them.
func (e *ChildrenError) Error() string {
	const most = 3
	shown := strings.Join(e.Children[:min(most, len(e.Children))], ", ")
	if more := len(e.Children) - most; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("dataset %s is not empty: %s", e.Name, shown)
}

func (*ChildrenError) Kind() fault.Kind { return fault.Failed }

// Unwrap is the kind.
func (e *ChildrenError) Unwrap() error { return host.ErrRefused }

// MountError is a new dataset that is not mounted where it should be. Its kind
// is host.ErrState.
type MountError struct {
	Name       string
	Mountpoint string // where it is, or would be, mounted
	Mounted    bool
	Want       string
}

// Error shows both places.
func (e *MountError) Error() string {
	how := "is not mounted, its mountpoint is " + e.Mountpoint
	if e.Mounted {
		how = "is mounted on " + e.Mountpoint
	}
	return fmt.Sprintf("dataset %s %s, not on %s", e.Name, how, e.Want)
}

func (*MountError) Kind() fault.Kind { return fault.Failed }

// Unwrap is the kind.
func (e *MountError) Unwrap() error { return host.ErrState }
