package propolis

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// version is a semantic version, as the api-version header has one.
type version struct {
	major, minor, patch uint64
	pre                 string
}

// latest is the newest version that the server speaks
// (crates/propolis-server-api in oxidecomputer/propolis).
func latest() version { return version{major: 5} }

// before says whether v comes before major.0.0.
func (v version) before(major uint64) bool { return v.compare(version{major: major}) < 0 }

// compare orders versions; a pre-release comes before its release. Two
// pre-releases of one version are equal here: no range ends between them.
func (v version) compare(w version) int {
	order := cmp.Or(cmp.Compare(v.major, w.major), cmp.Compare(v.minor, w.minor), cmp.Compare(v.patch, w.patch))
	if order == 0 && (v.pre == "") != (w.pre == "") {
		return cmp.Compare(w.pre, v.pre)
	}
	return order
}

// parseVersion reads a version as Rust's semver crate does; the error is its
// text.
func parseVersion(text string) (v version, complaint string) {
	if text == "" {
		return v, "empty string, expected a semver version"
	}
	rest := text
	for i, part := range []struct {
		name string
		to   *uint64
	}{{"major", &v.major}, {"minor", &v.minor}, {"patch", &v.patch}} {
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

func parsePreRelease(v version, rest string) (version, string) {
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
	v.pre = pre
	return v, ""
}
