package propolis

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/serve"
	"github.com/sledctl/sledctl/sim/world"
)

func TestMigrationsThatAreRefused(t *testing.T) {
	const failed = "VM initialization failed: "
	incompatible := failed + "instance specs incompatible: instance specs incompatible: "
	for name, c := range map[string]struct {
		before       func(*pair)
		from         string
		replacements string
		cause        string
		target       string
		source       string
	}{
		"nobody listens there": {nil, "192.168.77.10:1", otherNIC, failed + errNoConnection.Error(), "2 Failed in:Sync", "3 Running"},
		"nobody is there":      {nil, "192.168.78.10:12400", otherNIC, failed + errNoConnection.Error(), "2 Failed in:Sync", "3 Running"},
		"a machine that is stopping": {func(p *pair) {
			p.source.change(func(tx *world.Tx) { tx.State.Processes[0].VM.Timeline[2].State = "Stopping" })
		}, address, otherNIC, failed + errNoConnection.Error(), "2 Failed in:Sync", "3 Stopping"},
		"a machine that is on its way already": {func(p *pair) {
			p.source.change(func(tx *world.Tx) {
				tx.State.Processes[0].VM.Out = &world.Migration{ID: migrationID, Peer: "", Phases: []world.Timepoint{{State: "Sync"}}, End: tx.Now.Add(time.Hour)}
			})
		}, address, otherNIC, failed + errNoConnection.Error(), "2 Failed in:Sync", "3 Running out:Sync"},
		"a component that there is not": {nil, address, `"net1-backend":{"component":"VirtioNetworkBackend","spec":{"vnic_name":"vnic7"}}`,
			incompatible + "the source spec has no VirtioNetworkBackend net1-backend", "4 Failed in:Error", "7 Running out:Error"},
		"a component of another kind": {nil, address, `"disk0-backend":{"component":"VirtioNetworkBackend","spec":{"vnic_name":"vnic7"}}`,
			incompatible + "the source spec has no VirtioNetworkBackend disk0-backend", "4 Failed in:Error", "7 Running out:Error"},
		"a disk that is none": {nil, address, `"net0-backend":{"component":"CrucibleStorageBackend","spec":{"readonly":false,"request_json":"{}"}}`,
			incompatible + "the source spec has no CrucibleStorageBackend net0-backend", "4 Failed in:Error", "7 Running out:Error"},
		"an injector of failures": {nil, address, `"x":{"component":"MigrationFailureInjector","spec":{"fail_exports":1,"fail_imports":0}}`,
			incompatible + "the source spec has no MigrationFailureInjector x", "4 Failed in:Error", "7 Running out:Error"},
		"a link that the target has not": {nil, address, `"net0-backend":{"component":"VirtioNetworkBackend","spec":{"vnic_name":"vnic9"}}`,
			failed + `failed to create viona device for "vnic9": No such device or address (os error 6)`, "3 Failed in:Sync", "7 Running out:Error"},
		"a disk that the target has not": {func(p *pair) {
			if err := p.target.world.Files().Remove("/vms/disk.img"); err != nil {
				p.t.Fatal(err)
			}
		}, address, otherNIC, failed + "failed to create backend of disk0: No such file or directory (os error 2)", "3 Failed in:Sync", "7 Running out:Error"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t)
				p.runs()
				if c.before != nil {
					c.before(p)
				}
				got := p.target.v5("PUT", "/instance", migrationBody(c.from, c.replacements))
				if got.status != 500 {
					t.Errorf("%+v", got)
				}
				p.target.causes(c.cause)
				if p.target.now() != c.target || p.source.now() != c.source {
					t.Errorf("target %q, source %q; want %q, %q", p.target.now(), p.source.now(), c.target, c.source)
				}
			})
		})
	}
}

// A source sends what the target can read, if that says it all.
func TestAMachineMovesToAnOlderServerUnlessItNeedsTheNewer(t *testing.T) {
	for cache, want := range map[string]string{"true": "11 Running in:Finish", "false": "4 Failed in:Error"} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t)
			body := strings.Replace(movable(t), "32]", `32],"has_write_cache":`+cache, 1)
			if got := p.source.do("PUT", "/instance", "6.0.0", body); got.status != 201 {
				t.Fatalf("%+v", got)
			}
			p.source.v5("PUT", "/instance/state", `"Run"`)
			p.target.change(func(tx *world.Tx) { tx.Arm(world.Fault{Name: world.FaultOldServer, Match: "propolis"}) })
			p.migrate()
			if p.target.now() != want {
				t.Errorf("%s: target %s, source %s", cache, p.target.now(), p.source.now())
			}
		})
	}
}

// What a disk has moves along.
func TestADiskWithoutAWriteCacheMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		body := strings.Replace(movable(t), "32]", `32],"has_write_cache":false`, 1)
		if got := p.source.do("PUT", "/instance", "6.0.0", body); got.status != 201 {
			t.Fatalf("%+v", got)
		}
		p.source.v5("PUT", "/instance/state", `"Run"`)
		p.migrate()
		if got := p.target.do("GET", "/instance/spec", "6.0.0", ""); !strings.Contains(got.text, `"has_write_cache":false`) {
			t.Errorf("%+v", got)
		}
	})
}

// causes looks for the cause in the server's log.
func (r *rig) causes(want string) {
	r.t.Helper()
	r.change(func(tx *world.Tx) {
		data, err := host.ReadFile(tx.Files, logName(""))
		if err != nil || !strings.Contains(string(data), string(serve.JSON(want))) {
			r.t.Errorf("log: %v, %s; want %s", err, data, want)
		}
	})
}

// A device that cannot be sent fails when its turn comes, the source having been
// paused: it goes on.
func TestADeviceThatCannotMoveIsFoundLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		body := movable(t, `"bridge":{"type":"pci_pci_bridge","component":{"downstream_bus":1,"pci_path":{"bus":0,"device":9,"function":0}}}`)
		if got := p.source.v5("PUT", "/instance", body); got.status != 201 {
			t.Fatalf("%+v", got)
		}
		p.source.v5("PUT", "/instance/state", `"Run"`)
		if got := p.migrate(); got.status != 201 {
			t.Fatalf("%+v", got)
		}
		if all := p.target.published(); all[len(all)-4] != "7 Migrating/Device" || p.target.now() != "10 Failed in:Error" || !strings.HasSuffix(p.source.now(), "Running out:Error") {
			t.Errorf("%v; source %s", all, p.source.now())
		}
	})
}
