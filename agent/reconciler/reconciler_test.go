package reconciler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/agent/inventory"
	"github.com/sledctl/sledctl/agent/reconciler"
	"github.com/sledctl/sledctl/peer/dropshot/dropshottest"
	"github.com/sledctl/sledctl/peer/nexus"
	"github.com/sledctl/sledctl/sled/storage"
)

const disk, dataset, zone = "00000000-0000-4000-8000-0000000000d1", "00000000-0000-4000-8000-00000000000b", "00000000-0000-4000-8000-0000000000a1"

// body is a configuration, with a text replaced.
func body(old, new string) []byte {
	const pool = "101964cb-a8ae-45ea-8aa0-399e4ead2671"
	text := fmt.Sprintf(`{"generation":2,"disks":{"%s":{"id":"%[1]s","identity":{"vendor":"1b96","model":"m","serial":"s"},"pool_id":"%s"}},`+
		`"datasets":{"%[3]s":{"id":"%[3]s","name":{"pool_name":"oxp_%[2]s","kind":"debug"},"compression":{"type":"gzip_n","level":9},"quota":107374182400}},`+
		`"zones":{"%[4]s":{"id":"%[4]s","zone_type":{"address":"[::1]:123","type":"internal_ntp"}}},"measurements":[]}`, disk, pool, dataset, zone)
	return []byte(strings.Replace(text, old, new, 1))
}

// What is wanted is applied at once, and again after a minute as long as something is not so; the
// inventory says how far it is, as the sled agent's API has it.
func TestWhatIsWantedIsApplied(t *testing.T) {
	doc := dropshottest.Published(t, "sled-agent-48.0.0.json")
	synctest.Test(t, func(t *testing.T) {
		var kept storage.Assignment
		var fails atomic.Pointer[error] // a sleep orders nothing
		fails.Store(new(error))
		var asked atomic.Int32
		r := reconciler.New(reconciler.Settings{
			Assign: func(_ context.Context, a storage.Assignment) error { kept = a; return nil },
			Apply: func(context.Context) (storage.Assignment, bool, storage.Applied, error) {
				asked.Add(1)
				time.Sleep(time.Second)
				return kept, kept.Generation > 0, storage.Applied{
					Disks: map[uuid.UUID]error{uuid.MustParse(disk): nil}, Datasets: map[uuid.UUID]error{uuid.MustParse(dataset): *fails.Load()},
				}, nil
			},
			Warn: func(err error) { t.Error(err) },
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); r.Run(ctx) }()
		config, refused := api.ParseSledConfig(body("", ""))
		if refused != nil {
			t.Fatal(refused)
		}
		says := func(wanted *api.SledConfig, texts ...string) {
			t.Helper()
			i := inventory.Of(inventory.Seen{Sled: nexus.Sled{Role: nexus.RoleGimlet, CPUFamily: "unknown"}})
			r.Report(&i, wanted)
			data, err := json.Marshal(i)
			if err == nil {
				err = doc.Answer(httptest.NewRequest(http.MethodGet, "/inventory", nil), http.StatusOK, http.Header{"Content-Type": {"application/json"}}, data)
			}
			if err != nil {
				t.Fatalf("%v: %s", err, data)
			}
			for _, text := range texts {
				if !strings.Contains(string(data), text) {
					t.Errorf("no %s in %s", text, data)
				}
			}
		}
		says(nil, `"ledgered_sled_config":null,"last_reconciliation":null,"reconciler_status":{"status":"not_yet_run"}`)
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := asked.Load(); n != 1 {
			t.Errorf("nothing is wanted, and it was applied %d times", n)
		}
		cannot := errors.New("it cannot be")
		fails.Store(&cannot)
		if err := r.Put(ctx, config); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second / 2)
		says(&config, `"ledgered_sled_config":{"generation":2,`, `"status":"running"`)
		time.Sleep(time.Second)
		says(&config, `"status":"idle"`, `"ran_for":{"secs":1,"nanos":0}`, `"`+disk+`":{"result":"ok"}`, `"`+dataset+`":{"result":"err","message":"it cannot be"}`, `"`+zone+`":{"result":"err"`)
		fails.Store(new(error))
		time.Sleep(time.Minute + time.Second)
		says(&config, `"`+dataset+`":{"result":"ok"}`)
		time.Sleep(time.Hour)
		if n := asked.Load(); n != 3 {
			t.Errorf("it was applied %d times", n)
		}
		cancel()
		<-done
	})
}

// What cannot be read, and an image, is refused; what means the same is the same.
func TestConfigurations(t *testing.T) {
	for _, c := range []struct{ old, new, says string }{
		{`"generation":2,`, ``, "missing field `generation`"},
		{`"measurements":[]`, `"x":[]`, "missing field `measurements`"},
		{`"gzip_n"`, `"zstd"`, "unknown variant `zstd`"},
		{`"level":9`, `"level":10`, "unknown variant `gzip_n`"},
		{`oxp_`, `rpool_`, "pool_name"},
		{`"` + dataset + `":`, `"` + disk + `":`, "does not match id"},
		{`"` + zone + `":`, `"` + disk + `":`, "does not match id"},
		{`"measurements":[]`, `"measurements":[{"hash":"ab"}]`, "sled config is invalid: Artifact ab not found"},
		{`"zone_type"`, `"image_source":{"type":"artifact","hash":"cd"},"zone_type"`, "sled config is invalid: Artifact cd not found"},
		{`"measurements"`, `"host_phase_2":{"slot_a":{"type":"current_contents"},"slot_b":{"type":"artifact","hash":"ef"}},"measurements"`, "sled config is invalid: Artifact ef not found"},
	} {
		if _, refused := api.ParseSledConfig(body(c.old, c.new)); refused == nil || refused.Status != 400 || !strings.Contains(refused.Message, c.says) {
			t.Errorf("%s: %v, want %s", c.new, refused, c.says)
		}
	}
	bodyOf := func(data []byte) string {
		c, refused := api.ParseSledConfig(data)
		if refused != nil {
			t.Fatal(refused)
		}
		a, err := c.Assignment()
		if err != nil || len(a.Disks) != 1 || a.Datasets[0].Compression != "gzip-9" || a.Datasets[0].Quota != 100<<30 {
			t.Errorf("%+v, %v", a, err)
		}
		return string(a.Body)
	}
	one := bodyOf(body("", ""))
	if same := bodyOf(body(`"address":"[::1]:123","type":"internal_ntp"`, `"type":"internal_ntp", "address":"[::1]:123"`)); same != one {
		t.Errorf("%s\n%s", one, same)
	}
	if other := bodyOf(body("[::1]:123", "[::1]:124")); other == one {
		t.Error("another zone is the same")
	}
}
