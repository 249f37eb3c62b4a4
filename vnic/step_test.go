package vnic

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/test/steptest"
)

const mac = "02:08:20:a1:00:0f"

// sled is a simulated sled with the etherstub stub0, and what changed on it.
type sled struct {
	t *testing.T
	*sim.Sled
	steptest.Noted
}

func newSled(t *testing.T, mode world.Mode) *sled {
	t.Helper()
	s := &sled{t: t, Sled: sim.New(sim.Options{Mode: mode}, hosttest.Files)}
	t.Cleanup(s.Close)
	s.Noted.Host = s.Sled.Host()
	s.do(CreateEtherstub{Name: "stub0"})
	s.Ran = nil
	return s
}

type step = steptest.Step

// do does steps, which must succeed and do what they explain.
func (s *sled) do(steps ...step) {
	s.t.Helper()
	s.Does(s.t, steps...)
}

// change looks behind the doors.
func (s *sled) change(fn func(*world.Tx)) {
	s.t.Helper()
	if err := s.World().Update(s.t.Context(), func(tx *world.Tx) error { fn(tx); return nil }); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sled) links() []Link {
	s.t.Helper()
	links, _, err := List(s.t.Context(), s)
	if err != nil {
		s.t.Fatal(err)
	}
	return links
}

func (s *sled) link(name string) Link {
	for _, l := range s.links() {
		if l.Name == name {
			return l
		}
	}
	return Link{}
}

func TestCreateAndDelete(t *testing.T) {
	for _, mode := range []world.Mode{world.OmniOS, world.Helios, world.SmartOS} {
		s := newSled(t, mode)
		before := s.links()
		create := Create{Name: "v0", Over: "stub0", MAC: mac, VLAN: 7, MTU: 1500}
		s.do(create)
		want := Link{Name: "v0", Class: "vnic", Over: "stub0", MAC: mac, VLAN: 7, MTU: 1500, State: "up"}
		if diff := cmp.Diff(want, s.link("v0")); diff != "" {
			t.Errorf("%s: %s", mode, diff)
		}
		s.do(create.Undo().(step))
		if diff := cmp.Diff(before, s.links()); diff != "" {
			t.Errorf("%s: after the undo: %s", mode, diff)
		}
		s.do(DeleteEtherstub{Name: "stub0"})
	}
}

func TestTheMTUOfAVNICThatIsThereIsSet(t *testing.T) {
	s := newSled(t, world.OmniOS)
	s.do(Create{Name: "v0", Over: "stub0", MAC: mac})
	s.do(SetMTU{Name: "v0", MAC: mac, Over: "stub0", MTU: 1500})
	if got := s.link("v0").MTU; got != 1500 {
		t.Errorf("MTU %d", got)
	}
	s.Ran = nil
	other := SetMTU{Name: "v0", MAC: "02:08:20:00:00:01", Over: "stub0", MTU: 1400}
	if err := other.Do(t.Context(), s); !errors.Is(err, host.ErrRefused) || s.Ran != nil {
		t.Errorf("foreign: %v, ran %v", err, s.Ran)
	}
}

