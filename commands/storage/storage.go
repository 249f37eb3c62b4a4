// Package storage is sledctl storage.
package storage

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/lost"
	"github.com/sledctl/sledctl/sled/storage"
)

// New is the command storage.
func New(env *cli.Env) *cobra.Command {
	cmd := cli.Group("storage", "List, check and format disks, pools and datasets", `
Of the sled's disks, M.2s hold the ledger and what else must outlive everything, U.2s zone roots and what customers keep, encrypted. What must
be there is made by bootstrap; these commands show it, say what differs, and do what only an operator may decide.`)
	cmd.AddCommand(newList(env), newCheck(env), newFormat(env), newForget(env), newRekey(env), newLocalDisk(env))
	return cmd
}

// settingsOf are the settings of storage, and what its operations work with.
func settingsOf(e *cli.Env) (storage.Settings, operation.Env, error) {
	c, env, err := e.Operation()
	if err != nil {
		return storage.Settings{}, env, err
	}
	s, err := cli.StorageSettings(c)
	s.RefreshWitness, s.On = e.RefreshWitness, lost.On
	return s, env, err
}

// maybeView returns the contents of the ledger if there is one: what is on the disks
// can be listed without it.
func maybeView(ctx context.Context, e *cli.Env) ledger.View {
	view, err := e.View(ctx)
	if err != nil && !errors.Is(err, ledger.ErrAbsent) {
		e.Progress.Warn(err)
	}
	return view
}

// completeDisks offers the disks that there are.
func completeDisks(ctx context.Context, e *cli.Env) []string {
	s, env, err := settingsOf(e)
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
