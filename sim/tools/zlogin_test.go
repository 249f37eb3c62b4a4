package tools

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/test/hosttest"
)

// loginSled has z1 running, z2 installed and z3 configured.
func loginSled(t *testing.T) *Dispatcher {
	t.Helper()
	d := &Dispatcher{World: boot.Memory(boot.Options{}, hosttest.Files)}
	update(t, d, func(tx *world.Tx) {
		addRunningZone(t, tx, "z1")
		tx.State.Zones = append(tx.State.Zones, &world.Zone{Name: "z2", State: "installed"}, &world.Zone{Name: "z3", State: "configured"})
	})
	return d
}

// The texts and codes of usr/src/cmd/zlogin/zlogin.c.
func TestZloginAnswersAsTheRealOne(t *testing.T) {
	const usage = "usage: zlogin [ -dnQCES ] [ -e cmdchar ] [-l user] zonename [command [args ...] ]\n"
	d := loginSled(t)
	for _, c := range []struct {
		args  []string
		stdin string
		want  cli.Reply
	}{
		{[]string{"-n", "z1", "echo", "a  b", "c"}, "", cli.Reply{Stdout: "a b c\n"}},
		{[]string{"-n", "z1", "echo 'a  b'; exit 5"}, "", cli.Reply{Stdout: "a  b\n", Exit: 5}},
		{[]string{"-n", "z1", "echo a; kill -9 $$; echo b"}, "", cli.Reply{Stdout: "a\n"}},
		{[]string{"-n", "z1", "kill -s TERM $$; exit 3"}, "", cli.Reply{}},
		{[]string{"-n", "z1", "kill -0 $$ && echo alive"}, "", cli.Reply{Stdout: "alive\n"}},
		{[]string{"-n", "z1", "kill 1"}, "", cli.Reply{Stderr: "kill: 1: no process that is simulated\n", Exit: 1}},
		{[]string{"z1", "cat"}, "words", cli.Reply{Stdout: "words"}},
		{[]string{"-n", "z1", "cat"}, "words", cli.Reply{}},
		{[]string{"-S", "z1", "zonename"}, "", cli.Reply{Stdout: "z1\n"}},
		{[]string{"-l", "nobody", "z1", "zonename"}, "", cli.Reply{Stderr: "su: Unknown id: nobody\n", Exit: 1}},
		{[]string{"z9", "true"}, "", cli.Reply{Stderr: "zlogin: zone 'z9' unknown\n", Exit: 1}},
		{[]string{"z3", "true"}, "", cli.Reply{Stderr: "zlogin: cannot login to a zone which is 'configured'\n", Exit: 1}},
		{[]string{"z2", "true"}, "", cli.Reply{Stderr: "zlogin: login allowed only to running zones (z2 is 'installed').\n", Exit: 1}},
		{[]string{"global", "true"}, "", cli.Reply{Stderr: "zlogin: 'zlogin' not applicable to the global zone\n", Exit: 1}},
		{[]string{"-n", "z1", "zlogin", "z1", "true"}, "", cli.Reply{Stderr: "zlogin: 'zlogin' may only be used from the global zone\n", Exit: 1}},
		{nil, "", cli.Reply{Stderr: usage, Exit: 2}},
		{[]string{"-x", "z1"}, "", cli.Reply{Stderr: usage, Exit: 2}},
	} {
		got, err := d.Exec(t.Context(), cli.Call{Tool: "zlogin", Args: c.args, Stdin: []byte(c.stdin)})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("zlogin %q: %s", c.args, diff)
		}
	}
}

// noninteractive_login in zlogin.c takes WEXITSTATUS of a shell that a signal
// ended: 0.
func TestZloginSaysZeroWhenItsZoneIsHalted(t *testing.T) {
	for name, script := range map[string]string{
		"in a wait":    "echo begun; zonename; echo never",
		"in a latency": "echo begun; zonename -x; echo never",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := loginSled(t)
				update(t, d, func(tx *world.Tx) {
					tx.Arm(world.Fault{Name: world.FaultHang, Match: "z1 zonename -x", Delay: 100 * time.Second})
					tx.Arm(world.Fault{Name: world.FaultHang, Match: "z1 zonename"})
				})
				ended := make(chan cli.Reply, 1)
				go func() {
					got, err := d.Exec(t.Context(), cli.Call{Tool: "zlogin", Args: []string{"-n", "z1", script}})
					if err != nil {
						t.Error(err)
					}
					ended <- got
				}()
				time.Sleep(time.Second)
				start := time.Now()
				update(t, d, func(tx *world.Tx) { tx.FindZone("z1").Kernel = nil })
				got := <-ended
				if diff := cmp.Diff(cli.Reply{Stdout: "begun\n"}, got); diff != "" {
					t.Error(diff)
				}
				if took := time.Since(start); took != 0 {
					t.Errorf("it noticed after %s", took)
				}
			})
		})
	}
}
