package system

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
)

// The texts and exit codes are those of usr/src/cmd/rsrvrctl/rsrvrctl.c, the
// limits those of vmmr_set_target in usr/src/uts/intel/io/vmm/vmm_reservoir.c.
func TestTheReservoirIsWhatIsFreeAndWhatGuestsHave(t *testing.T) {
	tx := world.NewTx(boot.Fresh(boot.Options{}), time.Now(), nil)
	answers := func(want cli.Reply, args ...string) {
		t.Helper()
		if diff := cmp.Diff(want, Rsrvrctl(tx, cli.Call{Args: args})); diff != "" {
			t.Errorf("rsrvrctl %q (-want +got):\n%s", args, diff)
		}
	}
	shown := func(free, allocated, transient string) cli.Reply {
		return cli.Reply{Stdout: "Free MiB:\t" + free + "\nAllocated MiB:\t" + allocated + "\nTransient Allocated MiB:\t" + transient + "\nSize limit MiB:\t997752\n"}
	}
	answers(shown("0", "0", "0"), "-q")

	vm := func(mib uint64) *world.VM {
		vm := &world.VM{Timeline: []world.Timepoint{{State: "Running", Generation: 1, From: tx.Now}}}
		if err := tx.TakeMemory(vm, mib<<20); err != nil {
			return nil
		}
		tx.State.Processes = append(tx.State.Processes, &world.Process{VM: vm})
		return vm
	}
	vm(1024)
	answers(shown("0", "0", "1024"), "-q")
	answers(cli.Reply{}, "-s", "4096")
	first := vm(3072)
	answers(shown("1024", "3072", "1024"), "-q")
	if vm(2048) != nil {
		t.Error("a guest has got more than is free")
	}

	answers(cli.Reply{Stderr: "rsrvrctl: Could not set reservoir size to 2147483648 bytes: No space left on device\n", Exit: 1}, "-s", "2048")
	answers(cli.Reply{}, "-s", "3072")
	answers(cli.Reply{Stderr: "rsrvrctl: Could not set reservoir size to 3220176896 bytes: No space left on device\n", Exit: 1}, "-s", "3071")
	first.Timeline = append(first.Timeline, world.Timepoint{State: "Destroyed", Generation: 2, From: tx.Now})
	answers(cli.Reply{}, "-s", "0")
	answers(shown("0", "0", "1024"), "-q")
}
