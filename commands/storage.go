package commands

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/storage"
)

func newStorage(env *Env) *cobra.Command {
	cmd := group("storage", "List, check and format disks, pools and datasets", `
Of the sled's disks, M.2s hold the state file and what else must outlive everything, U.2s zone roots and what customers keep, encrypted. What must
be there is made by bootstrap; these commands show it, say what differs, and do what only an operator may decide.`)
	cmd.AddCommand(newStorageList(env), newStorageCheck(env), newStorageFormat(env), newStorageForget(env), newStorageRekey(env))
	return cmd
}

// settingsOf are the storage noun, and what it works with.
func settingsOf(e *Env) (storage.Settings, operation.Env, error) {
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
func maybeView(ctx context.Context, e *Env) ledger.View {
	view, err := e.view(ctx)
	if err != nil && !errors.Is(err, ledger.ErrAbsent) {
		e.progress.warn(err)
	}
	return view
}

// completeDisks offers the disks that there are.
func completeDisks(ctx context.Context, e *Env) []string {
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
