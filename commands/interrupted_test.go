package commands_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
)

// What becomes of a verb that is killed, or whose host fails it, at every
// point of it. Time is not real in these tests: deadlines and pauses cost
// nothing.

// interruption is a verb and the sled on which it is interrupted.
type interruption struct {
	name   string
	ready  []string // command lines that lead to where the verb begins
	line   string   // the verb
	bare   bool     // begins on a sled that is not prepared
	image  bool     // on a sled where zones are installed from images
	litter bool     // begins on a sled with things of ours that nobody needs
}

func interruptions() []interruption {
	const web1 = "instance ensure web1 --nic over=net0 --nic over=net1,vlan=7"
	return []interruption{
		{name: "bootstrap", line: "bootstrap", bare: true},
		{name: "ensure", line: web1},
		{name: "recreate", ready: []string{web1}, line: "instance ensure web1 --cpus 4 --recreate"},
		{name: "stop", ready: []string{web1}, line: "instance stop web1"},
		{name: "start", ready: []string{web1, "instance stop web1"}, line: "instance start web1"},
		{name: "delete", ready: []string{web1}, line: "instance delete web1"},
		{name: "reap", litter: true, line: "reap"},
		{name: "ensure from images", image: true, line: web1},
		{name: "stop of what images made", image: true, ready: []string{web1}, line: "instance stop web1"},
	}
}

// scene is the sled of one case, with what it was like on the way.
type scene struct {
	*sled
	interruption
	first  string            // the world before anything of the case
	before string            // the world when the verb begins
	facts  map[string]string // the ledger then
	keys   []string          // of the ledger before anything of the case
}

// tuned has an MTU, so that making a VNIC takes two commands.
const tuned = `
[storage]
slots = "gimlet"
key = "development"
[network]
etherstub = "propolis_stub0"
gz_vnic = "propolis_gz0"
gz_address = "10.77.0.1/16"
underlay = "10.77.0.0/16"
guest_link = "net0"
mtu = 1500
`

// helios is a sled on which zones are installed from images.
func helios() sim.Options {
	o := small()
	o.Mode = world.Helios
	return o
}

func (i interruption) scene(t *testing.T) *scene {
	s := &scene{interruption: i}
	if i.image {
		s.sled = newSled(t, helios(), "")
		s.foreigners("ipkg")
	} else {
		s.sled = newSled(t, small(), tuned)
		s.foreigners("sparse")
	}
	if !i.bare {
		s.run("bootstrap")
	}
	s.first = s.world()
	if !i.bare {
		s.keys = slices.Sorted(maps.Keys(s.ledger()))
	}
	for _, line := range i.ready {
		s.run(line)
	}
	if i.litter {
		s.scatter()
	}
	s.before = s.world()
	if !i.bare {
		s.facts = s.ledger()
	}
	return s
}

// foreigners are what others have on the sled. They stand in every world that
// is compared.
func (s *sled) foreigners(brand string) {
	s.command("zfs create -o mountpoint=/zones rpool/zones")
	s.command("zfs create rpool/zones/db1")
	if err := s.Host().Files().Chmod("/zones/db1", 0o700); err != nil {
		s.t.Fatal(err)
	}
	s.command("dladm create-vnic -l net1 db0")
	s.command("zonecfg -z db1 create -b ; set brand=" + brand + " ; set zonepath=/zones/db1 ; set ip-type=exclusive ; add net ; set physical=db0 ; end")
	s.command("zoneadm -z db1 install")
	s.command("zoneadm -z db1 boot")
	s.write("/zones/db1/root/data", "precious")
}

// scatter makes a zone and a VNIC that only reap takes away.
func (s *sled) scatter() {
	zone := s.stranger(s.value("base list -H --columns pool"), s.value("base list -H -o name"))
	s.command("zoneadm -z " + zone + " halt")
	s.run("vnic create --over net1 --hold 1ns")
	time.Sleep(time.Second) // of the bubble: the hold ends
}

