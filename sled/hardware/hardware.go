// Package hardware says what machine a sled is, as far as a control plane decides by it where
// VMs run: its board, processors and memory.
package hardware

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/devtree"
	"github.com/sledctl/sledctl/illumos/kstat"
	"github.com/sledctl/sledctl/illumos/processor"
	"github.com/sledctl/sledctl/illumos/reservoir"
	"github.com/sledctl/sledctl/illumos/system"
)

// Board identifies a machine.
type Board struct {
	Part, Serial string
	Revision     uint32
}

// Hardware is what a sled is.
type Hardware struct {
	Board     Board
	Family    Family
	Threads   int    // that are on-line
	RAM       uint64 // bytes, of which the reservoir is a part
	Reservoir uint64 // bytes
}

// Family is a family of processors, as omicron tells them apart.
type Family string

// The families (omicron SledCpuFamily).
const (
	Unknown    Family = "unknown"
	Milan      Family = "amd_milan"       // Zen 3, and Zen 4, of which Milan is the greatest common denominator
	Turin      Family = "amd_turin"       // Zen 5
	TurinDense Family = "amd_turin_dense" // Zen 5c
)

// Look asks a host. Errors: those of the packages that it asks by.
func Look(ctx context.Context, h host.Host) (Hardware, error) {
	var hw Hardware
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) { hw.Board, err = board(ctx, h); return err })
	group.Go(func() (err error) { hw.Family, err = family(ctx, h); return err })
	group.Go(func() (err error) { hw.Threads, err = processor.Online(ctx, h); return err })
	group.Go(func() (err error) { hw.RAM, err = reservoir.Memory(ctx, h); return err })
	group.Go(func() error {
		state, err := reservoir.Query(ctx, h)
		hw.Reservoir = state.Size()
		return err
	})
	if err := group.Wait(); err != nil {
		return Hardware{}, fmt.Errorf("ask what machine this is: %w", err)
	}
	return hw, nil
}

// board is that of an Oxide sled by the properties of the device tree's root. Any other
// machine is called by its host name, and its part is what the root is called, as the sled
// agent has it (omicron sled-hardware/src/illumos/mod.rs, get_pc_baseboard).
func board(ctx context.Context, h host.Host) (Board, error) {
	nodes, err := devtree.Query(ctx, h)
	if err != nil {
		return Board{}, err
	}
	root := nodes[0]
	if _, oxide := root.Properties["baseboard-identifier"]; !oxide {
		name, err := system.QueryHostName(ctx, h)
		return Board{Part: root.Name, Serial: name}, err
	}
	serial, serr := root.Text("baseboard-identifier")
	part, perr := root.Text("baseboard-model")
	revision, rerr := root.Number("baseboard-revision")
	return Board{Part: part, Serial: serial, Revision: uint32(revision)}, errors.Join(serr, perr, rerr)
}

func family(ctx context.Context, h host.Host) (Family, error) {
	cpu, err := kstat.QueryProcessor(ctx, h)
	if err != nil {
		return Unknown, err
	}
	return familyOf(cpu), nil
}

// familyOf tells a family by what CPUID says.
//
// Guess families-by-model: AMD's family 25 is amd_milan, and its family 26 amd_turin_dense with
// models from 16 to 31, else amd_turin: omicron's text on SledCpuFamily says which processors these
// are, and not which models.
// Check: `curl http://[SLED]:12345/inventory` of a sled agent, and `kstat -p cpu_info:0`
func familyOf(cpu kstat.Processor) Family {
	switch {
	case cpu.Vendor != "AuthenticAMD":
		return Unknown
	case cpu.Family == 25:
		return Milan
	case cpu.Family == 26 && cpu.Model >= 16 && cpu.Model <= 31:
		return TurinDense
	case cpu.Family == 26:
		return Turin
	}
	return Unknown
}
