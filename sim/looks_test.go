package sim

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
)

// A command that only looks runs at the same time as others, without a transaction: it
// must not change a bit of the sled, whatever it is asked.
func TestWhatOnlyLooksChangesNothing(t *testing.T) {
	s := newSledFor(t, Options{Seed: 1})
	h := s.Host()
	run := func(line string) host.Result {
		words := strings.Fields(line)
		got, err := h.Run(t.Context(), host.Command{Program: words[0], Args: words[1:]})
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return got
	}
	for _, line := range []string{
		"zfs create -o mountpoint=/zone rpool/zone", "zfs create rpool/zone/web1", "zfs create -V 1g rpool/v1", "zfs snapshot rpool/zone@s",
		"dladm create-etherstub -t stub0", "dladm create-vnic -t -l stub0 vnic0",
		"zonecfg -z web1 create -b ; set brand=sparse ; set zonepath=/zone/web1 ; set ip-type=exclusive ; add net ; set physical=vnic0 ; end", "zoneadm -z web1 install", "zoneadm -z web1 boot",
	} {
		if strings.HasSuffix(line, "install") {
			if err := h.Files().Chmod("/zone/web1", 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if got := run(line); got.Exit != 0 {
			t.Fatalf("%s: exit %d: %s", line, got.Exit, got.Stderr)
		}
	}
	state := func() (all map[string]any) {
		t.Helper()
		err := s.World().View(t.Context(), func(tx *world.Tx) error {
			version := tx.State.Version
			data, err := json.Marshal(tx.State)
			if err == nil {
				err = json.Unmarshal(data, &all)
			}
			all["version"] = version
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	looks := []string{
		"zoneadm list -cp", "zoneadm -z web1 list -p", "zoneadm -z none list -p", "zonecfg -z web1 export", "zonecfg -z none export", "zonecfg -z web1 info",
		"zfs list -H", "zfs list -t all -o name,used", "zfs get -Hp all rpool/zone", "zfs get -Hp -d 0 sledctl:ledger", "zfs list none",
		"zpool list -Hp", "zpool status", "zpool status -x", "zpool get all rpool", "zpool list none",
		"dladm show-link -p -o link,class", "dladm show-vnic -p -o link,over", "dladm show-phys", "dladm show-linkprop -c -o link,property,value vnic0", "dladm show-none",
		"ipadm show-addr -p -o addrobj,addr", "ipadm show-if -p -o ifname", "ipadm show-ifprop", "svcs -a -H -o state,fmri", "svcs -z web1 -a", "svcs none",
		"svcprop -p restarter/state svc:/milestone/single-user:default", "svcprop -z web1 -p restarter/state svc:/milestone/single-user:default", "svcprop none",
		"netstat -rn -f inet", "prtconf -v", "prtconf -vD", "ps -e -o pid,args", "fstyp /dev/dsk/c1t0d0", "fstyp -a /dev/rdsk/c2t0d0", "zonename", "uname -v", "ls -d /zone",
	}
	before := state()
	for _, line := range looks {
		run(line)
		if diff := cmp.Diff(before, state()); diff != "" {
			t.Fatalf("%s changes the sled: %s", line, diff)
		}
	}
	var all sync.WaitGroup // where the race detector looks at them
	for range 3 {
		all.Go(func() {
			for _, line := range looks {
				words := strings.Fields(line)
				_, _ = h.Run(t.Context(), host.Command{Program: words[0], Args: words[1:]})
			}
		})
	}
	all.Wait()
	if diff := cmp.Diff(before, state()); diff != "" {
		t.Errorf("what looks at once changes the sled: %s", diff)
	}
}
