package commands_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/sledtest"
)

// known is what is printed of each instance, but for what a record counts.
func known(s *sledtest.Operator) map[string]map[string]any {
	s.T.Helper()
	var list struct{ Items []map[string]any }
	if err := json.Unmarshal([]byte(s.Run("instance list -o json")), &list); err != nil {
		s.T.Fatal(err)
	}
	all := map[string]map[string]any{}
	for _, i := range list.Items {
		delete(i, "time_updated")
		delete(i, "since")
		delete(i, "last")
		delete(i, "generation")
		all[fmt.Sprint(i["name"])] = i
	}
	return all
}

// machinesOf are the generations of the VMs' states: they tell whether one was
// disturbed.
func machinesOf(s *sledtest.Operator, names ...string) string {
	s.T.Helper()
	var all []string
	for _, name := range names {
		all = append(all, s.Value("propolis get --instance "+name+" -H --columns instance,state,generation,id"))
	}
	return strings.Join(all, "\n")
}

// The command lines by which the VMs of these tests are described.
func described3() map[string]string {
	return map[string]string{
		"web1": "instance ensure web1 --cpus 4 --memory 8G --nic over=net0 --nic over=net1,vlan=7 --disk rpool/volumes/web1 --disk /data/cd.iso,readonly --address 127.77.0.20/16,gateway=127.77.0.9",
		"web2": "instance ensure web2",
		"web3": "instance ensure 6f9619ff-8b86-4011-b42d-00c04fc964ff --name web3 --nic over=net0",
	}
}

// The ledger is lost altogether: nothing that runs is harmed, and all of it
// is the same instances again.
func TestWhatRunsIsTheSameAgainAfterTheLedgerWasLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := sledtest.New(t, sledtest.Small(), "")
		disks(s)
		s.Run("bootstrap")
		names := []string{"web1", "web2", "web3"}
		for _, name := range names {
			s.Run(described3()[name])
		}
		before, machines, world := known(s), machinesOf(s, names...), s.Comparable()

		s.LoseLedger()
		if a := s.Try("bootstrap"); a.Exit != 9 {
			t.Fatalf("bootstrap without a ledger: exit %d: %s", a.Exit, a.Errs)
		}
		s.Same(world, "after a bootstrap that refused")
		s.Run("bootstrap --new-ledger")
		s.Run("bootstrap")
		found := s.Run("reap --dry-run -H --columns kind,verdict")
		if strings.Count(found, "zone\tadoptable") != 3 || strings.Contains(found, "orphan") || strings.Contains(found, "stale") {
			t.Errorf("reap:\n%s", found)
		}
		s.Run("reap")
		s.Run("instance ensure --all")

		// Until they are adopted, nobody gets what is theirs.
		s.Run("instance ensure web9")
		if got := s.Value("instance get web9 -H --columns address,vnics"); got != "127.77.0.4/16\tvnic_propolis3" {
			t.Errorf("another gets %q", got) // .2 and .3 are theirs
		}
		s.Run("instance delete web9")
		for line, says := range map[string]string{
			"instance ensure web2":                               "instance adopt propolis_instance_",
			"instance ensure web3":                               "instance adopt propolis_instance_",
			"instance delete web2":                               "instance adopt propolis_instance_",
			"instance stop web3":                                 "instance adopt propolis_instance_",
			"instance start web1":                                "instance adopt propolis_instance_",
			"instance reboot web1":                               "instance adopt propolis_instance_",
			described3()["web3"]:                                 "instance adopt propolis_instance_",
			"instance ensure web8 --disk rpool/volumes/web1":     "in use by zone propolis_instance_",
			"instance ensure web8 --address 127.77.0.20/16":      "taken by zone propolis_instance_",
			"instance ensure web8 --nic mac=" + macOf(before, 0): "in use by link",
		} {
			if a := s.Try(line); a.Exit != 5 && a.Exit != 8 || !strings.Contains(a.Errs, says) {
				t.Errorf("sledctl %s: exit %d: %s", line, a.Exit, a.Errs)
			}
		}

		if a := s.Try("instance adopt --all --dry-run --detailed-exitcode -H -o name"); a.Exit != 10 || len(strings.Fields(a.Out)) != 3 {
			t.Errorf("a dry run: exit %d: %s%s", a.Exit, a.Out, a.Errs)
		}
		if out := s.Run("instance list -H"); out != "" {
			t.Errorf("a dry run has adopted:\n%s", out)
		}
		s.Run("instance adopt web2")
		if out := s.Run("instance adopt --all -H --columns name,state"); out != "web1\trunning\nweb3\trunning\n" {
			t.Errorf("adopted:\n%s", out)
		}
		if diff := cmp.Diff(before, known(s)); diff != "" {
			t.Errorf("the instances (-before +adopted):\n%s", diff)
		}
		if now := machinesOf(s, names...); now != machines {
			t.Errorf("the machines before:\n%s\nnow:\n%s", machines, now)
		}
		untouched(s, names)

		// The same once more is nothing.
		ledger := ledgerFile(s)
		s.Run("instance adopt --all")
		for _, ref := range []string{"web1", fmt.Sprint(before["web3"]["id"]), fmt.Sprint(before["web2"]["zone"])} {
			if out := s.Value("instance adopt -H --columns state " + ref); out != "running" {
				t.Errorf("%s: %s", ref, out)
			}
		}
		if a := s.Try("instance adopt nobody"); a.Exit != 4 {
			t.Errorf("of nobody: exit %d: %s", a.Exit, a.Errs)
		}
		if ledgerFile(s) != ledger {
			t.Error("the ledger was written")
		}

		// What they are is known as well as it was: they can be rebuilt and go.
		s.Run("instance stop web1")
		s.Run("instance start web1")
		again := known(s)["web1"]
		for _, key := range []string{"zone", "propolis_id"} {
			if again[key] == before["web1"][key] {
				t.Errorf("after another start, %s is still %v", key, again[key])
			}
			delete(again, key)
			delete(before["web1"], key)
		}
		for _, i := range []map[string]any{again, before["web1"]} {
			i["vnics"] = macs(i)
		}
		if diff := cmp.Diff(before["web1"], again); diff != "" {
			t.Errorf("after another start (-before +now):\n%s", diff)
		}
		s.Run("instance delete web1 web2 web3")
		s.Run("reap")
		onlyBases(s, t)
	})
}

