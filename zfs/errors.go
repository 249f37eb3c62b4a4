package zfs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// What zfs says, and what it means. A text is believed only as a whole line and
// only if it names the dataset that was asked about, or its mountpoint: a
// command may speak of children too. Anything else has no kind. The texts are
// those of zfs_do_create, zfs_do_destroy and share_mount_one in
// usr/src/cmd/zfs/zfs_main.c and of libzfs_error_description in
// usr/src/lib/libzfs/common/libzfs_util.c.

// rule gives a kind to a line "cannot ACTION 'NAME': REASON".
type rule struct {
	action, reason string // regular expressions for the whole of each
	kind           error
}

// rules is a function and not a variable: compiling costs a failed command
// some microseconds, and every start of the program nothing.
func rules() []rule {
	return []rule{
		{`open`, `dataset does not exist`, host.ErrNotFound},
		{`create snapshot`, `dataset does not exist`, host.ErrNotFound}, // the snapshot's dataset
		{`create|create snapshot`, `dataset already exists`, host.ErrExists},

		{`.+`, `dataset is busy`, host.ErrBusy},
		{`mount`, `mountpoint or dataset is busy`, host.ErrBusy},
		{`unmount`, `Device busy|pool or dataset is busy`, host.ErrBusy}, // illumos, then OpenZFS 2

		{`mount`, `filesystem already mounted`, host.ErrState},
		{`unmount`, `not currently mounted`, host.ErrState},
		{`mount|unmount`, `legacy mountpoint`, host.ErrState},
		{`mount`, `no mountpoint set`, host.ErrState},
		{`mount`, `'canmount' property is set to 'off'`, host.ErrState},
		{`mount`, `dataset is exported to a local zone`, host.ErrState},
		{`mount`, `encryption key not loaded`, host.ErrState},
		{`mount`, `directory is not empty`, host.ErrState},

		{`create`, `parent does not exist`, host.ErrRefused},
		{`create`, `no such pool '.+'`, host.ErrRefused},
		{`create|create snapshot`, `out of space`, host.ErrRefused},
		{`create|set property for`, `invalid property '.+'`, host.ErrRefused},
		{`create|set property for|inherit .+ for`, `'[^']+' (is readonly|must be .+|does not apply to datasets of this type)`, host.ErrRefused},
		{`set property for`, `size is (greater|less) than .+`, host.ErrRefused},
		{`destroy`, `(filesystem|volume) has children`, host.ErrRefused},
		{`destroy`, `(filesystem|volume|snapshot) has dependent clones`, host.ErrRefused},
		{`destroy`, `operation does not apply to pools`, host.ErrRefused},
		{`open`, `operation not applicable to datasets of this type`, host.ErrRefused},

		{`.+`, `permission denied`, host.ErrPrivileges},
	}
}

// kindOfLine is the kind of one line, or nil. Meant tells the names that the
// command was about.
func kindOfLine(line string, meant func(name string) bool) error {
	switch {
	case line == "could not find any snapshots to destroy; check snapshot names.":
		return host.ErrNotFound
	case regexp.MustCompile(`^bad property list: invalid property '[^']+'$`).MatchString(line):
		return host.ErrRefused // an implementation that lacks the property
	}
	parts := regexp.MustCompile(`^cannot ([a-z ]+) '([^']+)': (.+)$`).FindStringSubmatch(line)
	if parts == nil {
		return nil
	}
	action, name, reason := parts[1], parts[2], parts[3]
	if !meant(name) {
		return nil
	}
	for _, r := range rules() {
		if whole(r.action, action) && whole(r.reason, reason) {
			return r.kind
		}
	}
	return nil
}

func whole(pattern, text string) bool {
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
	for line := range strings.Lines(string(r.Stderr)) {
		if kind := kindOfLine(strings.TrimRight(line, "\n"), meant); kind != nil {
			e.Kind = kind
			break
		}
	}
	return e
}

// OtherError is a dataset that is not the one that was meant: the name is the
// same, the GUID is not. Its kind is host.ErrRefused.
type OtherError struct {
	Name     string
	Is, Want string // GUIDs
}

// Error shows both.
func (e *OtherError) Error() string {
	return fmt.Sprintf("dataset %s has the guid %s, not %s: it is another one", e.Name, e.Is, e.Want)
}

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

// Unwrap is the kind.
func (e *MountError) Unwrap() error { return host.ErrState }
