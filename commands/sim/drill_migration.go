package sim

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/documents"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// The second sled of the drill is one to which web12 departs. The command that moves it
// was interrupted while memory is sent: Propolis goes on, and no process waits for it.

const (
	departing = "web12"
	ramPush   = "RamPush"
)

// secondSled is the sled to which a VM departs.
type secondSled struct {
	settings instance.Settings
	env      operation.Env
}

// newSecondSled creates the second sled in a directory, and connects it with the first one.
func newSecondSled(ctx context.Context, e *cli.Env, first *sim.Sled, dir string) (secondSled, func(), error) {
	o := cli.Configured(sim.Options{Seed: 2, M2: 1, U2: 1})
	o.Files[naming.ConfigFile] = strings.ReplaceAll(o.Files[naming.ConfigFile], "127.77.0.", "10.78.0.")
	made, err := createSim(dir, o)
	if err != nil {
		return secondSled{}, func() {}, err
	}
	made.Close()
	other := cli.NewEnv(e.Streams, e.Environ, e.Version)
	other.ActOn("sim:" + dir)
	var s secondSled
	if s.settings, s.env, err = prepare(ctx, other); err == nil {
		err = sim.Connect(ctx, first, other.Sled)
	}
	return s, other.Close, err
}

// answer does what the second sled's sledctl does when the first one runs it, up to the
// moment in which the drill leaves it: a program that was killed prints nothing.
func (s secondSled) answer(ctx context.Context, words []string, document []byte) (migration.Answer, error) {
	killed := migration.Answer{Exit: -1}
	if slices.Contains(words, "--dry-run") {
		return migration.Answer{Stdout: []byte(`{"kind": "ActionList"}`)}, nil
	}
	from := slices.Index(words, "--migrate-from")
	if from < 0 {
		return killed, nil // it is asked to give up what has come
	}
	wanted, err := documents.ParseSent(document, terminal.ParseSize)
	if err != nil {
		return killed, err
	}
	_, err = s.settings.Ensure(ctx, s.env, instance.EnsureRequest{
		Verb: "instance ensure", Wanted: wanted,
		From: &record.Migration{Source: words[from+1], ID: words[slices.Index(words, "--migration-id")+1]},
	})
	if errors.Is(context.Cause(ctx), errLeft) {
		return killed, nil
	}
	return killed, err
}

// depart begins to move a VM to a second sled, and leaves it while its memory is sent,
// which takes so long.
func (d *driller) depart(ctx context.Context, e *cli.Env, dir string, takes time.Duration) error {
	dir, err := filepath.Abs(dir + "-sled2")
	if err != nil {
		return err
	}
	second, done, err := newSecondSled(ctx, e, d.sled, dir)
	defer done()
	if err != nil {
		return err
	}
	err = d.sled.World().Update(ctx, func(tx *world.Tx) error {
		tx.Arm(world.Fault{Name: world.FaultSlowMigrate, Match: "propolis * migrate " + ramPush, Delay: takes, Times: 1})
		return nil
	})
	if err != nil {
		return err
	}
	while, interrupt := context.WithCancelCause(ctx)
	defer interrupt(nil)
	moved, err := d.settings.Migrate(while, d.env, instance.Departure{
		Verb: "instance migrate", Ref: departing, Target: []string{"sledctl", "--host", "sim:" + dir}, Run: second.answer,
		Tell: func(phase string) {
			if phase == ramPush {
				interrupt(errLeft)
			}
		},
	})
	if _, moving := errors.AsType[*migration.UnknownOutcomeError](err); moving && errors.Is(context.Cause(while), errLeft) {
		return nil
	}
	return failure.WithReport(err, moved.Reports...)
}

// errLeft is why the drill's migration has no process that waits for it.
var errLeft = errors.New("the drill leaves it on its way")
