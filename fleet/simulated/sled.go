// Package simulated has sleds of a fleet in this process: simulated machines, each with the
// real agent, node and guard. Which parts run, and until when, says the caller; a sled and its
// VMs outlive them.
package simulated

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/fleet/guard"
	"github.com/sledctl/sledctl/fleet/guard/clock"
	"github.com/sledctl/sledctl/fleet/node"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
)

// Sled is one simulated sled of a fleet.
type Sled struct {
	Name    string
	Machine *sim.Sled
	Host    host.Host // the machine as sledctl, agent and guard reach it
	Dir     string    // for its socket and what its node remembers; a short name
	Log     *slog.Logger
	Now     func() time.Time // the clock of its node; nil: the right time
	Clock   func() int64     // the monotonic clock of node and guard; nil: the machine's
}

// Prepare is what an operator does to have a sled in a fleet: it is configured, set up, and
// handed over. The number tells sleds apart that reach each other: 1 to 16,000.
func (s *Sled) Prepare(ctx context.Context, number int) error {
	files := s.Host.Files()
	err := host.MkdirAll(files, "/etc/sledctl", 0o755)
	if err == nil {
		err = host.WriteFile(files, "/etc/sledctl/config.toml", []byte(config(number)), 0o644)
	}
	if err != nil {
		return fmt.Errorf("configure sled %s: %w", s.Name, err)
	}
	if err := s.Sledctl(ctx, "bootstrap"); err != nil {
		return err
	}
	return s.Sledctl(ctx, "sled", "keeper", "fleet")
}

// config is that of a small sled with a network of its own.
func config(number int) string {
	network := fmt.Sprintf("10.%d.%d", 64+number/256, number%256)
	return `[storage]
slots = "gimlet"
key = "development"

[network]
etherstub = "propolis_stub0"
gz_vnic = "propolis_gz0"
gz_address = "` + network + `.1/24"
underlay = "` + network + `.0/24"
guest_link = "net0"
`
}

// CutPower ends all that runs on the machine, at once. The caller ends the sled's parts.
func (s *Sled) CutPower(ctx context.Context) error { return s.Machine.Reboot(ctx) }

// Sledctl runs a command line on the sled.
func (s *Sled) Sledctl(ctx context.Context, words ...string) error {
	env, _, errs := commands.On(s.Host, nil)
	if exit := commands.Run(ctx, env, words); exit != 0 {
		return fmt.Errorf("sledctl %v on sled %s: exit %d: %s", words, s.Name, exit, errs)
	}
	return nil
}

func (s *Sled) socket() string { return filepath.Join(s.Dir, "agent.sock") }

// Agent runs the sled's agent until the context ends.
func (s *Sled) Agent(ctx context.Context) error {
	err := s.Sledctl(ctx, "agent", "--listen", "unix:"+s.socket())
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Answers waits until the agent answers.
func (s *Sled) Answers(ctx context.Context) error {
	for {
		c, err := new(net.Dialer).DialContext(ctx, "unix", s.socket())
		if err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the agent of sled %s does not answer: %w", s.Name, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (s *Sled) clock() func() int64 {
	if s.Clock == nil {
		return clock.Now
	}
	return s.Clock
}

func (s *Sled) lease() string { return filepath.Join(s.Dir, "lease") }

// Node runs the sled's node until the context ends.
func (s *Sled) Node(ctx context.Context, c *rest.Config, scheme *runtime.Scheme, pace node.Pace) error {
	agent, err := node.NewAgent("unix:"+s.socket(), "")
	if err != nil {
		return err
	}
	now := s.Now
	if now == nil {
		now = time.Now
	}
	n := &node.Node{
		Name: s.Name, Sled: agent, Memory: node.File(filepath.Join(s.Dir, "beat.json")), Log: s.Log.With("sled", s.Name), Now: now,
		Guard: &guard.Writer{File: s.lease(), Fence: pace.Fence, Now: s.clock()},
	}
	return n.Run(ctx, c, scheme, pace)
}

// Guard runs the sled's guard until the context ends.
func (s *Sled) Guard(ctx context.Context) error {
	return (&guard.Guard{File: s.lease(), Host: s.Host, Now: s.clock(), Log: s.Log.With("sled", s.Name)}).Run(ctx)
}
