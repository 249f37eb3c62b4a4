package agent

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/sledctl/sledctl/agent/api"
)

// The sled as status and events show it.

// What those who ask for it cost at most: how often the sled is looked at, and how many
// operations are read.
const (
	lookEvery       = 2 * time.Second
	usualOperations = 50
	maxOperations   = 1000
)

// views are the looks at the sled that all clients share.
type views struct {
	status     shared[api.Status]
	operations shared[api.Events]
}

func (s Settings) views(ctx context.Context, group *sync.WaitGroup) *views {
	return &views{
		status: shared[api.Status]{look: s.Status, every: lookEvery, ctx: ctx, group: group},
		operations: shared[api.Events]{every: lookEvery, ctx: ctx, group: group, look: func(ctx context.Context) (api.Events, error) {
			return s.Operations(ctx, maxOperations)
		}},
	}
}

// withSled adds their endpoints.
func withSled(all []endpoint) []endpoint {
	return append(all,
		endpoint{method: http.MethodGet, path: pagePath, id: "page", summary: "A page for browsers that shows the sled", stream: (*server).page, open: true},
		endpoint{method: http.MethodGet, path: "/status", id: "status", summary: "Whether the sled is well, as status -o json", reply: api.Status{},
			serve: (*server).status, open: true},
		endpoint{method: http.MethodGet, path: "/operations", id: "operation_list", summary: "The newest operations, as events -o json", reply: api.Events{},
			query: []string{"last"}, serve: (*server).operations, open: true},
	)
}

func (s *server) status(c call) (any, *api.Error) {
	seen, err := s.views.status.get(c.Context())
	if err != nil {
		return nil, failed(err)
	}
	return seen, nil
}

func (s *server) operations(c call) (any, *api.Error) {
	n := usualOperations
	if said := c.URL.Query().Get("last"); said != "" {
		var err error
		if n, err = strconv.Atoi(said); err != nil || n < 1 || n > maxOperations {
			return nil, api.BadRequest(fmt.Sprintf("last %q: want a number from 1 to %d", said, maxOperations))
		}
	}
	all, err := s.views.operations.get(c.Context())
	if err != nil {
		return nil, failed(err)
	}
	all.Items = all.Items[max(len(all.Items)-n, 0):] // of a copy: others share it
	return all, nil
}
