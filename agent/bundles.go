package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/engine/bundle"
	"github.com/sledctl/sledctl/sled/bundles"
	"github.com/sledctl/sledctl/zfs"
)

// Bundles of zones, as the sled agent lists, gives and removes them (omicron
// sled-agent/src/zone_bundle.rs). How much of them is kept is the sled's configuration.

// trimEvery is how often it is looked whether bundles take more than they may.
const trimEvery = 10 * time.Minute

// held lists the bundles by their places; none where there is no place.
func (w *work) held(ctx context.Context) ([]bundles.Held, error) {
	all, err := bundles.Look(ctx, w.env.Host, w.instances.Bundles)
	if _, nowhere := errors.AsType[*bundle.NowhereError](err); nowhere {
		return nil, nil
	}
	return all, err
}

// listBundles lists those of a zone, or of all zones with names that contain a text.
func (s *server) listBundles(c call) (any, *api.Error) {
	of := func(zone string) bool { return strings.Contains(zone, c.URL.Query().Get("filter")) }
	if name, one := c.params["zone_name"]; one {
		of = func(zone string) bool { return zone == name }
	}
	held, err := s.work.held(c.Context())
	if err != nil {
		return nil, api.Internal(err)
	}
	all := []api.Bundle{}
	for _, p := range held {
		for _, b := range p.Bundles {
			if of(b.Zone) {
				all = append(all, api.BundleOf(b))
			}
		}
	}
	return all, nil
}

// bundle says which bundle a request names.
func (c call) bundle() (func(bundles.Held) []bundle.Bundle, *api.Error) {
	id, refused := c.uuid("bundle_id")
	return func(p bundles.Held) []bundle.Bundle {
		return slices.DeleteFunc(slices.Clone(p.Bundles), func(b bundle.Bundle) bool {
			return api.BundleOf(b).ID != api.BundleID{Zone: c.params["zone_name"], ID: id}
		})
	}, refused
}

// noBundle is the answer where there is no such bundle.
func (c call) noBundle() *api.Error {
	return api.StatusOnly(http.StatusNotFound, "", fmt.Errorf("there is no bundle %s of zone %s", c.params["bundle_id"], c.params["zone_name"]))
}

// bundleFile answers with a bundle.
func (s *server) bundleFile(w http.ResponseWriter, c call) *api.Error {
	pick, refused := c.bundle()
	if refused != nil {
		return refused
	}
	held, err := s.work.held(c.Context())
	if err != nil {
		return api.Internal(err)
	}
	for _, p := range held {
		for _, b := range pick(p) {
			return s.file(w, b.Path)
		}
	}
	return c.noBundle()
}

