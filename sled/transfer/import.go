package transfer

import (
	"context"
	"fmt"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/volume"
)

// ImportRequest asks for the instance of a stream.
type ImportRequest struct {
	Archive *Archive
	Written instance.Wanted // what the document of the stream says
	Wanted  instance.Wanted // what is to differ
	// Same has it be the one that was exported: with its id and its MACs. Else it is another one.
	Same   bool
	Pool   string // of the volumes; empty: the one with the most room
	DryRun bool
	Keep   bool
}

// ExistsError is an instance of the name, or with the id, that was not made of this stream.
type ExistsError struct{ Name, ID string }

// Error names it.
func (e *ExistsError) Error() string {
	return fmt.Sprintf("instance %q (%s) exists, and was not made of this", e.Name, e.ID)
}

func (*ExistsError) Kind() fault.Kind { return fault.Conflict }

// Hint names the commands.
func (e *ExistsError) Hint() string {
	return "import it under another name, with --name; or remove the one that is there: sledctl instance delete " + e.Name
}

// dropTime bounds what is taken back of an export or import that failed, beyond the time of the command.
const dropTime = time.Minute

// Import makes the instance, with volumes that hold what its disks held, and starts it. A volume that an earlier run
// has made of the same stream is not made again. Errors: *ExistsError, *FormatError; those of volume.Settings.Create and of
// instance.Settings.Ensure.
func (s Settings) Import(ctx context.Context, env operation.Env, c ImportRequest) (instance.Result, error) {
	wanted := c.describe()
	view, err := operation.Decided(ctx, env, c.DryRun)
	if err == nil {
		err = s.fresh(view, wanted, c.Archive.Manifest)
	}
	if err != nil {
		return instance.Result{}, err
	}
	request := instance.EnsureRequest{Verb: "instance import", Wanted: wanted, DryRun: true, Keep: c.Keep}
	if result, err := s.making(c.Archive).Ensure(ctx, env, request); err != nil || c.DryRun { // what is refused is refused before a byte is written
		return result, err
	}
	request.DryRun = false
	return s.making(c.Archive).Ensure(ctx, env, request)
}

// describe is what is made: all that the stream says, but for what is another one's.
func (c ImportRequest) describe() instance.Wanted {
	below := c.Written
	below.Disks = []record.Disk{}
	for _, d := range c.Archive.Disks {
		below.Disks = append(below.Disks, record.Disk{New: &record.NewDisk{Size: d.Size, Block: d.Block, Thin: d.Thin, Pool: c.Pool}})
	}
	if !c.Same {
		name := c.Written.Name
		if name == "" {
			name = c.Written.Ref
		}
		below.Ref, below.Name = name, ""
		nics := []record.NIC{}
		for _, n := range c.Written.NICs {
			n.MAC, n.AllowIP = "", nil
			nics = append(nics, n)
		}
		below.NICs = nics
	}
	if c.Wanted.Ref == "" {
		c.Wanted.Ref, c.Wanted.Name = below.Ref, below.Name
	} else if c.Same { // the id stays, whatever it is named
		c.Wanted.Ref, c.Wanted.Name = below.Ref, c.Wanted.Ref
	}
	wanted := c.Wanted.Over(below)
	if !c.Same && wanted.CloudInit.Hostname != nil && c.Wanted.CloudInit.Hostname == nil && wanted.Ref != below.Ref {
		hostname := wanted.Ref
		wanted.CloudInit.Hostname = &hostname
	}
	return wanted
}

// fresh refuses an instance that exists, unless an earlier run of the same import has begun it.
func (s Settings) fresh(view ledger.View, wanted instance.Wanted, m Manifest) error {
	name := wanted.Name
	if name == "" {
		name = wanted.Ref
	}
	for _, ref := range []string{wanted.Ref, name} {
		r, err := s.Instances.Find(view, ref)
		if err != nil {
			continue // there is none
		}
		made := len(m.Disks) > 0
		for n, d := range m.Disks {
			v, err := volume.Find(view, fmt.Sprintf("%s-%d", name, n))
			made = made && err == nil && v.Received == d.GUID
		}
		if !made {
			return &ExistsError{Name: r.Name, ID: r.ID}
		}
	}
	return nil
}

// making has the volumes of the instance made of the stream, one after the other.
func (s Settings) making(a *Archive) instance.Settings {
	next := 0
	made := s.Instances
	made.MakeVolume = func(ctx context.Context, env operation.Env, name string, d record.NewDisk, dryRun, keep bool) (string, operation.Report, error) {
		n := next
		next++
		want := volume.Wanted{
			Name: name, Size: d.Size, Block: d.Block, Pool: d.Pool, Near: d.Near, Thin: d.Thin,
			Stream: &volume.Stream{GUID: a.Disks[n].GUID, Source: a.Source(n)},
		}
		view, err := operation.Decided(ctx, env, dryRun)
		if err != nil {
			return "", operation.Report{}, err
		}
		if r, there := s.Volumes.AsWanted(view, want); there {
			if !dryRun {
				err = a.Skip(n)
			}
			return r.Path(), operation.Report{}, err
		}
		made, report, err := s.Volumes.Create(ctx, env, want, dryRun, keep)
		return made.Device, report, err
	}
	return made
}
