package nicsync

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sim"
	simnapi "github.com/sledctl/sledctl/sim/napi"
	"github.com/sledctl/sledctl/sim/simtest"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zones"
	"github.com/sledctl/sledctl/test/hosttest"
)

const (
	ours   = "564d2cec-64ee-4aca-9e27-d71c02af3b6a"
	theirs = "564df9cf-8c25-4111-a3b0-2f4dafdc1001"
	admin  = "aaaaaaaa-aaaa-aaaa-aaaa-000000000000"
	owner  = "930896af-bf8c-48d4-885c-6573a94b1853"
	server = "10.99.99.12:80"
)

// id is the n-th VM, and mac the n-th NIC.
func id(n int) string  { return fmt.Sprintf("3c7f5393-7c69-4c7c-bc81-%012d", n) }
func mac(n int) string { return fmt.Sprintf("90:b8:d0:%02x:%02x:%02x", n>>16&0xff, n>>8&0xff, n&0xff) }

// rig is a simulated sled with a NAPI near it.
type rig struct {
	t        operationtest.T
	ctx      context.Context
	sled     *sim.Sled
	env      operation.Env
	settings Settings
	mu       sync.Mutex
	asked    []string
	told     []string // warnings
	strayed  []string // lines that who keeps NIC records has no business with
	runs     int      // commands
}

// newRig is closed by the caller, where t.Cleanup would come too late for its
// bubble.
func newRig(t operationtest.T, ctx context.Context, era string) *rig {
	t.Helper()
	r := &rig{t: t, ctx: ctx, sled: sim.New(sim.Options{M2: -1, U2: -1, Links: 1}, hosttest.Files)}
	r.change(func(tx *world.Tx) { tx.State.NAPI = simnapi.New(server, era) })
	r.env = operationtest.New(t, host.Trace(r.sled.Host(), r.hear))
	r.env.Warn = func(err error) { r.mu.Lock(); defer r.mu.Unlock(); r.told = append(r.told, err.Error()) }
	r.settings = Settings{Owner: Owner{CN: ours, Admin: admin}, Server: server, Names: naming.DefaultPrefixes(), AllowNICs: true, LockFile: "/etc/sledctl/nics.lock"}
	return r
}

// hear notes the requests, without the address of the page.
func (r *rig) hear(e host.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	method, rest, _ := strings.Cut(e.Line.Text, " ")
	if strays(e.Line, method, rest) {
		r.strayed = append(r.strayed, e.Line.Text)
	}
	if !slices.Contains([]string{"GET", "PUT", "DELETE", "POST"}, method) {
		r.runs++
		return
	}
	text := strings.NewReplacer("cn_uuid="+ours, "cn", "&limit=1000", "", "&offset=0", "", "90b8d0", "").Replace(e.Line.Text)
	r.asked = append(r.asked, fmt.Sprint(text, " ", e.Status))
}

// strays says whether this is neither a look at zones and links, nor a question or
// write about NICs, nor a file of the operation's own.
func strays(l host.Line, word, rest string) bool {
	switch {
	case l.Kind == host.LineFile:
		return strings.Contains(l.Text, "/etc/")
	case word == "GET":
		return !strings.HasPrefix(rest, "/nics") && !strings.HasPrefix(rest, "/search/nics?")
	case word == "PUT" || word == "DELETE":
		return !strings.HasPrefix(rest, "/nics/")
	}
	return l.Mutates() || !(word == "zoneadm" && strings.HasPrefix(rest, "list ") || word == "dladm" && strings.HasPrefix(rest, "show-"))
}

// requests are those since the last call; reads of single records come in any
// order, and are sorted.
func (r *rig) requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := r.asked
	r.asked = nil
	return asked
}

// writes are those of them that change something.
func writes(requests []string) []string {
	var all []string
	for _, q := range requests {
		if !strings.HasPrefix(q, "GET ") {
			all = append(all, q)
		}
	}
	return all
}

