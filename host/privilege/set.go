// Package privilege knows what illumos asks of a process that changes something: sets of
// privileges (privileges(7)), and what each program needs that sledctl runs.
package privilege

import (
	"slices"
	"strings"
)

// All is the name of the set of all privileges.
const All = "all"

// Set is a set of privileges as ppriv(1) prints it: all, basic, zone, none, or names of
// privileges, with a ! before what is left out.
type Set string

// basic are the privileges of every user, as privileges(7) lists them.
func basic() []string {
	return []string{"file_link_any", "file_read", "file_write", "net_access", "proc_exec", "proc_fork", "proc_info", "proc_secflags", "proc_session"}
}

// Has reports whether a set has a privilege, or with All every one.
//
// Guess zone-set-is-a-zones: ppriv prints `zone` for a set of what a zone may have, which is
// never all of the global zone's.
// Check: `ppriv -e -s EP=zone ppriv '$$'` as root in the global zone, and `ppriv $$` there
func (s Set) Has(name string) bool {
	has := false
	for word := range strings.SplitSeq(string(s), ",") {
		left, out := strings.CutPrefix(strings.TrimSpace(word), "!")
		switch {
		case out && (left == name || name == All):
			has = false
		case left == All, left == name && !out, left == "basic" && slices.Contains(basic(), name):
			has = !out
		}
	}
	return has
}

// Without are those of some privileges that a set lacks.
func (s Set) Without(names []string) (lacking []string) {
	for _, name := range names {
		if !s.Has(name) {
			lacking = append(lacking, name)
		}
	}
	return lacking
}

// Process is what a process may do.
type Process struct {
	User      int // its effective user
	Effective Set
}

// All reports whether the process may do everything.
func (p Process) All() bool { return p.Effective.Has(All) }

// Files is what files of root's are needed for.
type Files int

// The needs of files, from none to most. Each includes those before it.
const (
	NoFiles Files = iota
	ReadFiles
	WriteFiles
)

// Read are the privileges that read files of root's.
func Read() []string { return []string{"file_dac_read", "file_dac_search"} }

// Need is what a process must have.
type Need struct {
	Files      Files
	Privileges []string // sorted; All alone: every one
}

// And is what both need.
func (n Need) And(other Need) Need {
	all := slices.Concat(n.Privileges, other.Privileges)
	slices.Sort(all)
	if all = slices.Compact(all); slices.Contains(all, All) {
		all = []string{All}
	}
	return Need{Files: max(n.Files, other.Files), Privileges: all}
}

// Lacks is what a process lacks of a need: privileges, and "user 0"; none: it may.
//
// Guess root-files-need-all: to write a file of root's, another user needs every privilege, as
// privileges(7) has it under file_dac_write. To read one, file_dac_read and file_dac_search
// are enough.
// Check: `ppriv -e -s EIP=basic,file_dac_read,file_dac_search sledctl instance list` as a user, and the
// same with file_dac_write and `sledctl vnic create --over net0`: exit 8
func (n Need) Lacks(p Process) []string {
	if p.All() {
		return nil
	}
	lacking := p.Effective.Without(n.Privileges)
	switch {
	case p.User == 0:
	case n.Files == ReadFiles:
		lacking = append(lacking, p.Effective.Without(Read())...)
	case n.Files == WriteFiles:
		lacking = append(lacking, "user 0")
	}
	return lacking
}

// String is the need in words.
func (n Need) String() string {
	words := slices.Clone(n.Privileges)
	switch {
	case slices.Contains(words, All):
	case n.Files == ReadFiles:
		words = append(words, Read()...)
	case n.Files == WriteFiles:
		words = append(words, "user 0")
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}
