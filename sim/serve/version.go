package serve

import (
	"cmp"
	"net/http"
	"regexp"
	"strconv"
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

// semver is a version as Rust's semver crate takes it.
const semver = `^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([!-*,-~]+))?(?:\+[!-~]+)?$`

// Spoken is the version that a request names, or what is wrong with it, in the
// words of a server whose newest is latest (dropshot/src/versioning.rs). Guess:
// those about what is no version.
func Spoken(header http.Header, latest Version) (v Version, complaint string) {
	text := header.Get("api-version")
	part := regexp.MustCompile(semver).FindStringSubmatch(text)
	if part == nil {
		return v, `missing or bad value for header "api-version": ` + strconv.Quote(text)
	}
	for i, to := range []*uint64{&v.Major, &v.Minor, &v.Patch} {
		*to, _ = strconv.ParseUint(part[i+1], 10, 64) // one that is too large is too new
	}
	if v.Pre = part[4]; v.compare(latest) > 0 {
		return v, "server does not support this API version: " + text
	}
	return v, ""
}