func (r *rig) change(fn func(*world.Tx)) {
	r.t.Helper()
	if err := r.sled.World().Update(context.Background(), func(tx *world.Tx) error { fn(tx); return nil }); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) see(fn func(*world.Tx)) {
	r.t.Helper()
	if err := r.sled.World().View(context.Background(), func(tx *world.Tx) error { fn(tx); return nil }); err != nil {
		r.t.Fatal(err)
	}
}

// vm makes a zone that is a VM as SmartOS has them, with a NIC of the same number.
// Its link is there while it runs.
func (r *rig) vm(n int, state string, attrs ...string) {
	r.change(func(tx *world.Tx) { addVM(r.t, tx, n, state, attrs...) })
}

func addVM(t operationtest.T, tx *world.Tx, n int, state string, attrs ...string) {
	removeVM(t, tx, n)
	z := &world.Zone{Name: id(n), UUID: id(n), State: "installed", Config: world.Config{Brand: "bhyve", Zonepath: "/zones/" + id(n), IPType: "exclusive"}}
	net := world.Resource{Type: "net"}
	for name, value := range map[string]string{"physical": fmt.Sprint("vm", n), "mac-addr": mac(n), "global-nic": "net0"} {
		net.Properties = append(net.Properties, world.Property{Name: name, Values: []string{value}})
	}
	z.Config.Resources = append(z.Config.Resources, net)
	for _, a := range attrs {
		attr := world.Resource{Type: "attr"}
		for name, value := range map[string]string{"name": a, "type": "string", "value": "true"} {
			attr.Properties = append(attr.Properties, world.Property{Name: name, Values: []string{value}})
		}
		z.Config.Resources = append(z.Config.Resources, attr)
	}
	switch state {
	case "configured", "incomplete":
		z.State = state
		if state == "configured" {
			z.UUID = ""
		}
	case "installed":
	default:
		z.Kernel = &world.Kernel{ID: n + 1, State: state, Config: z.Config}
		tx.State.Links = append(tx.State.Links, &world.Link{Name: fmt.Sprint("vm", n), Class: "vnic", Over: "net0", MAC: mac(n), Zone: z.Name, Up: true})
	}
	tx.State.Zones = append(tx.State.Zones, z)
	if err := zones.SaveZone(tx, z); err != nil {
		t.Fatal(err)
	}
}

// removeVM removes a zone as zonecfg delete does.
func removeVM(t operationtest.T, tx *world.Tx, n int) {
	tx.State.Links = slices.DeleteFunc(tx.State.Links, func(l *world.Link) bool { return l.Name == fmt.Sprint("vm", n) })
	if z := tx.FindZone(id(n)); z != nil {
		if err := zones.RemoveZone(tx, z); err != nil {
			t.Fatal(err)
		}
	}
}

// record puts the record of the n-th VM's NIC into NAPI.
func (r *rig) record(n int, cn, state string) {
	r.change(func(tx *world.Tx) { addRecord(tx, n, cn, state) })
}

func addRecord(tx *world.Tx, n int, cn, state string) {
	simtest.AddNIC(tx, mac(n), world.NAPINIC{BelongsToType: "zone", BelongsToUUID: id(n), OwnerUUID: owner, CNUUID: cn, State: state, Created: tx.Now, Modified: tx.Now})
}

// has is the record of the n-th NIC: its sled and state, or "gone".
func (r *rig) has(n int) string {
	said := "gone"
	r.see(func(tx *world.Tx) {
		if rec := tx.State.NAPI.NICs[mac(n)]; rec != nil {
			said = strings.NewReplacer(ours, "ours", theirs, "theirs").Replace(rec.CNUUID + " " + rec.State)
		}
	})
	return said
}

func all() Options { return Options{Backfill: true, Reap: true, State: true, MaxDelete: -1} }

func (r *rig) sync(o Options) (Outcome, error) { return r.settings.Sync(r.ctx, r.env, o) }

func verdictOf(findings []Finding, mac string) Verdict {
	for _, f := range findings {
		if f.MAC == mac {
			return f.Verdict
		}
	}
	return ""
}

var _ operationtest.T = (*testing.T)(nil)