// file answers with the bytes of a bundle.
func (s *server) file(w http.ResponseWriter, name string) *api.Error {
	in, err := s.work.env.Host.Files().Open(name, 0, 0)
	if err != nil {
		return api.Internal(err)
	}
	defer in.Close()
	w.Header().Set("Content-Type", "application/gzip")
	out := http.NewResponseController(w)
	for buffer := make([]byte, 64<<10); ; {
		n, err := in.Read(buffer)
		if n > 0 {
			_ = out.SetWriteDeadline(time.Now().Add(patience))
			if _, err := w.Write(buffer[:n]); err != nil {
				return nil // the client has gone
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			panic(http.ErrAbortHandler) // so that nobody takes the half for the whole
		}
	}
}

// deleteBundle removes one.
func (s *server) deleteBundle(c call) (any, *api.Error) {
	pick, refused := c.bundle()
	if refused != nil {
		return nil, refused
	}
	gone, err := s.work.removeBundles(c.Context(), pick)
	switch {
	case err != nil:
		return nil, api.Internal(err)
	case len(gone) == 0:
		return nil, c.noBundle()
	}
	return nil, nil
}

func (w *work) removeBundles(ctx context.Context, pick func(bundles.Held) []bundle.Bundle) ([]bundle.Bundle, error) {
	gone, _, err := bundles.Delete(ctx, w.env, w.instances.Bundles, pick, false)
	if _, nowhere := errors.AsType[*bundle.NowhereError](err); nowhere {
		return nil, nil
	}
	return gone, err
}

// trim removes the bundles that are too many.
func (w *work) trim(ctx context.Context) (map[string]api.BundlesGone, error) {
	gone := map[string]api.BundlesGone{}
	all, err := w.removeBundles(ctx, func(p bundles.Held) []bundle.Bundle {
		some := bundles.TooMany(w.instances.Bundles)(p)
		count := api.BundlesGone{Bundles: uint64(len(some))}
		for _, b := range some {
			count.Bytes += uint64(b.Size)
		}
		gone[p.Top()] = count
		return some
	})
	if len(all) == 0 {
		clear(gone) // as the sled agent answers
	}
	return gone, err
}

// trimBundles does so by itself.
func (a *agent) trimBundles(ctx context.Context) {
	if _, err := a.work.trim(ctx); err != nil {
		a.Log.Warn("old bundles could not be removed", "cause", err)
	}
}

func (s *server) cleanBundles(c call) (any, *api.Error) {
	gone, err := s.work.trim(c.Context())
	if err != nil {
		return nil, api.Internal(err)
	}
	return gone, nil
}

// space is how much of each place bundles take, and may. The datasets are listed together.
func (w *work) space(ctx context.Context) (map[string]api.BundleSpace, error) {
	held, err := w.held(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range held {
		if p.Dataset != "" { // else it is a configured directory
			names = append(names, p.Dataset)
		}
	}
	datasets, err := zfs.List(ctx, w.env.Host, names, nil)
	if err != nil {
		return nil, err
	}
	quotas := map[string]uint64{} // a dataset without one has what is left
	for _, d := range datasets {
		quotas[d.Name] = cmp.Or(d.Quota, d.Available)
	}
	all := map[string]api.BundleSpace{}
	for _, p := range held {
		space := api.BundleSpace{Available: uint64(w.instances.Bundles.Max), Used: uint64(p.Used()), Quota: quotas[p.Dataset]}
		if space.Quota > 0 {
			space.Available = min(space.Available, space.Quota)
		}
		all[p.Top()] = space
	}
	return all, nil
}

func (s *server) bundleSpace(c call) (any, *api.Error) {
	all, err := s.work.space(c.Context())
	if err != nil {
		return nil, api.Internal(err)
	}
	return all, nil
}

// bundleContext is what the sled's configuration makes of it: the oldest go first, and the percentage
// is that of the smallest quota, rounded up.
func (s *server) bundleContext(c call) (any, *api.Error) {
	all, err := s.work.space(c.Context())
	if err != nil {
		return nil, api.Internal(err)
	}
	now := api.BundleContext{Period: api.Duration{Seconds: uint64(trimEvery.Seconds())}, Priority: []string{"time", "cause"}}
	for _, space := range all {
		if space.Quota > 0 {
			now.Limit = max(now.Limit, uint8(min((space.Available*100+space.Quota-1)/space.Quota, 100)))
		}
	}
	return now, nil
}

// putBundleContext takes what changes nothing: the configuration decides, which outlives a restart.
func (s *server) putBundleContext(c call) (any, *api.Error) {
	var want api.PutBundleContext
	if refused := c.decode(&want); refused != nil {
		return nil, refused
	}
	said, refused := s.bundleContext(c)
	if refused != nil {
		return nil, refused
	}
	now := said.(api.BundleContext)
	for _, differs := range []struct {
		field string
		so    bool
	}{
		{"period", want.Period != nil && *want.Period != now.Period},
		{"storage_limit", want.Limit != nil && *want.Limit != now.Limit},
		{"priority", want.Priority != nil && !slices.Equal(want.Priority, now.Priority)},
	} {
		if differs.so {
			return nil, api.BadRequest(fmt.Sprintf("%s: the sled's configuration decides (bundle.max_size), and the oldest bundles go first", differs.field))
		}
	}
	return nil, nil
}

// withBundles adds their endpoints.
func withBundles(all []endpoint) []endpoint {
	first := api.Version{Major: 1}
	one, clean := "/zones/bundles/{zone_name}/{bundle_id}", "/zones/bundle-cleanup"
	return append(all,
		endpoint{method: http.MethodGet, path: "/zones/bundles", id: "zone_bundle_list_all", summary: "Bundles of all zones, also of those that are gone", since: first,
			reply: []api.Bundle{}, query: []string{"filter"}, serve: (*server).listBundles},
		endpoint{method: http.MethodGet, path: "/zones/bundles/{zone_name}", id: "zone_bundle_list", summary: "Bundles of a zone", since: first,
			reply: []api.Bundle{}, serve: (*server).listBundles},
		endpoint{method: http.MethodGet, path: one, id: "zone_bundle_get", summary: "A bundle: a tar, compressed by gzip", since: first,
			file: "application/gzip", stream: (*server).bundleFile},
		endpoint{method: http.MethodDelete, path: one, id: "zone_bundle_delete", summary: "Remove a bundle", since: first, serve: (*server).deleteBundle},
		endpoint{method: http.MethodPost, path: clean, id: "zone_bundle_cleanup", summary: "Remove the oldest bundles where they take more than they may", since: first,
			reply: map[string]api.BundlesGone{}, serve: (*server).cleanBundles},
		endpoint{method: http.MethodGet, path: clean + "/context", id: "zone_bundle_cleanup_context", summary: "How much of bundles is kept", since: first,
			reply: api.BundleContext{}, serve: (*server).bundleContext},
		endpoint{method: http.MethodPut, path: clean + "/context", id: "zone_bundle_cleanup_context_update", summary: "Have it as it is: the sled's configuration decides how much is kept",
			since: first, body: api.PutBundleContext{}, serve: (*server).putBundleContext},
		endpoint{method: http.MethodGet, path: clean + "/utilization", id: "zone_bundle_utilization", summary: "How much of each place bundles take", since: first,
			reply: map[string]api.BundleSpace{}, serve: (*server).bundleSpace},
	)
}
