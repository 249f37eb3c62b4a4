package api

import (
	"fmt"
	"strconv"
	"strings"
)

// Version is the API version that a request speaks.
type Version struct{ Major, Minor, Patch uint64 }

// Latest is the newest version that is spoken: that of omicron's sled agent in
// October 2026.
func Latest() Version { return Version{Major: 48} }

// String is the version as the header has it.
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// Less says whether v came before w.
func (v Version) Less(w Version) bool {
	if v.Major != w.Major {
		return v.Major < w.Major
	}
	if v.Minor != w.Minor {
		return v.Minor < w.Minor
	}
	return v.Patch < w.Patch
}

// ParseVersion reads a version without pre-release or build.
func ParseVersion(text string) (Version, error) {
	parts := strings.Split(text, ".")
	var n [3]uint64
	for i, part := range parts {
		var err error
		if i < len(n) {
			n[i], err = strconv.ParseUint(part, 10, 64)
		}
		if err != nil || i >= len(n) || len(part) > 1 && part[0] == '0' {
			return Version{}, fmt.Errorf("version %q: want three numbers, as %s", text, Latest())
		}
	}
	if len(parts) != len(n) {
		return Version{}, fmt.Errorf("version %q: want three numbers, as %s", text, Latest())
	}
	return Version{n[0], n[1], n[2]}, nil
}

// ParseAPIVersion is the version of a request's header. As dropshot's servers do, it
// refuses one that names none, and one that is newer than the latest; what lies
// between two versions is taken (dropshot/src/versioning.rs).
func ParseAPIVersion(header string) (Version, *Error) {
	if header == "" {
		return Version{}, BadRequest("missing expected header \"api-version\"")
	}
	v, err := ParseVersion(header)
	if err != nil {
		return Version{}, BadRequest("header \"api-version\": " + err.Error())
	}
	if Latest().Less(v) {
		return Version{}, BadRequest("server does not support this API version: " + header)
	}
	return v, nil
}
