package napi

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/sledctl/sledctl/sim/serve"
	"github.com/sledctl/sledctl/sim/world"
)

// words are what a fault's match is compared with.
func words(r *http.Request) []string { return []string{"napi", r.Method, r.URL.Path} }

// disturb does what happens to a request before it is answered, and gives what will
// happen to its answer.
func (s *server) disturb(r *http.Request) (*world.Fault, error) {
	if armed, err := s.world.FaultsArmed(r.Context()); err != nil || !armed {
		return nil, err
	}
	var before, after *world.Fault
	err := s.update(r.Context(), func(tx *world.Tx, n *world.NAPI) error {
		before = tx.TakeFault(words(r), world.FaultNAPIDown, world.FaultNAPIRestart, world.FaultNAPIEra, world.FaultNAPIFail)
		if before == nil || before.Name == world.FaultNAPIEra {
			after = tx.TakeFault(words(r), world.FaultNAPIEmpty, world.FaultNAPIHTML, world.FaultNAPITruncated, world.FaultNAPIObject,
				world.FaultNAPIForeign, world.FaultNAPITwice, world.FaultNAPIOwnerless, world.FaultNAPITouch)
		}
		if before == nil {
			return nil
		}
		switch before.Name {
		case world.FaultNAPIRestart:
			n.Ready = tx.Now.Add(before.Delay)
			n.Era = cmp.Or(before.Text, n.Era)
		case world.FaultNAPIEra:
			n.Era = before.Text
		}
		return nil
	})
	switch {
	case err != nil || before == nil:
		return after, err
	case before.Name == world.FaultNAPIFail:
		return nil, &fault{status: before.Exit, Message: before.Text}
	case before.Name == world.FaultNAPIEra:
		return after, nil
	}
	return nil, errGone
}

// mangle is what is left of an answer.
func mangle(f *world.Fault, status int, data []byte) (int, []byte) {
	switch f.Name {
	case world.FaultNAPIEmpty:
		return http.StatusOK, nil
	case world.FaultNAPIHTML:
		return http.StatusOK, []byte("<html><head><title>502 Bad Gateway</title></head></html>\n")
	case world.FaultNAPITruncated:
		return status, data[:len(data)/2]
	case world.FaultNAPIObject:
		return status, append(append([]byte(`{"nics":`), data...), '}')
	}
	var list []map[string]any
	if json.Unmarshal(data, &list) != nil {
		return status, data
	}
	switch f.Name {
	case world.FaultNAPIForeign:
		list = append(list, map[string]any{
			"mac": "90:b8:d0:fe:fe:fe", "belongs_to_type": "zone", "belongs_to_uuid": "d5a1c4f0-52f1-4bd0-9d2c-0a4f3f1a7e11", "state": "running",
			"owner_uuid": "930896af-bf8c-48d4-885c-6573a94b1853", "cn_uuid": "564df9cf-8c25-4111-a3b0-2f4dafdc1001", "primary": true,
		})
	case world.FaultNAPITwice:
		if len(list) > 0 {
			list = append(list, maps.Clone(list[0]))
		}
	case world.FaultNAPIOwnerless:
		if len(list) > 0 {
			delete(list[len(list)-1], "belongs_to_uuid")
		}
	}
	return status, serve.JSON(list)
}

// afterwards is what somebody else does once the answer is known: the record that
// was read is another version when the answer arrives.
func (s *server) afterwards(ctx context.Context, r *http.Request, f *world.Fault) error {
	if f == nil || f.Name != world.FaultNAPITouch {
		return nil
	}
	return s.update(ctx, func(tx *world.Tx, n *world.NAPI) error {
		touch(tx, n, r.URL.Path)
		return nil
	})
}

// touch changes the record of a path, or all of them, as an operator who sets
// what is set already.
func touch(tx *world.Tx, n *world.NAPI, path string) {
	params, one := serve.Match("/nics/{mac}", path)
	mac, _ := parseMAC(params["mac"])
	for _, key := range slices.Sorted(maps.Keys(n.NICs)) {
		if !one || key == mac {
			stamp(tx, n.NICs[key])
		}
	}
}
