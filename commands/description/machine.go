package description

import (
	"context"
	"fmt"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/layout"
)

// Complete reads the machine that w has as a text, and completes the names of pools.
func Complete(ctx context.Context, e *cli.Env, w instance.Wanted) (instance.Wanted, error) {
	pools := []*string{w.Pool}
	for _, d := range w.Disks {
		if d.New != nil {
			pools = append(pools, &d.New.Pool)
		}
	}
	if err := cli.WholePools(ctx, e, pools...); err != nil || w.MachineText == nil {
		return w, err
	}
	server, err := Server(e)
	if err != nil {
		return instance.Wanted{}, err
	}
	d, err := parseMachine(w.MachineText, w.MachineFile, spec.ParseOptions{}, server)
	w.Machine, w.MachineFile, w.MachineText = &d, "", nil
	return w, err
}

// WarnOfMachine warns of what may be a mistake in the spec of a VM that another sled
// will read.
func WarnOfMachine(progress *cli.Progress, w instance.Wanted) {
	if w.MachineText == nil {
		return
	}
	d, _ := spec.Parse(w.MachineText, spec.ParseOptions{}) // the other sled reports its errors
	warnOfSpec(progress, w.MachineFile, d)
}

func warnOfSpec(progress *cli.Progress, file string, d spec.Document) {
	for _, w := range d.Warnings {
		progress.Warn(fmt.Errorf("%s: %s", file, w))
	}
}

// ReadMachine reads a spec or config from a file, as machineOf does.
func ReadMachine(e *cli.Env, flag, file string, o spec.ParseOptions, on spec.Server) (spec.Document, error) {
	data, err := cli.ReadDocument(e.Streams, flag, file)
	if err != nil {
		return spec.Document{}, err
	}
	return machineOf(e.Progress, data, file, o, on)
}

// machineOf reads a spec or config, as parseMachine does, and warns of what in it may
// be a mistake.
func machineOf(progress *cli.Progress, data []byte, file string, o spec.ParseOptions, on spec.Server) (spec.Document, error) {
	d, err := parseMachine(data, file, o, on)
	warnOfSpec(progress, file, d)
	return d, err
}

// parseMachine reads a spec or config. If it cannot be read as written, the error
// also names what the server would refuse.
func parseMachine(data []byte, file string, o spec.ParseOptions, on spec.Server) (spec.Document, error) {
	d, err := spec.Parse(data, o)
	d.File = file
	if err != nil {
		err = d.Check(on)
	}
	return d, err
}

// Server is what is known of the Propolis servers of this sled without a
// look at it.
func Server(e *cli.Env) (spec.Server, error) {
	c, err := e.Config()
	return layout.ServerOf(c.Network.Underlay), err
}
