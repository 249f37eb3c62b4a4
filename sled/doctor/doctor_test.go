package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/ipadm"
	"github.com/sledctl/sledctl/illumos/reservoir"
	"github.com/sledctl/sledctl/illumos/system"
	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zfs"
)

// Every check has an id of its own, a page, and questions that exist.
func TestEveryCheckIsComplete(t *testing.T) {
	page, err := os.ReadFile("../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	ids, known := map[string]bool{}, asks()
	asked := map[Question]bool{}
	for _, c := range Checks() {
		if ids[c.ID] || c.Group == "" || c.About == "" || c.Judge == nil || len(c.Asks) == 0 {
			t.Errorf("%+v", c)
		}
		ids[c.ID] = true
		if !strings.Contains(string(page), "\n### "+c.ID+"\n") {
			t.Errorf("docs/doctor.md has no heading for %s", c.ID)
		}
		for _, q := range c.Asks {
			if asked[q] = true; known[q] == nil {
				t.Errorf("%s asks %q, which is no question", c.ID, q)
			}
		}
	}
	for q := range known {
		if !asked[q] {
			t.Errorf("no check asks %q", q)
		}
	}
}

// For each check there is a script in which it fails on a simulated sled, or at least warns.
func TestEveryCheckFailsInAScript(t *testing.T) {
	scripts, err := filepath.Glob("../../commands/testdata/script/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatal(len(scripts), err)
	}
	var all strings.Builder
	for _, name := range scripts {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, c := range Checks() {
		if !strings.Contains(all.String(), `fail\t`+c.ID+`\t`) && !strings.Contains(all.String(), `warn\t`+c.ID+`\t`) {
			t.Errorf("no script has a line ^fail\\t%s\\t", c.ID)
		}
	}
}

// judged is a case of one check: what was seen, and what it comes to.
type judged struct {
	id   string
	seen Seen
	want Verdict
	says string // part of the evidence, or of the repair
}

func judgeAll(t *testing.T, cases map[string]judged) {
	t.Helper()
	for name, c := range cases {
		found := false
		for _, check := range Checks() {
			if check.ID != c.id {
				continue
			}
			found = true
			got := judge([]Check{check}, c.seen)[0]
			if got.Verdict != c.want || !strings.Contains(got.Evidence+"; "+got.Repair(), c.says) {
				t.Errorf("%s: %s, %q, %q; want %s, %q", name, got.Verdict, got.Evidence, got.Repair(), c.want, c.says)
			}
		}
		if !found {
			t.Errorf("%s: no check %s", name, c.id)
		}
	}
}

func TestTheSystem(t *testing.T) {
	kernel := func(version string) Seen { return Seen{Release: "X 1", Kernel: system.ParseKernel(version)} }
	judgeAll(t, map[string]judged{
		"OmniOS":          {"release", kernel("omnios-r151058-1"), OK, "X 1"},
		"SmartOS":         {"release", kernel("joyent_20240111T000000Z"), OK, "NIC records only"},
		"another":         {"release", kernel("illumos-5a1b2c"), Warn, "X 1 is not a distribution"},
		"new":             {"kernel", kernel("omnios-r151058-1"), OK, ""},
		"bloody":          {"kernel", kernel("omnios-master-1"), OK, ""},
		"r151056":         {"kernel", kernel("omnios-r151056-1"), Warn, "2dc64374"},
		"r151050":         {"kernel", kernel("omnios-r151050-1"), Warn, "2dc64374"},
		"r151048":         {"kernel", kernel("omnios-r151048-1"), Fail, "upgrade the system"},
		"Helios":          {"kernel", kernel("helios-2.0.23000"), OK, ""},
		"in the global":   {"global-zone", Seen{Zone: "global"}, OK, ""},
		"in a zone":       {"global-zone", Seen{Zone: "z1"}, Fail, "log in to the global zone, then run: pfexec sledctl doctor"},
		"all":             {"privileges", Seen{Privileges: system.Privileges{Effective: "all"}}, OK, ""},
		"who reads":       {"privileges", Seen{Privileges: system.Privileges{User: 100, Effective: "basic,file_dac_read,file_dac_search"}}, Warn, "ledger show, nics list, "},
		"a zone's":        {"privileges", Seen{Privileges: system.Privileges{Effective: "zone"}}, Fail, "are zone"},
		"not asked":       {"privileges", Seen{Unknown: map[Question]error{askPrivileges: errors.New("no")}}, Warn, "could not ask: no"},
		"not asked, page": {"privileges", Seen{Unknown: map[Question]error{askPrivileges: errors.New("no")}}, Warn, "read docs/doctor.md#privileges"},
	})
}

func TestTheStorage(t *testing.T) {
	const m2 = "oxi_a462a7f7-b628-40fe-80ff-4e4189e2d62b"
	pool := func(name, health, failmode, device string) Seen {
		return Seen{Pools: []zfs.Pool{{Name: name, Health: health, Failmode: failmode, Devices: []zfs.Device{{Name: device}}}}}
	}
	on := func(special, dir, kind, device string) Seen {
		s := pool("rpool", "ONLINE", "wait", device)
		s.Mounts, s.Ledger = []system.Mount{{Special: special, Directory: dir, Type: kind}}, []Place{{Directory: "/var/ledger"}}
		return s
	}
	at := time.Date(2026, 11, 26, 3, 0, 0, 0, time.UTC)
	judgeAll(t, map[string]judged{
		"online":       {"pools", pool("rpool", "ONLINE", "wait", "c0"), OK, "1 pools"},
		"degraded":     {"pools", pool("rpool", "DEGRADED", "wait", "c0"), Warn, "run: zpool clear rpool"},
		"suspended":    {"pools", pool("rpool", "SUSPENDED", "wait", "c0"), Fail, "bring the disk back, then run: zpool clear rpool"},
		"waits":        {"failmode", pool(m2, "ONLINE", "wait", "c0"), Fail, "zpool set failmode=continue " + m2},
		"continues":    {"failmode", pool(m2, "ONLINE", "continue", "c0"), OK, "on 1 pools"},
		"root waits":   {"failmode", pool("rpool", "ONLINE", "wait", "c0"), OK, "on 0 pools"},
		"nowhere":      {"ledger-place", pool("rpool", "ONLINE", "wait", "c0"), Fail, "sledctl bootstrap --format-blank"},
		"later":        {"ledger-place", pool(m2, "ONLINE", "continue", "c0"), OK, "none yet"},
		"on a disk":    {"ledger-place", on("rpool/ROOT/omnios", "/", "zfs", "/dev/dsk/c0t0d0"), OK, "on rpool/ROOT/omnios"},
		"on tmpfs":     {"ledger-place", on("swap", "/var", "tmpfs", "/dev/dsk/c0t0d0"), Fail, "a reboot empties it"},
		"in RAM":       {"ledger-place", on("rpool/ROOT/ramdisk", "/", "zfs", "/devices/pseudo/ramdisk@1024:rpool"), Fail, "a RAM disk"},
		"not mounted":  {"ledger-place", on("rpool/x", "/x", "zfs", "/dev/dsk/c0t0d0"), Warn, "no file system"},
		"flushed":      {"sync", Seen{Sync: map[string]string{"a": "standard", "b": "always"}}, OK, "2 datasets"},
		"not flushed":  {"sync", Seen{Sync: map[string]string{"a": "disabled", "b": "disabled"}}, Fail, "zfs set sync=standard a && zfs set sync=standard b"},
		"time":         {"clock", Seen{Now: at, Ledger: []Place{{Written: at.Add(-time.Hour)}, {}}}, OK, "2026-11-26T03:00:00Z"},
		"time is past": {"clock", Seen{Now: at, Ledger: []Place{{Written: at.Add(time.Hour)}}}, Fail, "written at 2026-11-26T04:00:00Z"},
	})
}

func TestTheMemory(t *testing.T) {
	const gib = 1 << 30
	of := func(free, allocated, transient uint64, s Settings, r Recorded) Seen {
		s.Memory = 2 * gib
		return Seen{Settings: s, Records: r, Reservoir: reservoir.State{Free: free, Allocated: allocated, Transient: transient}}
	}
	large := Recorded{Largest: 8 * gib, Instance: "web1"}
	judgeAll(t, map[string]judged{
		"none":               {"reservoir", of(0, 0, 0, Settings{}, large), Warn, "set instance.reservoir to auto, or to 8G or more, then run: sledctl bootstrap"},
		"none, of an image":  {"reservoir", of(0, 0, 0, Settings{Image: true}, Recorded{}), Fail, "an instance needs 2G"},
		"none, is not used":  {"reservoir", of(0, 0, gib, Settings{}, large), OK, "from outside of it (1G)"},
		"too small":          {"reservoir", of(gib, 3*gib, 0, Settings{}, large), Fail, "the reservoir is 4G, and web1 needs 8G"},
		"enough":             {"reservoir", of(gib, 8*gib, 0, Settings{}, large), OK, "9G, 1G of it free"},
		"not as configured":  {"reservoir", of(gib, 0, 0, Settings{Reservoir: 2 * gib}, Recorded{}), Fail, "run: sledctl bootstrap"},
		"plenty":             {"swap", Seen{Swap: system.Swap{Available: 8 * gib}}, OK, "8G"},
		"little":             {"swap", Seen{Swap: system.Swap{Available: gib}}, Warn, "1G"},
		"none left, of swap": {"swap", Seen{Swap: system.Swap{Available: 1 << 20}}, Fail, "1M of virtual memory"},
	})
}

func TestTheLinks(t *testing.T) {
	over := func(class, state string, mtu int, s Settings) Seen {
		return Seen{Settings: s, Route: "net0", Links: []vnic.Link{{Name: "net0", Class: class, State: state, MTU: mtu}}}
	}
	judgeAll(t, map[string]judged{
		"of the route":   {"control-link", over("phys", "up", 1500, Settings{}), OK, "net0, of class phys"},
		"no link":        {"control-link", Seen{}, Fail, "there is no default route"},
		"another":        {"control-link", over("phys", "up", 1500, Settings{ControlLink: "net7"}), Fail, "link net7 does not exist"},
		"stub to come":   {"control-link", over("phys", "up", 1500, Settings{Etherstub: "stub0"}), OK, "bootstrap makes it"},
		"over a VNIC":    {"control-link", over("vnic", "up", 1500, Settings{}), Fail, "of class vnic"},
		"unplugged":      {"control-link", over("phys", "down", 1500, Settings{}), Warn, "net0 is down"},
		"MTU":            {"link-mtu", over("phys", "up", 1500, Settings{}), OK, "1500"},
		"MTU of images":  {"link-mtu", over("phys", "up", 1500, Settings{Image: true}), Fail, "then run: dladm set-linkprop -p mtu=9000 net0"},
		"MTU configured": {"link-mtu", over("etherstub", "up", 1500, Settings{MTU: 8000}), Fail, "network.mtu is 8000"},
		"MTU of none":    {"link-mtu", Seen{}, OK, "no control link yet"},
		"a route":        {"default-route", Seen{Route: "net0"}, OK, "net0"},
		"no route":       {"default-route", Seen{}, Warn, "route -p add default GATEWAY"},
		"alone":          {"duplicate-addresses", Seen{Addresses: []ipadm.Address{{Object: "net0/v4", State: "ok"}}}, OK, "1 addresses"},
		"twice":          {"duplicate-addresses", Seen{Addresses: []ipadm.Address{{Object: "net0/v4", State: "duplicate"}}}, Fail, "net0/v4"},
	})
}

func TestTheWorstComeFirstAndAreTheVerdict(t *testing.T) {
	all := []Check{
		{ID: "a", Judge: func(Seen) Finding { return fine("a") }},
		{ID: "b", Judge: func(Seen) Finding { return warns("b") }},
		{ID: "c", Judge: func(Seen) Finding { return fails("c").then("x", "y") }},
	}
	r := Result{Checks: judge(all, Seen{}), Ignored: []string{"d"}, Verdict: Fail}
	if got := r.Checks[0].ID + r.Checks[1].ID + r.Checks[2].ID; got != "cba" {
		t.Error(got)
	}
	if got := r.Line(); got != "1 fail, 1 warn, 1 ok, 1 ignored" {
		t.Error(got)
	}
	err := r.Err()
	failed, ok := errors.AsType[*FailedError](err)
	if !ok || err.Error() != "check failed: c: c" || failed.Hint() != "run: x && y" || fault.Of(err) != fault.Refused {
		t.Errorf("%v", err)
	}
	r.Checks = judge(append(all, all[2]), Seen{})
	if got := r.Err().Error(); got != "2 checks failed: c, c" {
		t.Error(got)
	}
	if (Result{Verdict: Warn}).Err() != nil {
		t.Error("a warning is no failure")
	}
}

// A result is kept and read again; one that cannot be read is told.
func TestTheLastResultIsKept(t *testing.T) {
	sled := sim.New(sim.Options{}, hosttest.Files)
	t.Cleanup(sled.Close)
	files, s := sled.Host().Files(), Settings{RunDir: "/var/run/sledctl", Server: Server{
		Program: packaging.Program{File: "/opt/oxide/propolis-server/bin/propolis-server"}, Bootrom: "/opt/oxide/propolis-server/blob/OVMF_CODE.fd",
		CheckBootrom: func(string, int64) error { return nil },
	}}
	if last, err := Last(files, s.RunDir); last != nil || err != nil {
		t.Errorf("%+v, %v", last, err)
	}
	at := time.Date(2026, 11, 26, 3, 0, 0, 0, time.UTC)
	r, err := s.Examine(t.Context(), sled.Host(), func() time.Time { return at }, []string{"kernel"})
	if err != nil || r.Verdict == Fail || !r.Time.Equal(at) || len(r.Checks) != len(Checks())-1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := s.Keep(t.Context(), files, r); err != nil {
		t.Fatal(err)
	}
	lock, err := files.Lock(t.Context(), "/var/run/sledctl/doctor.lock", host.LockExclusive)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Keep(t.Context(), files, Result{Verdict: Fail}); err != nil {
		t.Error(err)
	}
	if err := lock.Unlock(); err != nil {
		t.Error(err)
	}
	last, err := Last(files, s.RunDir)
	if err != nil || last.Line() != r.Line() || !last.Time.Equal(at) {
		t.Errorf("%+v, %v", last, err)
	}
	if err := host.WriteFile(files, "/var/run/sledctl/doctor.json", []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Last(files, s.RunDir); err == nil {
		t.Error("half a result was read")
	}
}

func TestACheckToIgnoreMustExist(t *testing.T) {
	_, err := Settings{}.Examine(t.Context(), nil, time.Now, []string{"kernal"})
	if unknown, ok := errors.AsType[*UnknownCheckError](err); !ok || unknown.ID != "kernal" || fault.Of(err) != fault.Usage {
		t.Errorf("%v", err)
	}
}
