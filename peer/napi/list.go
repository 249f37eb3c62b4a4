package napi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/sledctl/sledctl/host"
)

// Route is a path that lists records. RFD 58 describes the first; the second is
// what servers have (NAPI-404).
type Route string

// The routes.
const (
	RouteSearch Route = "/search/nics"
	RouteNICs   Route = pathNICs
)

const (
	pageSize = 1000 // the most that NAPI gives
	maxPages = 32   // more NICs than any sled has
)

// List lists the records whose cn_uuid is this sled's, complete or not at all.
// A page that is full may be the last: it costs one more request. Errors besides
// Client's: ErrNoRoute; ErrNoFilter, from servers that say so and, as a
// *ForeignError, from those that do not filter.
func (c Client) List(ctx context.Context, route Route, cn string) ([]NIC, error) {
	if err := CheckUUID(cn); err != nil {
		return nil, err // an empty one would fail in the server
	}
	var all []NIC
	err := c.again(ctx, func() error {
		var err error
		all, err = c.list(ctx, route, cn) // from its beginning: the server may be another one by now
		return err
	})
	return all, err
}

// Guess napi-takes-limit-and-offset: a NAPI as RFD 58 describes it takes `limit` and `offset` for
// `/search/nics`, as its branch did, and has no Etag.
// Check: nothing: none was released
func (c Client) list(ctx context.Context, route Route, cn string) ([]NIC, error) {
	var all []NIC
	at := map[string]int{} // where in all, by MAC
	for n := range maxPages {
		path := fmt.Sprintf("%s?cn_uuid=%s&limit=%d&offset=%d", route, cn, pageSize, n*pageSize)
		r, err := c.do(ctx, http.MethodGet, path, "", nil)
		if err != nil {
			return nil, err
		}
		page, err := decodePage(r.Body)
		if err != nil {
			return nil, replyError(http.MethodGet, path, err)
		}
		fresh := 0
		for _, nic := range page {
			if nic.CNUUID != cn {
				return nil, &ForeignError{Path: path, NIC: nic, Want: cn}
			}
			i, seen := at[nic.MAC]
			switch {
			case !seen:
				at[nic.MAC] = len(all)
				all = append(all, nic)
				fresh++
			case all[i] != nic: // an insertion moves the pages; a record that is two things at once is none
				return nil, fmt.Errorf("GET %s: record %s was changed while the list was read: %w", path, nic.MAC, host.ErrTransient)
			}
		}
		switch {
		case len(page) > pageSize:
			return nil, replyError(http.MethodGet, path, fmt.Errorf("a page of %d was asked for, and it has %d records", pageSize, len(page)))
		case len(page) < pageSize:
			return all, nil
		case fresh == 0:
			return nil, replyError(http.MethodGet, path, fmt.Errorf("the page repeats those before it"))
		}
	}
	return nil, replyError(http.MethodGet, string(route), fmt.Errorf("the list does not end: %d pages of %d", maxPages, pageSize))
}
