package zfs

import (
	"cmp"
	"errors"
	"fmt"
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
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	first, ok := errors.AsType[*world.Refusal](a)
	if !ok {
		return a
	}
	second, ok := errors.AsType[*world.Refusal](b)
	if !ok {
		return b
	}
	return &world.Refusal{Text: first.Text + "\n" + second.Text, Exit: first.Exit}
}

// CheckDatasetName says what is wrong with a name for a dataset of one of the
// types, or "". Modifying is set where the name is to be made.
func CheckDatasetName(name string, types DatasetTypes, modifying bool) string {
	if why := checkEntityName(name); why != "" {
		return why
	}
	isSnapshot, isBookmark := strings.Contains(name, "@"), strings.Contains(name, "#")
	switch {
	case types&TypeSnapshot == 0 && isSnapshot:
		return "snapshot delimiter '@' is not expected here"
	case types == TypeSnapshot && !isSnapshot:
		return "missing '@' delimiter in snapshot name"
	case isBookmark:
		return "bookmark delimiter '#' is not expected here"
	case modifying && strings.Contains(name, "%"):
		return "invalid character % in name"
	case modifying && strings.Count(name, "/") >= maxDatasetDepth:
		return "maximum name nesting depth exceeded"
	}
	return ""
}

// checkEntityName is entity_namecheck.
func checkEntityName(name string) string {
	switch {
	case len(name) >= maxDatasetName:
		return "name is too long"
	case name == "":
		return "empty component in name"
	case name[0] == '/':
		return "leading slash in name"
	case name[len(name)-1] == '/':
		return "trailing slash in name"
	}
	delimiter := false
	for start := 0; ; {
		end := len(name)
		if i := strings.IndexAny(name[start:], "/@#"); i >= 0 {
			end = start + i
		}
		if end < len(name) && name[end] != '/' {
			if delimiter {
				return "multiple '@' and/or '#' delimiters in name"
			}
			delimiter = true
		}
		if start == end {
			return "empty component in name"
		}
		for _, c := range []byte(name[start:end]) {
			if !validNameByte(c) && c != '%' {
				return fmt.Sprintf("invalid character '%c' in name", c)
			}
		}
		if end == len(name) {
			return ""
		}
		if name[end] == '/' && delimiter {
			return "trailing slash in name"
		}
		start = end + 1
	}
}

func validNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '-' || c == '_' || c == '.' || c == ':' || c == ' '
}

// CheckPoolName says what is wrong with the name of a pool that is to be made
// (pool_namecheck, with the words of zpool_name_valid in libzfs_pool.c).
func CheckPoolName(name string) string {
	if len(name) >= maxDatasetName-len("/$ORIGIN") {
		return "name is too long"
	}
	for _, c := range []byte(name) {
		if !validNameByte(c) {
			return fmt.Sprintf("invalid character '%c' in pool name", c)
		}
	}
	if name == "" || !(name[0] >= 'a' && name[0] <= 'z' || name[0] >= 'A' && name[0] <= 'Z') {
		return "name must begin with a letter"
	}
	if len(name) > 1 && name[0] == 'c' && name[1] >= '0' && name[1] <= '9' {
		return "pool name is reserved"
	}
	for _, word := range []string{"mirror", "raidz", "spare"} {
		if strings.HasPrefix(name, word) {
			return "name is reserved"
		}
	}
	if name == "log" {
		return "name is reserved"
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

// isBelow says whether a dataset's name lies below another's, as a child or as
// a snapshot.
func isBelow(name, ancestor string) bool {
	return len(name) > len(ancestor) && strings.HasPrefix(name, ancestor) &&
		(name[len(ancestor)] == '/' || name[len(ancestor)] == '@')
}
