package nicsync

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/napi"
	"github.com/sledctl/sledctl/zone"
)

// unmoved is asked right before a write: between the look and the last of many
// writes somebody may begin to move a VM. It reads configurations, and no more.
type unmoved struct {
	zones []string // of which the record is
	all   bool     // or any zone: nothing is written while one is being moved
}

func (o Options) guard(f Finding) napi.Guard {
	return unmoved{zones: f.zones, all: o.DisableDuringMigration}
}

// Check is part of napi.Guard. The error is errMoves, or a *MovingError where any
// VM's move forbids the write.
func (u unmoved) Check(files host.Files) error {
	for _, name := range u.zones {
		why, err := marked(files, name+suffix)
		switch {
		case err != nil:
			return err
		case why != "" && !u.all:
			return fmt.Errorf("%w: %s: %s", errMoves, name, why)
		}
	}
	if !u.all {
		return nil
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
