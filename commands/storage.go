package commands

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/config"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/illumos/disk"
	"github.com/sledctl/sledctl/illumos/key"
	"github.com/sledctl/sledctl/sled/storage"
)

func newStorage(env *Env) *cobra.Command {
	cmd := group("storage", "List, check and format disks, pools and datasets", `
Of the sled's disks, M.2s hold the state file and what else must outlive everything, U.2s zone roots and what customers keep, encrypted. What must
be there is made by bootstrap; these commands show it, say what differs, and do what only an operator may decide.`)
	cmd.AddCommand(newStorageList(env), newStorageCheck(env), newStorageFormat(env), newStorageForget(env), newStorageRekey(env))
	return cmd
}

// storage is the noun, and what it works with.
func (e *Env) storage() (storage.Settings, operation.Env, error) {
	c, env, err := e.operation()
	if err != nil {
		return storage.Settings{}, env, err
	}
	s, err := storageSettings(c)
	s.Attest = e.attest
	return s, env, err
}

// maybeView is what the ledger says, where there is one: what is on the disks
// can be told without.
func (e *Env) maybeView(ctx context.Context) ledger.View {
	view, err := e.view(ctx)
	if err != nil && !errors.Is(err, ledger.ErrAbsent) {
		e.progress.warn(err)
	}
	return view
}

// completeDisks offers the disks that there are.
func (e *Env) completeDisks(ctx context.Context) []string {
	s, env, err := e.storage()
	if err != nil {
		return nil
	}
	seen, err := s.Look(ctx, env.Host)
	if err != nil {
		return nil
	}
	var names []string
	for _, f := range seen.Disks {
		names = append(names, f.Name)
	}
	return names
}

// storageSettings are the settings of the storage noun.
func storageSettings(c config.Config) (storage.Settings, error) {
	s := storage.Settings{Keys: keys(c), Dir: vdevDir(c), Disks: sources(c.Storage)}
	for _, text := range c.Storage.Datasets {
		own, err := storage.ParseOwn(text, terminal.ParseSize)
		if err != nil {
			return s, fmt.Errorf("storage.datasets: %w", err)
		}
		s.Own = append(s.Own, own)
	}
	return s, nil
}

// sources are where disks are looked for.
func sources(c config.Storage) []disk.Source {
	var all []disk.Source
	if c.Slots != "none" {
		all = append(all, disk.Detect{Board: c.Slots})
	}
	if len(c.Vdevs) > 0 {
		all = append(all, disk.Vdevs{Dir: c.VdevDir, Names: c.Vdevs})
	}
	var devices disk.Devices
	for _, device := range c.Devices {
		kind, name, _ := strings.Cut(device, ":")
		devices = append(devices, disk.Device{Kind: disk.Kind(kind), Path: name})
	}
	if len(devices) > 0 {
		all = append(all, devices)
	}
	return all
}

// vdevDir is where pools lie on files, if they do.
func vdevDir(c config.Config) string {
	if len(c.Storage.Vdevs) == 0 {
		return ""
	}
	return c.Storage.VdevDir
}

// keys are the keys of encrypted disks, from the configured source.
func keys(c config.Config) *key.Ring {
	dir := path.Join(c.Paths.Run, "key")
	switch how, what, _ := strings.Cut(c.Storage.Key, ":"); how {
	case "development":
		return key.NewRing(key.Development{}, dir)
	case "file":
		return key.NewRing(key.File{Name: what}, dir)
	case "command":
		source := key.Command{Argv: strings.Fields(what)}
		_, _ = hex.Decode(source.Salt[:], []byte(c.Storage.Salt)) // the configuration was checked
		return key.NewRing(source, dir)
	}
	return nil
}

// warnOfKeys says what the operator must know of the key source.
func (e *Env) warnOfKeys(s storage.Settings) {
	if s.Keys != nil && s.Keys.Source().Warning() != "" {
		e.book.warn(s.Keys.Source().Warning())
	}
}
