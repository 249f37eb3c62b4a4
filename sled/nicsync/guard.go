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
}

// Guess disable-during-migration-is-total: `--disable-during-migration`, which RFD 58 asks for and
// does not describe, forbids every write while any VM of the sled is being moved.
// Check: nothing: sledctl chooses it
func (o Options) guard(f Finding, recorded []VM, known func(context.Context) ([]VM, error)) napi.Guard {
	u := unmoved{zones: f.zones, all: o.DisableDuringMigration, known: known, about: f.about}
	u.told = fmt.Sprint(f.about(recorded))
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

// Check is part of napi.Guard. The error is errMoves or errOtherwise, or a
// *MovingError where any VM's move forbids the write.
func (u unmoved) Check(ctx context.Context, files host.Files) error {
	for _, name := range u.zones {
		why, err := marked(files, name+suffix)
		switch {
		case err != nil:
			return err
		case why != "" && !u.all:
			return fmt.Errorf("%w: %s: %s", errMoves, name, why)
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
		if why, err := marked(files, f.Name); err == nil && why != "" {
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

// marked says why the VM of a configuration is left alone; empty: it is not, or
// its zone is gone.
func marked(files host.Files, file string) (why string, err error) {
	data, err := host.ReadFile(files, path.Join(zone.Dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	_, c, err := zone.ParseConfig(data)
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return moving(c), nil
}
