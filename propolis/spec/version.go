package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/host/fault"
)

// Version is a version of the API, by its major number: the others are zero. A
// server takes what it knows and everything older, and refuses what is newer.
type Version int

// The versions. What each added is in needs.
const (
	Oldest Version = 1
	Latest Version = 6
)

// Versions lists them, the oldest first.
func Versions() []Version {
	var all []Version
	for v := Oldest; v <= Latest; v++ {
		all = append(all, v)
	}
	return all
}

// String is the version as the header api-version has it: "6.0.0".
func (v Version) String() string { return strconv.Itoa(int(v)) + ".0.0" }

// ParseVersion reads "6" or "6.0.0".
func ParseVersion(s string) (Version, error) {
	n, err := strconv.Atoi(strings.TrimSuffix(s, ".0.0"))
	v := Version(n)
	if err != nil || !slices.Contains(Versions(), v) || s != v.String() && s != strconv.Itoa(n) {
		return 0, fmt.Errorf("%q is not a version of the Propolis API: want %d to %d", s, Oldest, Latest)
	}
	return v, nil
}

// Lack is a part of a spec that a version cannot express.
type Lack struct {
	Path  string
	What  string
	Since Version // the first that can
}

// VersionError is a spec that needs a newer version than the server speaks.
type VersionError struct {
	Version Version
	Lacks   []Lack
}

// Error names each part and the first version that has it.
func (e *VersionError) Error() string {
	all := make([]string, len(e.Lacks))
	for i, l := range e.Lacks {
		all[i] = fmt.Sprintf("%s: %s needs %s", l.Path, l.What, l.Since)
	}
	return fmt.Sprintf("version %s of the Propolis API cannot express it: %s", e.Version, strings.Join(all, "; "))
}

func (*VersionError) Kind() fault.Kind { return fault.Refused }

// Needs is the first version that can express all of it.
func (e *VersionError) Needs() Version {
	first := e.Version
	for _, l := range e.Lacks {
		first = max(first, l.Since)
	}
	return first
}

// needs lists what not all versions have, by path.
func (s InstanceSpec) needs() []Lack {
	var all []Lack
	for _, key := range s.Components.Keys() {
		switch p := s.Components[key].(type) {
		case VirtioSocket:
			all = append(all, Lack{componentPath(key), "a " + p.Type(), 3})
		case NVMeDisk:
			if p.WriteCache != nil && !*p.WriteCache {
				all = append(all, Lack{bodyPath(key, "has_write_cache"), "an NVMe disk without a write cache", 6})
			}
		}
	}
	if s.SMBIOS != nil {
		all = append(all, Lack{"smbios", "an SMBIOS table of one's own", 2})
	}
	return all
}

// Needs is the first version that can express the spec.
func (s InstanceSpec) Needs() Version {
	first := Oldest
	for _, l := range s.needs() {
		first = max(first, l.Since)
	}
	return first
}

// At is the spec as a version writes it: what it requires is filled in, what it
// does not know and need not be told is left out. Errors: *VersionError.
func (s InstanceSpec) At(v Version) (InstanceSpec, error) {
	lacks := slices.DeleteFunc(s.needs(), func(l Lack) bool { return l.Since <= v })
	if len(lacks) > 0 {
		return InstanceSpec{}, &VersionError{v, lacks}
	}
	parts := make(Components, len(s.Components))
	for key, part := range s.Components {
		if disk, ok := part.(NVMeDisk); ok {
			disk.WriteCache = writeCacheAt(v, disk.WriteCache)
			part = disk
		}
		parts[key] = part
	}
	s.Components = parts
	return s, nil
}

// writeCacheAt: version 6 requires the field; before, each disk had a cache
// (the document of version 6, NvmeDisk).
func writeCacheAt(v Version, cache *bool) *bool {
	switch {
	case v < 6:
		return nil
	case cache == nil:
		return new(true)
	}
	return cache
}
