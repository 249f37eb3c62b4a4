package propolis

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"sync"

	"github.com/sledctl/sledctl/propolis/spec"
)

// A request says which version of the API it is in. A server takes its own and
// all older ones, and refuses what is newer before it looks at anything else;
// it cannot be asked which is its own. So the newest is tried first, and with
// each refusal an older one.

// Versions remembers which version servers take, so that an old one refuses only
// the first request. It may be shared.
type Versions struct {
	mu sync.Mutex
	by map[netip.AddrPort]spec.Version
}

// first is the version to try: that which the server took before, unless the request
// cannot be expressed in it.
func (s *Versions) first(server netip.AddrPort, needs spec.Version) spec.Version {
	v := spec.Latest
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if known, ok := s.by[server]; ok {
			v = known
		}
	}
	return max(v, needs)
}

func (s *Versions) took(server netip.AddrPort, v spec.Version) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[netip.AddrPort]spec.Version{}
	}
	s.by[server] = v
}

// tooNew says whether a server refused a request for its version alone
// (dropshot, ClientSpecifiesVersionInHeader).
func tooNew(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Status == http.StatusBadRequest && strings.HasPrefix(e.Message, "server does not support this API version")
}