// ledger is what the state file says now.
func (s *sled) ledger() map[string]string {
	s.t.Helper()
	var history struct {
		Items []struct {
			Key   string
			Value json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(s.run("history -o json")), &history); err != nil {
		s.t.Fatal(err)
	}
	facts := map[string]string{}
	for _, f := range history.Items {
		if facts[f.Key] = string(f.Value); facts[f.Key] == "null" {
			delete(facts, f.Key)
		}
	}
	return facts
}

// settled is where the verb leads when nothing goes wrong, with the names that
// a run draws replaced: the world, the instances, and what is recorded.
func (s *scene) settled() string {
	s.t.Helper()
	facts := s.ledger()
	var list struct{ Items []shown }
	if err := json.Unmarshal([]byte(s.run("instance list -o json")), &list); err != nil {
		s.t.Fatal(err)
	}
	names := anonymous(s.t, facts, list.Items)
	lines := []string{names.Replace(s.world())}
	for _, i := range list.Items {
		lines = append(lines, fmt.Sprint(i.Name, " ", i.State, " ", i.Wanted, " ", i.CPUs, " ", i.Address))
	}
	var keys []string
	for key := range facts {
		keys = append(keys, names.Replace(key+"\n"))
	}
	slices.Sort(keys)
	return strings.Join(append(lines, keys...), "\n")
}

// shown is what the tests read of an instance.
type shown struct {
	Name, State, Wanted, Address string
	CPUs                         int
	PropolisID                   string `json:"propolis_id"`
	VNICs                        []struct{ Name, MAC string }
}

// anonymous replaces what differs from run to run: ids, and the names and
// addresses of VNICs.
func anonymous(t testing.TB, facts map[string]string, instances []shown) *strings.Replacer {
	t.Helper()
	var network struct {
		MAC string `json:"gz_mac"`
	}
	if err := json.Unmarshal([]byte(facts["network"]), &network); err != nil {
		t.Fatal(err)
	}
	pairs := []string{network.MAC, "GZMAC", linkLocal(t, network.MAC), "GZLL"}
	for i, item := range instances {
		if item.PropolisID != "" {
			pairs = append(pairs, item.PropolisID, fmt.Sprint("PROPOLIS", i))
		}
		for n, v := range item.VNICs {
			name := fmt.Sprint("VNIC", i, n)
			pairs = append(pairs, v.MAC, fmt.Sprint("MAC", i, n), linkLocal(t, v.MAC), fmt.Sprint("LL", i, n), `"`+v.Name+`"`, `"`+name+`"`, v.Name+"/", name+"/", "/"+v.Name+"\n", "/"+name+"\n")
		}
	}
	for key := range facts {
		if mac, ok := strings.CutPrefix(key, "nic/"); ok { // of an instance that is stopped
			pairs = append(pairs, mac, "MAC")
		}
	}
	return strings.NewReplacer(pairs...)
}

// linkLocal is the address that an interface gets from its MAC (RFC 4291,
// appendix A).
func linkLocal(t testing.TB, mac string) string {
	t.Helper()
	m, err := net.ParseMAC(mac)
	if err != nil {
		t.Fatal(err)
	}
	return netip.AddrFrom16([16]byte{0: 0xfe, 0x80, 8: m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]}).String()
}

// again runs the verb again, sees that it leads to where it would have led, and
// that afterwards delete and reap leave the world as it was at first, with
// nothing recorded that was not.
func (s *scene) again(t *testing.T, point, want string) {
	t.Helper()
	if a := s.try(s.line); a.exit != 0 {
		t.Fatalf("%s: again: exit %d: %s", point, a.exit, a.errs)
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(s.settled(), "\n")); diff != "" {
		t.Fatalf("%s: again (-uninterrupted +resumed):\n%s", point, diff)
	}
	for key := range s.ledger() {
		if strings.HasPrefix(key, "intent/") {
			t.Errorf("%s: again: %s is still open", point, key)
		}
	}
	if s.bare {
		return
	}
	s.run("instance delete web1")
	s.run("reap")
	s.same(s.first, point+": after delete and reap")
	if diff := cmp.Diff(s.keys, slices.Sorted(maps.Keys(s.ledger()))); diff != "" {
		t.Errorf("%s: after delete and reap, the ledger (-first +now):\n%s", point, diff)
	}
}

func TestAVerbThatIsKilledLeadsThereWhenRunAgain(t *testing.T) {
	modes := []struct {
		name string
		mode host.CrashMode
	}{{"before", host.CrashBefore}, {"after", host.CrashAfter}, {"while it runs", host.CrashDuring}}
	for _, i := range interruptions() {
		t.Run(i.name, func(t *testing.T) {
			t.Parallel()
			var want string
			points := 0
			synctest.Test(t, func(t *testing.T) {
				s := i.scene(t)
				count := host.Crash(s.Host(), 0, host.CrashBefore)
				if a := s.on(t.Context(), count, i.line); a.exit != 0 {
					t.Fatalf("exit %d: %s", a.exit, a.errs)
				}
				points, want = count.Points(), s.settled()
			})
			cases := 0
			for n := 1; n <= points; n++ {
				for m, mode := range modes {
					if testing.Short() && n%len(modes) != m {
						continue // each point is cut in one way, the ways in turn
					}
					synctest.Test(t, func(t *testing.T) {
						point := fmt.Sprintf("killed %s point %d of %d", mode.name, n, points)
						s := i.scene(t)
						dying := host.Crash(s.Host(), n, mode.mode)
						a := s.on(t.Context(), dying, i.line)
						dying.Wait()
						if !dying.Crashed() {
							t.Fatalf("%s: it was not", point)
						}
						if a.exit == 0 {
							point += " (it succeeded)"
						}
						s.again(t, point, want)
					})
					cases++
				}
			}
			t.Logf("%d points, %d cases", points, cases)
		})
	}
}
