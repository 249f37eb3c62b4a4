package zfs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
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
	switch {
	case ok && both:
		return &world.Refusal{Text: first.Text + "\n" + second.Text, Exit: first.Exit}
	case ok && b != nil:
		return b
	}
	return cmp.Or(a, b)
}

// CheckDatasetName says what is wrong with a name for a dataset of one of the
// types, or "". Modifying is set where the name is to be made. The words are
// those of the commonest mistakes only.
func CheckDatasetName(name string, types DatasetTypes, modifying bool) string {
	isSnapshot := strings.Contains(name, "@")
	switch {
	case len(name) >= maxDatasetName:
		return "name is too long"
	case types&TypeSnapshot == 0 && isSnapshot:
		return "snapshot delimiter '@' is not expected here"
	case types == TypeSnapshot && !isSnapshot:
		return "missing '@' delimiter in snapshot name"
	case !validName(name) || modifying && (strings.Contains(name, "%") || strings.Count(name, "/") >= maxDatasetDepth):
		return "invalid name (which rule it breaks is not simulated)"
	}
	return ""
}

// validName reports whether entity_namecheck passes a name: components of valid
// bytes between single slashes, and at most one "@" in the last.
func validName(name string) bool {
	head, snapshot, isSnapshot := strings.Cut(name, "@")
	for part := range strings.SplitSeq(head, "/") {
		if part == "" || strings.ContainsFunc(part, func(r rune) bool { return r > 127 || !validNameByte(byte(r)) && r != '%' }) {
			return false
		}
	}
	return !isSnapshot || snapshot != "" && !strings.ContainsFunc(snapshot, func(r rune) bool {
		return r > 127 || !validNameByte(byte(r)) && r != '%'
	})
}

func validNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '-' || c == '_' || c == '.' || c == ':' || c == ' '
}

// CheckPoolName says what is wrong with the name of a pool that is to be made
// (pool_namecheck, with the messages of zpool_name_valid in libzfs_pool.c), or "".
func CheckPoolName(name string) string {
	letter := name != "" && (name[0] >= 'a' && name[0] <= 'z' || name[0] >= 'A' && name[0] <= 'Z')
	disk := len(name) > 1 && name[0] == 'c' && name[1] >= '0' && name[1] <= '9'
	reserved := name == "log" || slices.ContainsFunc([]string{"mirror", "raidz", "spare"}, func(word string) bool { return strings.HasPrefix(name, word) })
	switch {
	case !letter:
		return "name must begin with a letter"
	case disk || reserved || !validName(name) || strings.ContainsAny(name, "/@%") || len(name) >= maxDatasetName-len("/$ORIGIN"):
		return "invalid name (which rule it breaks is not simulated)"
	}
	return ""
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