// onlyBases sees that of zones, VNICs and datasets only those of the base are left.
// It is another one than at first: nothing was known of that.
func onlyBases(s *sledtest.Operator, t *testing.T) {
	t.Helper()
	for thing := range sledtest.Things(t, s.Comparable()) {
		for _, of := range []string{"propolis_instance_", "oxz_", "vnic_propolis", "oxControl"} {
			if strings.Contains(thing, of) {
				t.Errorf("%s is left", thing)
			}
		}
	}
	if zones := s.Value("zone list -H -o name"); !strings.HasPrefix(zones, "propolis_base_") || strings.Contains(zones, "\n") {
		t.Errorf("zones: %s", zones)
	}
}

func macs(i map[string]any) (all []string) {
	for _, v := range i["vnics"].([]any) {
		all = append(all, fmt.Sprint(v.(map[string]any)["mac"]))
	}
	return all
}

func macOf(known map[string]map[string]any, n int) string { return macs(known["web1"])[n] }

// untouched sees that what describes the instances finds nothing to do.
func untouched(s *sledtest.Operator, names []string) {
	s.T.Helper()
	world, ledger := s.Comparable(), ledgerFile(s)
	for _, name := range names {
		for _, line := range []string{described3()[name], "instance ensure " + name} {
			r := traced(s, line)
			looks := 0
			for _, e := range r.events {
				if e.Line.Mutates() {
					s.T.Errorf("sledctl %s: %s", line, e.Line.Text)
				}
				if e.Status == 0 {
					looks++
				}
			}
			nics := strings.Count(described3()[name], "--nic ") // what each is held to is a look
			if r.Exit != 0 || looks > 2+nics {
				s.T.Errorf("sledctl %s: exit %d, %d looks: %s", line, r.Exit, looks, r.Errs)
			}
		}
	}
	s.Same(world, "after ensuring what was adopted")
	if ledgerFile(s) != ledger {
		s.T.Error("the ledger was written")
	}
}

// otherTool names things as the sled agent of today does.
const otherTool = `
[storage]
slots = "gimlet"
key = "development"

[network]
etherstub = "propolis_stub0"
gz_vnic = "propolis_gz0"
gz_address = "127.77.0.1/16"
underlay = "127.77.0.0/16"
guest_link = "net0"

[names]
zone_prefix = "oxz_propolis-server_"
vnic_prefix = "oxControlInstance"
`

