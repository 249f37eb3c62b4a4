// Package serve is what the simulated HTTP servers have in common, whatever they
// are made with.
package serve

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Match compares a path with the pattern of a route, of which a segment of the
// form {name} takes any that is not empty, and gives these by their names. A slash
// at the end of the path counts for nothing.
func Match(pattern, path string) (params map[string]string, ok bool) {
	params, ok = MatchAll(pattern, strings.TrimSuffix(path, "/"))
	for _, value := range params {
		ok = ok && value != ""
	}
	return params, ok
}

// MatchAll is Match for servers that take a path as it stands, its last slash
// included, and in which a segment may be empty.
func MatchAll(pattern, path string) (params map[string]string, ok bool) {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return nil, false
	}
	params = map[string]string{}
	for i, w := range want {
		switch {
		case strings.HasPrefix(w, "{"):
			params[strings.Trim(w, "{}")] = got[i]
		case w != got[i]:
			return nil, false
		}
	}
	return params, true
}

// JSON is a value as serde_json and JSON.stringify write it: compact, nothing
// escaped for HTML. It panics over what is no JSON: what a server says is its
// own.
func JSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Refusal is the body of an answer that is an error, of servers that are made
// with dropshot (HttpErrorResponseBody in dropshot/src/error.rs).
type Refusal struct {
	RequestID string `json:"request_id"`
	Code      string `json:"error_code,omitempty"`
	Message   string `json:"message"`
}

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
var semver = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([!-*,-~]+))?(?:\+[!-~]+)?$`)
})

// Spoken is the version that a request names, or what is wrong with it, in the
// words of a server whose newest is latest (dropshot/src/versioning.rs).
//
// Guess words-about-no-version: how dropshot refuses an `api-version` that is no version.
// Check: `curl -H "api-version: x"` to a server
func Spoken(header http.Header, latest Version) (v Version, complaint string) {
	text := header.Get("api-version")
	part := semver().FindStringSubmatch(text)
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
