package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/layout"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sled/probe"
)

// SimulatedConfig is the configuration that a fresh simulated sled of a mode is given,
// as an operator would write it: an etherstub, an underlay on it, and the disks.
func SimulatedConfig(mode world.Mode) string {
	underlay := loopbackUnderlay
	if mode == world.Helios {
		underlay = rackUnderlay
	}
	return "# The configuration of this simulated sled.\n\n[network]\n" + simLinks + underlay + simStorage
}

const (
	simLinks = `etherstub = "propolis_stub0"   # control VNICs lie over it
gz_vnic = "propolis_gz0"       # the global zone's own
guest_link = "net0"
`
	simStorage = `
[storage]
slots = "gimlet"               # its disks are in an Oxide sled's slots, whatever system runs on it
key = "development"            # no secret at all: for a sled whose disks hold nothing

[nics]
url = "http://127.77.255.1:8081" # sledctl sim napi init puts a NAPI there
cn_uuid = "564d2cec-64ee-4aca-9e27-d71c02af3b6a"
`
)

// An underlay is one of loopback addresses: what runs in the shell of sim shell
// listens on them really, and nothing that is sent to one can leave the machine.
// Zones that are installed from images take none but IPv6.
const (
	loopbackUnderlay = `gz_address = "127.77.0.1/16"
underlay = "127.77.0.0/16"     # control addresses are taken from here; in sim shell they are real
`
	rackUnderlay = `gz_address = "fd00:1122:3344:101::1/64"
underlay = "fd00:1122:3344:101::/64"    # control addresses are taken from here
gateway = "fd00:1122:3344:101::1"       # the zone image's own service wants one
`
)

// ensureSim opens the simulated sled in a directory, and makes one, with a
// configuration, in a directory that is empty or absent.
func ensureSim(dir string) (*sim.Sled, error) {
	return sim.Ensure(dir, Configured(sim.Options{Seed: 1}))
}

// Exists reports whether there is a sled to look at, without making a simulated one.
func (e *Env) Exists() bool {
	dir, simulated := e.SimDir()
	if !simulated {
		return true
	}
	sled, err := sim.Open(dir)
	if err != nil {
		return false
	}
	sled.Close()
	return true
}

// Configured has the sled begin with a configuration, as a RAM disk's image does
// into which its builder has put one.
func Configured(o sim.Options) sim.Options {
	o.Files = map[string]string{naming.ConfigFile: SimulatedConfig(o.Mode)}
	return o
}

// OpenArchive reads a recording from a file, or from standard input.
func OpenArchive(e *Env, name string) (probe.Archive, error) {
	if name == "-" {
		return probe.Read(e.Streams.In)
	}
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return probe.Archive{}, &UsageError{Text: "file " + name + " does not exist", Advice: "to make one, run: sledctl probe record FILE"}
	}
	if err != nil {
		return probe.Archive{}, err
	}
	defer file.Close()
	a, err := probe.Read(file)
	if err != nil {
		return a, fmt.Errorf("%s: %w", name, err)
	}
	return a, nil
}

// LayOut makes a simulated sled in a directory from a recording. The notes say what of it
// a simulated sled does not have.
func LayOut(ctx context.Context, dir string, a probe.Archive) (sled *sim.Sled, notes []string, err error) {
	var told []layout.Answer
	for _, one := range a.Answers {
		if one.Exit == 0 && one.Failed == "" && !one.Active {
			told = append(told, layout.Answer{Argv: one.Argv, Stdout: string(one.Stdout)})
		}
	}
	sled, err = sim.Init(dir, Configured(layout.Options(told)))
	if err != nil {
		return nil, nil, err
	}
	err = sled.World().Update(ctx, func(tx *world.Tx) (err error) {
		notes, err = layout.Lay(tx, told)
		return err
	})
	if err != nil {
		sled.Close()
		return nil, nil, err
	}
	return sled, notes, nil
}
