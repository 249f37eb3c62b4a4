package serve

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Version is a semantic version, as the api-version header of servers that are
// made with dropshot has one.
type Version struct {
	Major, Minor, Patch uint64
	Pre                 string
}

// Before says whether v comes before major.0.0.
func (v Version) Before(major uint64) bool { return v.compare(Version{Major: major}) < 0 }

// compare orders versions; a pre-release comes before its release. Two
// pre-releases of one version are equal here: no range ends between them.
func (v Version) compare(w Version) int {
	order := cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor), cmp.Compare(v.Patch, w.Patch))
	if order == 0 && (v.Pre == "") != (w.Pre == "") {
		return cmp.Compare(w.Pre, v.Pre)
	}
	return order
}

// Spoken is the version that a request names, or what is wrong with it, in the
// words of a server whose newest is latest (dropshot/src/versioning.rs).
func Spoken(header http.Header, latest Version) (v Version, complaint string) {
	values := header.Values("api-version")
	if len(values) == 0 {
		return v, `missing expected header "api-version"`
	}
	text := values[0]
	for i := range len(text) {
		if text[i] > 0x7e || text[i] < 0x20 {
			return v, fmt.Sprintf(`bad value for header "api-version": not ASCII: %q`, text)
		}
	}
	v, complaint = parseVersion(text)
	switch {
	case complaint != "":
		return v, fmt.Sprintf(`bad value for header "api-version": %s: %s`, complaint, text)
	case v.compare(latest) > 0:
		return v, "server does not support this API version: " + text
	}
	return v, ""
}

// parseVersion reads a version as Rust's semver crate does; the error is its
// text.
func parseVersion(text string) (v Version, complaint string) {
	if text == "" {
		return v, "empty string, expected a semver version"
	}
	rest := text
	for i, part := range []struct {
		name string
		to   *uint64
	}{{"major", &v.Major}, {"minor", &v.Minor}, {"patch", &v.Patch}} {
		digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
		rest = rest[len(digits):]
		switch {
		case digits == "" && rest == "":
			return v, "unexpected end of input while parsing " + part.name + " version number"
		case digits == "":
			return v, fmt.Sprintf("unexpected character '%c' while parsing %s version number", []rune(rest)[0], part.name)
		case len(digits) > 1 && digits[0] == '0':
			return v, "invalid leading zero in " + part.name + " version number"
		}
		n, err := strconv.ParseUint(digits, 10, 64)
		if err != nil {
			return v, "value of " + part.name + " version number exceeds u64::MAX"
		}
		*part.to = n
		if i == 2 {
			break
		}
		switch {
		case rest == "":
			return v, "unexpected end of input while parsing " + part.name + " version number"
		case rest[0] != '.':
			return v, fmt.Sprintf("unexpected character '%c' after %s version number", []rune(rest)[0], part.name)
		}
		rest = rest[1:]
	}
	return parsePreRelease(v, rest)
}

func parsePreRelease(v Version, rest string) (Version, string) {
	rest, build, hasBuild := strings.Cut(rest, "+")
	pre, ok := strings.CutPrefix(rest, "-")
	switch {
	case rest != "" && !ok:
		return v, fmt.Sprintf("unexpected character '%c' after patch version number", []rune(rest)[0])
	case ok && pre == "":
		return v, "empty identifier segment in pre-release identifier"
	case hasBuild && build == "":
		return v, "empty identifier segment in build metadata"
	}
	v.Pre = pre
	return v, ""
}
