// Package sim is a simulated sled: a machine that answers the commands of
// illumos, has their files, and runs Propolis servers in its zones. Anything
// that drives a sled through package host can be run on it, on any system and
// without privileges.
//
// It has three doors, with the same code behind them: Host for this process,
// StandIn for a binary that is called by the names of the real commands, and
// the addresses on which stand-in servers listen.
package sim

import (
	"context"
	"net"
	"sync"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/tools"
	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
)

// Options say which sled to make.
type Options = boot.Options

// Sled is a simulated sled. It is safe for concurrent use.
type Sled struct {
	// Kill is what happens when a fault kills the caller of a command. Nil:
	// the command's error is ErrKilled. It is set before the sled is used.
	Kill func()
	// Observe receives what the sled's servers are asked and answer, from many
	// goroutines. Nil: nobody is. It is set before the sled is used.
	Observe func(Exchange)
	// Agent opens a connection to where an agent of a sled answers, for the control
	// plane: unix:/NAME or tcp:HOST:PORT. Nil: it dials. It is set before the sled
	// is used.
	Agent func(ctx context.Context, address string) (net.Conn, error)

	world *world.World
	files *mountedFiles
	ctx   context.Context // until Close
	close context.CancelFunc
	left  sync.WaitGroup // commands and servers that go on
}

// ErrKilled is the error of a command whose caller a fault has killed.
var ErrKilled = cli.ErrKilled

// New makes a fresh sled in memory, with what empty returns as its file
// systems. It panics on options that Check refuses.
func New(o Options, empty func() host.Files) *Sled { return newSled(boot.Memory(o, empty)) }

// Clone is a sled in memory as it is now: the two are independent from then on. No
// command may be running. It panics on a sled in a directory, which cp clones.
func (s *Sled) Clone() *Sled { return newSled(s.world.Clone()) }

// Open opens the sled in a directory that Init or Ensure has made.
func Open(dir string) (*Sled, error) { return opened(boot.Open(dir)) }

// Init makes a fresh sled in a directory.
func Init(dir string, o Options) (*Sled, error) { return opened(boot.Init(dir, o)) }

// Ensure opens the sled in a directory, and makes it first if it does not exist.
func Ensure(dir string, o Options) (*Sled, error) { return opened(boot.Ensure(dir, o)) }

func opened(w *world.World, err error) (*Sled, error) {
	if err != nil {
		return nil, err
	}
	return newSled(w), nil
}

func newSled(w *world.World) *Sled {
	s := &Sled{world: w.Handle(tools.Handlers())}
	s.ctx, s.close = context.WithCancel(context.Background())
	s.files = &mountedFiles{Files: w.Files(), mounts: &mountTable{world: w, ctx: s.ctx}}
	if w.Dir() != "" {
		w.AfterUpdate(func(_ *world.Tx, ended []*world.Process) { s.endServers(ended) })
	}
	return s
}

// World is the state of the sled, for those who look behind the doors.
func (s *Sled) World() *world.World { return s.world }

// Host is the sled as programs reach it.
func (s *Sled) Host() host.Host { return &simHost{sled: s} }

// Close ends the commands that still run, and breaks off connections. What
// they have done stays done. Nothing may be begun meanwhile or afterwards.
func (s *Sled) Close() {
	s.close()
	s.left.Wait()
	s.world.Close()
}

// Reboot is a power cycle: what was not persistent is gone, and zones that
// boot by themselves do.
func (s *Sled) Reboot(ctx context.Context) error {
	start := map[string]string{}
	err := s.world.Update(ctx, func(tx *world.Tx) error {
		cutPower(tx)
		if err := boot.Reboot(tx); err != nil {
			return err
		}
		for _, z := range tx.State.Zones {
			switch {
			case z.State != world.ZoneInstalled:
			case z.Config.Autoboot:
				start[z.Name] = "boot"
			default:
				start[z.Name] = "sysboot"
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	// The start method of svc:/system/zones boots them side by side, and a
	// zone that does not boot does not stop the others. For the zones that it
	// leaves down it calls the sysboot hook of their brand
	// (usr/src/cmd/zoneadm/svc-zones).
	var wg sync.WaitGroup
	for zone, command := range start {
		wg.Go(func() {
			_, _ = (&tools.Dispatcher{World: s.world}).Exec(ctx, cli.Call{Tool: "zoneadm", Args: []string{"-z", zone, command}})
		})
	}
	wg.Wait()
	return ctx.Err()
}

// Connect makes two sleds reach each other's addresses, and their machines move
// between them. Both live in memory, or both in directories.
func Connect(ctx context.Context, a, b *Sled) error { return world.Connect(ctx, a.world, b.world) }
