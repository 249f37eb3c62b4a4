package tools

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// dladm show-linkprop opens each link while it looks (show_linkprop_onelink in
// usr/src/cmd/dladm/dladm.c): who moves or removes it meanwhile is told that it is
// busy.
func TestAListingOfPropertiesHoldsLinks(t *testing.T) {
	const slow = "dladm show-linkprop -c -p zone -o link,value"
	for name, c := range map[string]struct {
		look, do string
		want     cli.Reply
	}{
		"a boot": {slow, "zoneadm -z z1 boot", cli.Reply{Exit: 1, Stderr: "zone 'z1': WARNING: unable to add network interface 'v0': link busy\n" +
			"zone 'z1': failed to add network device: No such file or directory\nzoneadm: zone 'z1': call to zoneadmd failed\n"}},
		"a removal":    {slow, "dladm delete-vnic v0", cli.Reply{Exit: 1, Stderr: "dladm: vnic deletion failed: link busy\n"}},
		"one link":     {"dladm show-linkprop v0", "dladm delete-vnic v0", cli.Reply{Exit: 1, Stderr: "dladm: vnic deletion failed: link busy\n"}},
		"another link": {"dladm show-linkprop net0", "dladm delete-vnic v0", cli.Reply{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := sparseSled(t, "")
				s.change(func(tx *world.Tx) {
					tx.Arm(world.Fault{Name: world.FaultSlowLink, Match: "show-linkprop v0", Delay: time.Second})
				})
				s.meanwhile(c.look)
				synctest.Wait()
				if diff := cmp.Diff(c.want, s.run(c.do, "")); diff != "" {
					t.Errorf("meanwhile (-want +got):\n%s", diff)
				}
				time.Sleep(2 * time.Second)
				if c.want.Exit != 0 {
					s.state("z1", world.ZoneInstalled)
					s.must(c.do)
				}
			})
		})
	}
}

// Only an opening in the zone that has the link keeps it there: a halt does not
// wait for who looks from outside (dl_zone_ref in usr/src/uts/common/io/dls/dls.c).
func TestALinkThatIsLookedAtComesHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sparseSled(t, "")
		s.must("zoneadm -z z1 boot")
		s.change(func(tx *world.Tx) {
			tx.Arm(world.Fault{Name: world.FaultSlowLink, Match: "show-linkprop v0", Delay: time.Second})
		})
		s.meanwhile("dladm show-linkprop")
		synctest.Wait()
		s.must("zoneadm -z z1 halt")
		time.Sleep(2 * time.Second)
		s.must("zoneadm -z z1 boot")
	})
}

// meanwhile starts a command line and does not wait for its end.
func (s *zoneSled) meanwhile(line string) {
	words := shellWords(line)
	go func() {
		if _, err := s.d.Exec(s.t.Context(), cli.Call{Tool: words[0], Args: words[1:]}); err != nil {
			s.t.Errorf("%s: %v", line, err)
		}
	}()
}
