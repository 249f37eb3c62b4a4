package nicsync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/peer/napi"
	"github.com/sledctl/sledctl/zone"
)

// unmoved is asked right before a write: between the look and the last of many
// writes somebody may begin to move a VM. It reads configurations and the ledger,
// and lists nothing.
type unmoved struct {
	zones []string // of which the record is
	all   bool     // or any zone: nothing is written while one is being moved
	known func(context.Context) ([]VM, error)
	// about picks those of the ledger that the record is of, and told is what it
	// recorded when they were looked at.
	about func([]VM) []VM
	told  string
	// absent is the MAC of a record that goes: no zone of its VM has it.
	absent string
}

// Guess disable-during-migration-is-total: `--disable-during-migration`, which RFD 58 asks for and
// does not describe, forbids every write while any VM of the sled is being moved.
// Check: nothing: sledctl chooses it
func (o Options) guard(f Finding, recorded []VM, known func(context.Context) ([]VM, error)) napi.Guard {
	u := unmoved{zones: f.zones, all: o.DisableDuringMigration, known: known, about: f.about}
	u.told = fmt.Sprint(f.about(recorded))
	if f.Removed {
		u.absent = f.MAC
	}
	return u
}

// about are the VMs that a record is of, as the ledger knows them.
func (f Finding) about(recorded []VM) []VM {
	var all []VM
	for _, vm := range recorded {
		if vm.hasMAC(f.MAC) || slices.ContainsFunc(f.ids, func(id string) bool { return slices.Contains(vm.IDs, id) }) {
			all = append(all, vm)
		}
	}
	return all
}

// Check is part of napi.Guard. The error is errMoves, errHas or errOtherwise, or a
// *MovingError where any VM's move forbids the write.
func (u unmoved) Check(ctx context.Context, files host.Files) error {
	for _, name := range u.zones {
		c, err := config(files, name+suffix)
		why := moving(c)
		switch {
		case err != nil:
			return err
		case why != "" && !u.all:
			return fmt.Errorf("%w: %s: %s", errMoves, name, why)
		case u.absent != "" && hasNet(c, u.absent):
			return errHas
		}
	}
	if err := u.recorded(ctx); err != nil || !u.all {
		return err
	}
	all, err := files.ReadDir(zone.Dir)
	if err != nil {
		return err
	}
	for _, f := range all {
		name, is := strings.CutSuffix(f.Name, suffix)
		if !is {
			continue
		}
		// What is no configuration of a VM, as a template, says nothing.
		c, err := config(files, f.Name)
		if why := moving(c); err == nil && why != "" {
			return &MovingError{VM: name, Why: why}
		}
	}
	return nil
}

// recorded is Check, of the ledger.
func (u unmoved) recorded(ctx context.Context) error {
	vms, err := u.known(ctx)
	if err != nil {
		return err
	}
	about := u.about(vms)
	watched := about
	if u.all {
		watched = vms
	}
	for _, vm := range watched {
		switch {
		case vm.Moving != "" && u.all:
			return &MovingError{VM: vm.Name, Why: vm.Moving}
		case vm.Moving != "":
			return fmt.Errorf("%w: %s: %s", errMoves, vm.Name, vm.Moving)
		}
	}
	if fmt.Sprint(about) != u.told {
		return errOtherwise
	}
	return nil
}

const suffix = ".xml"

// config is the configuration of a zone as it is now; none, if the zone is gone.
func config(files host.Files, file string) (zone.Config, error) {
	data, err := host.ReadFile(files, path.Join(zone.Dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		return zone.Config{}, nil
	}
	if err != nil {
		return zone.Config{}, err
	}
	_, c, err := zone.ParseConfig(data)
	if err != nil {
		return zone.Config{}, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// hasNet reports whether a zone is configured to have a NIC of this MAC.
func hasNet(c zone.Config, mac string) bool {
	return slices.ContainsFunc(c.Nets, func(n zone.Net) bool {
		has, err := napi.ParseMAC(n.MAC)
		return err == nil && has == mac
	})
}
