package napi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/sim/napi"
	"github.com/sledctl/sledctl/sim/simtest"
	"github.com/sledctl/sledctl/sim/world"
)

const (
	ours   = "564d2cec-64ee-4aca-9e27-d71c02af3b6a"
	theirs = "564df9cf-8c25-4111-a3b0-2f4dafdc1001"
	vm     = "3c7f5393-7c69-4c7c-bc81-cb7aca031ff1"
	mac1   = "90:b8:d0:00:00:01"
	mac2   = "90:b8:d0:00:00:02"
)

// stocked is a NAPI with a record of either sled.
func stocked(t *testing.T, era string) *world.World {
	t.Helper()
	w := newWorld(t, era)
	change(t, w, func(tx *world.Tx) {
		simtest.AddNIC(tx, mac1, world.NAPINIC{BelongsToType: "zone", BelongsToUUID: vm, OwnerUUID: vm, CNUUID: ours, State: "running"})
		simtest.AddNIC(tx, mac2, world.NAPINIC{BelongsToType: "zone", BelongsToUUID: vm, OwnerUUID: vm, CNUUID: theirs, State: "running"})
	})
	return w
}

// The table of eras, as the history of the server's repository has it.
func TestEras(t *testing.T) {
	for _, c := range []struct {
		era                   string
		search, nics, unknown int // status; for lists, the number of records below 100
		paged, etag, times    bool
	}{
		{napi.Era2014, 404, 2, 2, false, false, false},
		{napi.EraA, 404, 2, 2, false, false, false},
		{napi.EraB, 404, 422, 422, true, false, false},
		{napi.EraC, 404, 1, 422, true, false, true},
		{napi.EraD, 404, 1, 422, true, true, true},
		{napi.EraRFD, 1, 1, 422, true, false, false},
		{napi.EraTip, 422, 422, 422, true, false, false},
	} {
		w := stocked(t, c.era)
		count := func(path string) int {
			r := ask(w, http.MethodGet, path, "", nil)
			var list []any
			if r.Code != http.StatusOK {
				return r.Code
			}
			if err := json.Unmarshal(r.Body.Bytes(), &list); err != nil {
				t.Fatal(err)
			}
			return len(list)
		}
		one := ask(w, http.MethodGet, "/nics/90b8d0000001", "", nil)
		got := fmt.Sprint(count("/search/nics?cn_uuid="+ours), count("/nics?cn_uuid="+ours), count("/nics?zork=1"), count("/nics?limit=1") == 1,
			one.Header().Get("Etag") != "", strings.Contains(one.Body.String(), "created_timestamp"))
		if want := fmt.Sprint(c.search, c.nics, c.unknown, c.paged, c.etag, c.times); got != want {
			t.Errorf("%s: search, nics, unknown, paged, etag, times: %s, want %s", c.era, got, want)
		}
	}
}

func TestAServerOf2014DoesNothingForItsAgent(t *testing.T) {
	w := stocked(t, napi.Era2014)
	header := http.Header{"User-Agent": {"net-agent/1.0.0 (node/0.10) server/" + ours}}
	r := ask(w, http.MethodPut, "/nics/90b8d0000001", `{"state":"stopped"}`, header)
	if r.Code != http.StatusOK || r.Body.Len() != 0 {
		t.Errorf("%d %s", r.Code, r.Body)
	}
	if r := ask(w, http.MethodGet, "/nics/90b8d0000001", "", nil); !strings.Contains(r.Body.String(), `"state":"running"`) {
		t.Error(r.Body)
	}
	if r := ask(w, http.MethodGet, "/nics/"+mac1, "", nil); r.Code != http.StatusUnprocessableEntity {
		t.Errorf("an address with colons: %d", r.Code)
	}
}

func TestCheckings(t *testing.T) {
	for _, c := range []struct {
		checking  string
		list, put int
	}{{"", 422, 200}, {"strict", 422, 422}, {"loose", 200, 200}} {
		w := stocked(t, napi.EraD)
		change(t, w, func(tx *world.Tx) { tx.State.NAPI.Checking = c.checking })
		list, put := ask(w, http.MethodGet, "/nics?zork=1", "", nil).Code, ask(w, http.MethodPut, "/nics/90b8d0000001", `{"zork":1}`, nil).Code
		if list != c.list || put != c.put {
			t.Errorf("%q: list %d, put %d, want %d and %d", c.checking, list, put, c.list, c.put)
		}
	}
}

// statuses sends one request many times at once and counts the answers.
func statuses(w *world.World, n int, method, body string, header http.Header) map[int]int {
	var mu sync.Mutex
	var all sync.WaitGroup
	count := map[int]int{}
	for range n {
		all.Go(func() {
			code := ask(w, method, "/nics/90b8d0000001", body, header).Code
			mu.Lock()
			defer mu.Unlock()
			count[code]++
		})
	}
	all.Wait()
	return count
}

