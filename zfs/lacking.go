package zfs

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
)

// What an implementation of ZFS lacks is learnt from its own refusal, and
// remembered as long as the program runs: zfs-fuse on Linux knows no encryption
// and no exact sizes of pools, illumos before 2019 no encryption either.

// LacksError is an option, property or subcommand that the host's zfs or zpool
// does not have. Its kind is host.ErrRefused, and Err the command's end.
type LacksError struct {
	Program string // "zfs", "zpool"
	What    string // "property 'encryption'"
	Err     *host.CommandError
}

// Error says what is lacking, without the pages of usage that the program
// printed.
func (e *LacksError) Error() string {
	return fmt.Sprintf("the %s of this host has no %s (%s)", e.Program, e.What, e.Err.Command.Shell())
}

func (*LacksError) Kind() fault.Kind { return fault.Failed }

// Unwrap gives the command's end, with the kind.
func (e *LacksError) Unwrap() error { return e.Err }

// lacks finds out from the first line of a refusal what is lacking. The texts
// are those of zprop_get_list (libzfs_util.c), usage and the getopt loops
// (zfs_main.c, zpool_main.c), and of zfs_crypto_verify_rewrap_nvlist
// (libzfs_crypto.c) where it takes no user properties, as OpenZFS does not.
func lacks(r host.Result) (what string, ok bool) {
	line, _, _ := strings.Cut(string(r.Stderr), "\n")
	for _, form := range []struct{ opens, pattern, what string }{
		{`bad property list: `, `invalid property '([^']+)'`, "property '%s'"},
		{`cannot create '`, `[^']+': invalid property '([^']+)'`, "property '%s'"},
		{`cannot set property for '`, `[^']+': invalid property '([^']+)'`, "property '%s'"},
		{`unrecognized command `, `'([^']+)'`, "subcommand '%s'"},
		{`invalid option `, `'([^']+)'`, "option '%s'"},
		{
			`Key change error: `, `(Only keyformat, keylocation,? and pbkdf2iters) may be set with this command\.`,
			"user properties to set with a key: \"%s\"",
		},
	} {
		if parts := partsOf(line, form.opens, form.pattern); parts != nil {
			return fmt.Sprintf(form.what, parts[1]), true
		}
	}
	return "", false
}

// lackingKey is where a host remembers the properties that its zfs lacks.
type lackingKey struct{}

func lacking(h host.Host) []string {
	known, _ := host.Recall[[]string](h, lackingKey{})
	return known
}

// learn reports whether a listing was refused for a property that not every zfs has,
// and remembers not to ask for it again.
func learn(h host.Host, r host.Result, properties *[]string) bool {
	line, _, _ := strings.Cut(string(r.Stderr), "\n")
	rest, found := strings.CutPrefix(line, "bad property list: invalid property '")
	name, ended := strings.CutSuffix(rest, "'")
	if !found || !ended || !slices.Contains(encryption(), name) || !slices.Contains(*properties, name) {
		return false
	}
	*properties = without(*properties, []string{name})
	host.Remember(h, lackingKey{}, append(slices.Clone(lacking(h)), name))
	return true
}

func without(all, some []string) []string {
	if len(some) == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) })
}

// isLacking is for steps that can do without.
func isLacking(err error) bool {
	_, ok := errors.AsType[*LacksError](err)
	return ok
}
