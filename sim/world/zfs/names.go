package zfs

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// The rules of dataset names: usr/src/common/zfs/zfs_namecheck.c, with the
// words of zfs_validate_name in usr/src/lib/libzfs/common/libzfs_dataset.c.

const (
	maxDatasetName  = 256 // ZFS_MAX_DATASET_NAME_LEN, with the NUL
	maxDatasetDepth = 50  // zfs_max_dataset_nesting
)

// refuse makes a Refusal with exit code 1, as nearly all of ZFS ends.
func refuse(format string, args ...any) *world.Refusal {
	return &world.Refusal{Text: fmt.Sprintf(format, args...), Exit: 1}
}

// joinRefusals is two refusals as one, a line each; any other error wins.
func joinRefusals(a, b error) error {
	first, ok := errors.AsType[*world.Refusal](a)
	second, both := errors.AsType[*world.Refusal](b)
	if ok && both {
		return &world.Refusal{Text: first.Text + "\n" + second.Text, Exit: max(first.Exit, second.Exit)}
	}
	if ok && b != nil {
		return b
	}
	return cmp.Or(a, b)
}

// checkName says whether a name is one for a dataset of one of the types. Modifying
// is set where the name is to be made. What zfs prints about another name
// is not simulated.
func checkName(name string, types DatasetTypes, modifying bool) error {
	isSnapshot := strings.Contains(name, "@")
	if len(name) >= maxDatasetName || types&TypeSnapshot == 0 && isSnapshot || types == TypeSnapshot && !isSnapshot ||
		!validName(name) || modifying && (strings.Contains(name, "%") || strings.Count(name, "/") >= maxDatasetDepth) {
		return world.NotSimulated("zfs: the name '%s'", name)
	}
	return nil
}

// validName reports whether entity_namecheck passes a name: components of valid
// bytes between single slashes, and at most one "@" in the last.
func validName(name string) bool {
	filesystem, snapshot, named := strings.Cut(name, "@")
	for component := range strings.SplitSeq(filesystem, "/") {
		if !validComponent(component) {
			return false
		}
	}
	return !named || validComponent(snapshot)
}

func validComponent(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune("-_.: %", r)
	})
}

// checkPool says whether a name is one for a pool that is to be made (pool_namecheck).
func checkPool(name string) error {
	if !regexp.MustCompile(`^[A-Za-z][-\w.: ]*$`).MatchString(name) || len(name) >= maxDatasetName-len("/$ORIGIN") ||
		name == "log" || regexp.MustCompile(`^(c[0-9]|mirror|raidz|spare)`).MatchString(name) {
		return world.NotSimulated("zpool: the name '%s'", name)
	}
	return nil
}

// parentName is the dataset above: of a snapshot its file system or volume. A
// pool's own has none.
func parentName(name string) string {
	if i := strings.IndexByte(name, '@'); i >= 0 {
		return name[:i]
	}
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i]
	}
	return ""
}

// PoolName is the pool that a dataset's name says it is in.
func PoolName(name string) string {
	if i := strings.IndexAny(name, "/@#"); i >= 0 {
		return name[:i]
	}
	return name
}

// isBelow says whether a dataset's name lies below an ancestor's, as a child or as
// a snapshot.
func isBelow(name, ancestor string) bool {
	return len(name) > len(ancestor) && strings.HasPrefix(name, ancestor) &&
		(name[len(ancestor)] == '/' || name[len(ancestor)] == '@')
}