// A VM of another tool, called as the sled agent calls them, without any mark of
// ours: all of it is read from what is there.
func TestAVMOfAnotherToolIsTakenOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := sledtest.New(t, sledtest.Small(), otherTool)
		disks(s)
		s.Run("bootstrap")
		const line = "instance ensure web1 --cpus 3 --nic over=net0 --disk rpool/volumes/web1"
		s.Run(line)
		before, machines := known(s)["web1"], machinesOf(s, "web1")
		zone := fmt.Sprint(before["zone"])
		for _, attr := range []string{"instance", "name", "address"} {
			s.Command("zonecfg -z " + zone + " remove attr name=sledctl-" + attr)
		}
		s.Command("zfs inherit sledctl:instance " + fmt.Sprint(before["pool"]) + "/crypt/zone/" + zone)
		s.WriteFile("/etc/sledctl/config.toml", strings.NewReplacer("\nzone_", "\nother_zone_", "\nvnic_", "\nother_vnic_").Replace(otherTool))
		s.LoseLedger()
		s.Run("bootstrap --new-ledger")
		s.Run("reap")

		if a := s.Try("instance adopt nobody"); a.Exit != 4 {
			t.Errorf("of nobody: exit %d: %s", a.Exit, a.Errs)
		}
		if out := s.Value("instance adopt web1 -H --columns name,state"); out != "web1\trunning" {
			t.Fatalf("adopted: %s", out)
		}
		if diff := cmp.Diff(before, known(s)["web1"]); diff != "" {
			t.Errorf("the instance (-before +adopted):\n%s", diff)
		}
		if now := machinesOf(s, "web1"); now != machines {
			t.Errorf("the machine before: %s, now: %s", machines, now)
		}
		r := traced(s, line)
		if r.Exit != 0 || slices.ContainsFunc(r.events, func(e host.Event) bool { return e.Line.Mutates() }) {
			t.Errorf("ensure: exit %d: %s", r.Exit, r.Errs)
		}
		// sledctl does not rebuild it silently, however it differs from sledctl's own.
		if a := s.Try("instance ensure web1 --cpus 4"); a.Exit != 5 {
			t.Errorf("a difference: exit %d: %s", a.Exit, a.Errs)
		}
		if now := machinesOf(s, "web1"); now != machines {
			t.Errorf("the machine before: %s, now: %s", machines, now)
		}
		s.Run("instance reboot web1")
		s.Run("instance ensure web1 --cpus 4 --recreate")
		if got := known(s)["web1"]; !strings.HasPrefix(fmt.Sprint(got["zone"]), "propolis_instance_") || !slices.Equal(macs(got), macs(before)) {
			t.Errorf("rebuilt: %v", got)
		}
		s.Run("instance delete web1")
		s.Run("reap")
		onlyBases(s, t)
	})
}

// What cannot be an instance is not made one, and says why; the others are.
func TestWhatCannotBeAdoptedIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := sledtest.New(t, sledtest.Small(), "")
		s.Run("bootstrap")
		for _, name := range []string{"web1", "web2", "web3", "web4"} {
			s.Run("instance ensure " + name)
		}
		zones := map[string]string{}
		for name, i := range known(s) {
			zones[name] = fmt.Sprint(i["zone"])
		}
		s.Command("svcadm -z " + zones["web1"] + " restart svc:/site/sledctl/propolis-server:default")
		s.Command("svcadm -z " + zones["web2"] + " disable svc:/site/sledctl/propolis-server:default")
		s.Command("zonecfg -z " + zones["web3"] + ` select attr name=sledctl-instance ; set value="6f9619ff-8b86-4011-b42d-00c04fc964ff" ; end`)
		s.LoseLedger()
		s.Run("bootstrap --new-ledger")
		a := s.Try("instance adopt --all -H --columns name,state")
		if a.Exit != 3 || a.Out != "web4\trunning\n" {
			t.Errorf("exit %d: %s%s", a.Exit, a.Out, a.Errs)
		}
		for name, says := range map[string]string{
			"web1": "its Propolis has no machine", "web2": "its Propolis does not answer", "web3": "it is marked as instance 6f9619ff",
		} {
			if !strings.Contains(a.Errs, "zone "+zones[name]+" cannot be adopted: "+says) {
				t.Errorf("%s is not told: %s", name, a.Errs)
			}
			if b := s.Try("instance adopt " + zones[name]); b.Exit != 5 || !strings.Contains(b.Errs, "zone delete "+zones[name]) {
				t.Errorf("%s alone: exit %d: %s", name, b.Exit, b.Errs)
			}
		}
		// One is gone, and another is called as it was.
		s.Run("zone delete " + zones["web1"])
		s.Run("instance ensure web1")
	})
}