// Of parallel deletes one is 204 and the others are 404, and of parallel changes
// that lose a race none is done: they are 412, where that is seen in time, or
// 500. (samples of the real server: concurrency.txt)
func TestRaces(t *testing.T) {
	w := stocked(t, napi.EraD)
	etag := ask(w, http.MethodGet, "/nics/90b8d0000001", "", nil).Header().Get("Etag")
	puts := statuses(w, 20, http.MethodPut, `{"state":"stopped"}`, http.Header{"If-Match": {etag}})
	if puts[200] != 1 || puts[412]+puts[500] != 19 {
		t.Errorf("changes of one version: %v", puts)
	}
	if puts := statuses(w, 20, http.MethodPut, `{"state":"running"}`, nil); puts[200] < 1 || puts[200]+puts[500] != 20 {
		t.Errorf("changes: %v", puts)
	}
	if dels := statuses(w, 10, http.MethodDelete, "", nil); dels[204] != 1 || dels[404] != 9 {
		t.Errorf("deletes: %v", dels)
	}
}

// What loses a race against somebody else is told by the store.
func TestALostRace(t *testing.T) {
	w := stocked(t, napi.EraD)
	etag := ask(w, http.MethodGet, "/nics/90b8d0000001", "", nil).Header().Get("Etag")
	header := http.Header{"If-Match": {etag}}
	change(t, w, func(tx *world.Tx) { tx.Arm(world.Fault{Name: world.FaultNAPIRace, Match: "PUT", Times: 1}) })
	r := ask(w, http.MethodPut, "/nics/90b8d0000001", `{"state":"stopped"}`, header)
	if r.Code != 500 || !strings.HasPrefix(r.Body.String(), `{"message":"napi_nics::159123438043137 has etag '`) {
		t.Errorf("%d %s", r.Code, r.Body)
	}
	etag = ask(w, http.MethodGet, "/nics/90b8d0000001", "", nil).Header().Get("Etag")
	change(t, w, func(tx *world.Tx) { tx.Arm(world.Fault{Name: world.FaultNAPIRace, Match: "DELETE", Times: 1}) })
	if r := ask(w, http.MethodDelete, "/nics/90b8d0000001", "", http.Header{"If-Match": {etag}}); r.Code != 412 {
		t.Errorf("%d %s", r.Code, r.Body)
	}
}

// While the server starts, it answers what it does not have, and nothing else.
func TestStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := stocked(t, napi.EraD)
		change(t, w, func(tx *world.Tx) { tx.State.NAPI.Ready = tx.Now.Add(time.Minute) })
		for path, want := range map[string]int{"/ping": 200, "/nics": 503, "/nics/90b8d0000001": 503, "/search/nics": 404, "/nosuch": 404} {
			if got := ask(w, http.MethodGet, path, "", nil); got.Code != want || path == "/ping" && !strings.Contains(got.Body.String(), `"healthy":false`) {
				t.Errorf("%s: %d %s", path, got.Code, got.Body)
			}
		}
		time.Sleep(time.Minute)
		if got := ask(w, http.MethodGet, "/nics", "", nil); got.Code != 200 {
			t.Errorf("%d %s", got.Code, got.Body)
		}
	})
}

func TestPagesAreShuffledWithin(t *testing.T) {
	w := newWorld(t, napi.EraD)
	change(t, w, func(tx *world.Tx) {
		n := tx.State.NAPI
		n.Shuffled = true
		n.Networks = []*world.NAPINetwork{{UUID: "2650c490-0e44-44e9-9d76-3c3ca6b1edda", Name: "admin", Subnet: "10.99.99.0/24", Tag: "admin"}}
		for i := range 4 {
			r := world.NAPINIC{BelongsToType: "zone", BelongsToUUID: vm, State: "running"}
			if i%2 == 0 {
				r.Network, r.IP = n.Networks[0].UUID, fmt.Sprintf("10.99.99.%d", 10+i)
			}
			simtest.AddNIC(tx, fmt.Sprintf("90:b8:d0:00:00:%02x", i), r)
		}
	})
	order := func(path string) (order string) {
		var list []struct{ MAC string }
		if err := json.Unmarshal(ask(w, http.MethodGet, path, "", nil).Body.Bytes(), &list); err != nil {
			t.Fatal(err)
		}
		for _, n := range list {
			order += n.MAC[16:]
		}
		return order
	}
	if all, first, last := order("/nics"), order("/nics?limit=2"), order("/nics?limit=2&offset=2"); all != "1302" || first != "10" || last != "32" {
		t.Errorf("%s; %s, %s", all, first, last)
	}
}

func TestAFullNetwork(t *testing.T) {
	w := newWorld(t, napi.EraD)
	const net = "2650c490-0e44-44e9-9d76-3c3ca6b1edda"
	change(t, w, func(tx *world.Tx) {
		tx.State.NAPI.Networks = []*world.NAPINetwork{{UUID: net, Name: "admin", Subnet: "10.99.99.0/24", Start: "10.99.99.5", End: "10.99.99.5", Tag: "admin"}}
	})
	body := `{"owner_uuid":"` + vm + `","belongs_to_uuid":"` + vm + `","belongs_to_type":"zone"}`
	if r := ask(w, http.MethodPost, "/networks/"+net+"/nics", body, nil); r.Code != 200 || !strings.Contains(r.Body.String(), `"ip":"10.99.99.5"`) {
		t.Errorf("%d %s", r.Code, r.Body)
	}
	r := ask(w, http.MethodPost, "/networks/"+net+"/nics", body, nil)
	if want := `{"code":"SubnetFull","message":"no more free IPs","network_uuid":"` + net + `"}`; r.Code != 507 || r.Body.String() != want {
		t.Errorf("%d %s", r.Code, r.Body)
	}
}