// A guest VNIC is held to its limits while a zone has it; to set them again does nothing.
func TestTheLimitsOfAVNICAreSet(t *testing.T) {
	s := newSled(t, world.OmniOS)
	s.do(Create{Name: "v0", Over: "stub0", MAC: mac})
	s.change(func(tx *world.Tx) {
		if err := network.LendLink(tx, "z1", "v0"); err != nil {
			t.Error(err)
		}
	})
	mine, own := Limits{OwnMAC: true}, Limits{OwnMAC: true, IPs: AllowedIPs([]string{"fd00::5", "10.0.0.5"}), Mbps: 100}
	var before Limits
	for _, want := range []Limits{mine, mine, own, own, {OwnMAC: true, IPs: "10.0.0.5", Mbps: 200}, {OwnMAC: true, Mbps: 50}, mine, own, {}, {Mbps: 7}} {
		set := SetLimits{Name: "v0", MAC: mac, Over: "stub0", Limits: want, Before: before, Changed: true}
		s.do(set)
		s.do(set.Undo().(SetLimits))
		if got, err := LimitsOf(t.Context(), s, "v0"); got != before || err != nil {
			t.Errorf("%+v after undo, %+v before, %v", got, before, err)
		}
		s.do(set)
		before = want
		if got, err := LimitsOf(t.Context(), s, "v0"); got != want || err != nil {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if got, err := LimitsOf(t.Context(), s, "v9"); got.OwnMAC || !errors.Is(err, host.ErrNotFound) {
		t.Errorf("of none: %+v, %v", got, err)
	}
	s.Ran = nil
	other := SetLimits{Name: "v0", MAC: "02:08:20:00:00:01", Over: "stub0", Limits: own}
	if err := other.Do(t.Context(), s); !errors.Is(err, host.ErrRefused) || s.Ran != nil {
		t.Errorf("foreign: %v, ran %v", err, s.Ran)
	}
	for said, lacks := range map[string]string{
		"protection:mac-nospoof,ip-nospoof\nallowed-ips:fd00\\:\\:5/128,10.0.0.5/32\nmaxbw:   99.500": "", "protection:mac-nospoof\nallowed-ips:10.0.0.5,fd00\\:\\:5": "without ip-nospoof for 10.0.0.5,fd00::5",
		"protection:mac-nospoof,ip-nospoof\nallowed-ips:fd00\\:\\:5,10.0.0.5\nmaxbw:  100.001": "without maxbw=100M",
		"protection:ip-nospoof\nallowed-ips:":                                                  "without mac-nospoof",
		"protection:mac-nospoof,ip-nospoof\nallowed-ips:fd00\\:\\:5,10.0.0.5\nmaxbw:  50":      "with maxbw=50M",
	} {
		if got, err := parseLimits([]byte(said + "\n")); got.Differs(own) != lacks || err != nil {
			t.Errorf("%s: differs %q, %v", said, got.Differs(own), err)
		}
	}
	if got := own.Differs(mine); got != "with ip-nospoof for 10.0.0.5,fd00::5" {
		t.Errorf("more than is wanted: %q", got)
	}
	for _, bad := range []string{"protection", "mtu:1500", "protection:a:b", "maxbw:fast"} {
		if _, err := parseLimits([]byte(bad + "\n")); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestListShowsWhereALinkIs(t *testing.T) {
	s := newSled(t, world.OmniOS)
	s.do(Create{Name: "v0", Over: "stub0", MAC: mac})
	s.change(func(tx *world.Tx) {
		if err := network.LendLink(tx, "z1", "v0"); err != nil {
			t.Error(err)
		}
	})
	if got := s.link("v0").Zone; got != "z1" {
		t.Errorf("v0 is in %q", got)
	}
	if got := s.link("net0"); got.Class != "phys" || got.Zone != "" || got.MAC != "" {
		t.Errorf("net0: %+v", got)
	}
}

// Also where dladm would make a second link of the name.
func TestCreateRefusesANameThatIsThere(t *testing.T) {
	for _, mode := range []world.Mode{world.OmniOS, world.Helios} {
		s := newSled(t, mode)
		create := Create{Name: "v0", Over: "stub0", MAC: mac}
		s.do(create)
		s.change(func(tx *world.Tx) {
			if err := network.LendLink(tx, "z1", "v0"); err != nil {
				t.Error(err)
			}
		})
		s.Ran = nil
		if err := create.Do(t.Context(), s); !errors.Is(err, host.ErrExists) || s.Ran != nil {
			t.Errorf("%s: %v, ran %v", mode, err, s.Ran)
		}
	}
}

func TestCreateFails(t *testing.T) {
	s := newSled(t, world.OmniOS)
	s.do(Create{Name: "v0", Over: "stub0", MAC: mac})
	for want, create := range map[error]Create{
		ErrMACInUse:      {Name: "v1", Over: "stub0", MAC: mac},
		host.ErrNotFound: {Name: "v1", Over: "nope0", MAC: mac},
		host.ErrRefused:  {Name: "v1", Over: "net0", MAC: mac, VLAN: 1},
	} {
		if err := create.Do(t.Context(), s); !errors.Is(err, want) {
			t.Errorf("%+v: %v, want %v", create, err, want)
		}
	}
	for _, create := range []Create{
		{Name: "bad-name", Over: "stub0", MAC: mac}, {Name: "v1", Over: "", MAC: mac}, {Name: "v1", Over: "stub0"},
		{Name: "v1", Over: "stub0", MAC: "2:8:20:a1:0:f"}, {Name: "v1", Over: "stub0", MAC: mac, VLAN: 4095}, {Name: "v1", Over: "stub0", MAC: mac, MTU: -1},
	} {
		s.Ran = nil
		if err := create.Do(t.Context(), s); err == nil || s.Ran != nil || create.Explain() != nil {
			t.Errorf("%+v: %v, ran %v, explains %v", create, err, s.Ran, create.Explain())
		}
	}
}

// A step that half-works cleans up after itself.
func TestAnMTUThatCannotBeSetTakesTheVNICWithIt(t *testing.T) {
	s := newSled(t, world.OmniOS)
	for name, spoil := range map[string]func(*world.Tx){
		"out of range": func(*world.Tx) {},
		"command fails": func(tx *world.Tx) {
			tx.Arm(world.Fault{Name: world.FaultFail, Match: "dladm set-linkprop", Times: 1, Exit: 1, Text: "dladm: warning: cannot set link property 'mtu' on 'v0': link busy"})
		},
	} {
		s.change(spoil)
		create := Create{Name: "v0", Over: "stub0", MAC: mac, MTU: 9001}
		if name == "command fails" {
			create.MTU = 1500
		}
		if err := create.Do(t.Context(), s); err == nil {
			t.Errorf("%s: no error", name)
		}
		if l := s.link("v0"); l.Name != "" {
			t.Errorf("%s: %+v is left", name, l)
		}
	}
}

func TestDeleteChecksWhoseItIs(t *testing.T) {
	s := newSled(t, world.OmniOS)
	s.do(Create{Name: "v0", Over: "stub0", MAC: mac})
	for name, d := range map[string]Delete{
		"another address": {Name: "v0", MAC: "02:08:20:00:00:01", Over: "stub0"},
		"another link":    {Name: "v0", MAC: mac, Over: "net0"},
	} {
		err := d.Do(t.Context(), s)
		if other, ok := errors.AsType[*OtherError](err); !ok || !errors.Is(err, host.ErrRefused) || other.MAC != mac {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (Delete{Name: "stub0", MAC: mac, Over: "x0"}).Do(t.Context(), s); !errors.Is(err, host.ErrRefused) {
		t.Errorf("an etherstub: %v", err)
	}
	if err := (Delete{Name: "v9", MAC: mac, Over: "stub0"}).Do(t.Context(), s); !errors.Is(err, host.ErrNotFound) {
		t.Errorf("absent: %v", err)
	}
	if err := (DeleteEtherstub{Name: "stub0"}).Do(t.Context(), s); !errors.Is(err, host.ErrBusy) {
		t.Errorf("an etherstub in use: %v", err)
	}
	if err := (CreateEtherstub{Name: "stub0"}).Do(t.Context(), s); !errors.Is(err, host.ErrExists) {
		t.Errorf("an etherstub that is there: %v", err)
	}
}

// script is a host that answers with these results, one after the other.
type script struct {
	results []host.Result
	ran     []string
}

func (s *script) Run(_ context.Context, c host.Command) (host.Result, error) {
	s.ran = append(s.ran, strings.Join(c.Args, " "))
	r := s.results[0]
	if len(s.results) > 1 {
		s.results = s.results[1:]
	}
	return r, nil
}

func (s *script) Dial(context.Context, string, string) (net.Conn, error) { panic("no network") }

func (*script) DeviceVersion(context.Context, host.Device) (int, error) { return 0, fs.ErrNotExist }
func (s *script) Files() host.Files                                     { panic("no files") }

func says(exit int, stdout, stderr string) host.Result {
	return host.Result{Exit: exit, Stdout: []byte(stdout), Stderr: []byte(stderr)}
}

// An MTU that was set counts as it is read back.
func TestAnMTUIsReadBack(t *testing.T) {
	set := says(0, "", "")
	for name, c := range map[string]struct {
		reads host.Result
		want  string
	}{
		"as it was set":   {says(0, "1500\n", ""), ""},
		"another":         {says(0, "9000\n", ""), "has an MTU of 9000 although 1500 was set"},
		"none":            {says(0, "\n", ""), "read the MTU"},
		"dladm says why":  {says(1, "", "dladm: link busy\n"), "read the MTU"},
		"dladm says no":   {says(0, "--\n", ""), "read the MTU"},
		"more than a row": {says(0, "1500\n9000\n", ""), "read the MTU"},
	} {
		s := &script{results: []host.Result{set, c.reads}}
		err := setMTU(t.Context(), s, "v0", 1500)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestABusyVNICIsTriedAgain(t *testing.T) {
	identity := says(0, `stub0:2\:8\:20\:a1\:0\:f`+"\n", "")
	busy := says(1, "", "dladm: vnic deletion failed: link busy\n")
	gone := says(1, "", "dladm: invalid vnic name 'v0': object not found\n")
	other := says(0, `stub0:2\:8\:20\:a1\:0\:e`+"\n", "")
	d := Delete{Name: "v0", MAC: mac, Over: "stub0"}
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			results []host.Result
			took    time.Duration
			want    error
		}{
			"until it is not":          {[]host.Result{identity, busy, identity, busy, identity, busy, identity, says(0, "", "")}, 140 * time.Millisecond, nil},
			"until it is gone":         {[]host.Result{identity, busy, gone}, 20 * time.Millisecond, nil},
			"but not if it is another": {[]host.Result{identity, busy, other}, 20 * time.Millisecond, host.ErrRefused},
			"until the deadline":       {append([]host.Result{identity}, cycle(20, busy, identity)...), 5 * time.Second, host.ErrBusy},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			began := time.Now()
			err := d.Do(ctx, &script{results: c.results})
			if took := time.Since(began); !errors.Is(err, c.want) || took != c.took {
				t.Errorf("%s: %v after %v, want %v after %v", name, err, took, c.want, c.took)
			}
			cancel()
		}
	})
}

func cycle(times int, results ...host.Result) (all []host.Result) {
	for range times {
		all = append(all, results...)
	}
	return all
}

// A link that comes between the listings makes List look again.
func TestListLooksAgainWhenLinksChange(t *testing.T) {
	h := &changing{}
	links, zoned, err := List(t.Context(), h)
	if err != nil || len(links) != 1 || !zoned || h.looks != 2 {
		t.Errorf("%v, %v, %v after %d looks", links, zoned, err, h.looks)
	}
	h = &changing{always: true}
	links, _, err = List(t.Context(), h)
	if want := []Link{{Name: "net0", Class: "phys", MTU: 1500, State: "up"}, {Name: "v0", Class: "vnic", MTU: 1500, State: "up"}}; err != nil || !cmp.Equal(want, links) {
		t.Errorf("links that always change: %v, %v", links, err)
	}
}

// changing lists one VNIC more in its first look at links.
type changing struct {
	script
	always bool
	looks  int
}

func (c *changing) Run(_ context.Context, command host.Command) (host.Result, error) {
	if command.Args[0] == "show-vnic" {
		return says(0, "", ""), nil
	}
	c.looks++
	if c.looks == 1 || c.always {
		return says(0, "net0:phys:1500:up\nv0:vnic:1500:up\n", ""), nil
	}
	return says(0, "net0:phys:1500:up\n", ""), nil
}

// Nobody is asked who would hold the links while he looks (show_linkprop_onelink in
// usr/src/cmd/dladm/dladm.c), and where show-vnic has no ZONE the listing says so.
func TestListHoldsNoLink(t *testing.T) {
	for mode, zoned := range map[world.Mode]bool{world.OmniOS: true, world.SmartOS: true, world.Helios: false} {
		s := newSled(t, mode)
		s.do(Create{Name: "v0", Over: "stub0", MAC: mac})
		s.change(func(tx *world.Tx) {
			tx.Arm(world.Fault{Name: world.FaultFail, Match: "dladm show-linkprop"})
			network.FindLink(tx, "v0").Zone = "z1"
		})
		links, told, err := List(t.Context(), s)
		i := slices.IndexFunc(links, func(l Link) bool { return l.Name == "v0" })
		if err != nil || told != zoned || i < 0 || (links[i].Zone == "z1") != zoned {
			t.Errorf("%s: %v, %v, %v", mode, links, told, err)
		}
	}
}

func TestZoneOf(t *testing.T) {
	s := newSled(t, world.Helios)
	s.do(Create{Name: "v0", Over: "stub0", MAC: mac})
	s.change(func(tx *world.Tx) { network.FindLink(tx, "v0").Zone = "z1" })
	for link, want := range map[string]string{"v0": "z1", "stub0": ""} {
		if got, err := ZoneOf(t.Context(), s, link); got != want || err != nil {
			t.Errorf("%s: %q, %v", link, got, err)
		}
	}
	if _, err := ZoneOf(t.Context(), s, "v9"); !errors.Is(err, host.ErrNotFound) {
		t.Errorf("a missing link: %v", err)
	}
}

func TestQueriesThatFailAreNotAnAbsence(t *testing.T) {
	broken := says(1, "", "dladm: could not open /dev/dld: permission denied\n")
	for name, do := range map[string]func(host.Host) error{
		"list":   func(h host.Host) error { _, _, err := List(t.Context(), h); return err },
		"create": func(h host.Host) error { return Create{Name: "v0", Over: "stub0", MAC: mac}.Do(t.Context(), h) },
		"delete": func(h host.Host) error { return Delete{Name: "v0", Over: "stub0", MAC: mac}.Do(t.Context(), h) },
	} {
		if err := do(&parallel{result: broken}); !errors.Is(err, host.ErrPrivileges) || errors.Is(err, host.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// parallel answers everything alike.
type parallel struct {
	script
	result host.Result
}

func (p *parallel) Run(context.Context, host.Command) (host.Result, error) { return p.result, nil }
