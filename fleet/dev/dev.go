// Package dev is a whole fleet on this machine, to try it: Kubernetes' own servers, the
// controller, and simulated sleds with the real agent, node and guard.
package dev

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sledctl/sledctl/fleet/api"
	"github.com/sledctl/sledctl/fleet/controller"
	"github.com/sledctl/sledctl/fleet/deploy"
	"github.com/sledctl/sledctl/fleet/eviction"
	"github.com/sledctl/sledctl/fleet/fence"
	"github.com/sledctl/sledctl/fleet/node"
	"github.com/sledctl/sledctl/fleet/plane"
	"github.com/sledctl/sledctl/fleet/simulated"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world/crucible"
)

// Options say which fleet.
type Options struct {
	Servers string // the directory of Kubernetes' programs
	Dir     string // for all that is written; a short name, as sockets are in it
	Sleds   int
	Scheme  *runtime.Scheme
	Out     io.Writer // what is to be typed next
	Log     *slog.Logger
}

// Run has the fleet until the context ends. Nothing of it runs afterwards.
func Run(ctx context.Context, o Options) (err error) {
	at := filepath.Join(o.Dir, "plane")
	if err := os.MkdirAll(at, 0o700); err != nil {
		return err
	}
	p, err := plane.Start(ctx, plane.Options{Bin: o.Servers, Dir: at})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	for _, yaml := range [][]byte{api.CRDs, deploy.Rights} {
		if err := apply(ctx, p, yaml); err != nil {
			return err
		}
	}
	// When one part ends, all do.
	ctx, stop := context.WithCancelCause(ctx)
	var parts sync.WaitGroup
	defer parts.Wait()
	defer stop(nil)
	part := func(run func(context.Context) error) { parts.Go(func() { stop(run(ctx)) }) }
	c, err := p.Config("system:serviceaccount:"+node.BeatNamespace+":sledctl-fleet", "system:serviceaccounts")
	if err != nil {
		return err
	}
	hook, err := webhook(ctx, o, p)
	if err != nil {
		return err
	}
	part(func(ctx context.Context) error {
		return controller.Run(ctx, c, o.Scheme, controller.Options{Terms: terms(), Every: time.Second, After: time.Minute, Metrics: "0", Health: "0", Webhook: hook}, o.Log)
	})
	var machines []*sim.Sled
	var shared crucible.Crucible
	for n := 1; n <= o.Sleds; n++ {
		machine, err := join(ctx, o, p, n, &shared, part)
		if err != nil {
			return err
		}
		for _, other := range machines {
			if err := sim.Connect(ctx, machine, other); err != nil {
				return fmt.Errorf("connect the sleds: %w", err)
			}
		}
		machines = append(machines, machine)
	}
	fmt.Fprintf(o.Out, "export KUBECONFIG=%s\nexport PATH=%s:$PATH\nkubectl get nodes\n", filepath.Join(at, "admin.kubeconfig"), o.Servers)
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// pace and terms are those that controller and node have without flags.
func pace() node.Pace { return node.Pace{Renew: 5 * time.Second, Fence: 15 * time.Second} }

func terms() fence.Terms {
	return fence.Terms{Fence: pace().Fence, Halt: 15 * time.Second, Margin: 10 * time.Second, Settle: 10 * time.Second}
}

// apply gives objects to the API server, as a user would.
func apply(ctx context.Context, p *plane.Plane, yaml []byte) error {
	c := p.Kubectl(ctx, "apply", "--server-side", "-f", "-")
	c.Stdin = bytes.NewReader(yaml)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("apply what the fleet needs: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// webhook has the API server ask the controller about evictions.
func webhook(ctx context.Context, o Options, p *plane.Plane) (controller.Webhook, error) {
	hook := controller.Webhook{Certs: filepath.Join(o.Dir, "webhook"), Host: "127.0.0.1"}
	if err := os.MkdirAll(hook.Certs, 0o700); err != nil {
		return hook, err
	}
	if err := p.Serving(hook.Certs); err != nil {
		return hook, err
	}
	port, err := plane.FreePort()
	if err != nil {
		return hook, err
	}
	hook.Port = port
	yaml, err := deploy.WebhookAt(fmt.Sprintf("https://127.0.0.1:%d%s", port, eviction.Path), p.Authority())
	if err != nil {
		return hook, err
	}
	return hook, apply(ctx, p, yaml)
}

// join has a simulated sled with all its parts.
func join(ctx context.Context, o Options, p *plane.Plane, number int, shared *crucible.Crucible, part func(func(context.Context) error)) (*sim.Sled, error) {
	name := fmt.Sprintf("sled%d", number)
	dir := filepath.Join(o.Dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	machine, err := sim.Init(filepath.Join(dir, "machine"), sim.Options{Seed: uint64(number), M2: 1, U2: 1})
	if err != nil {
		return nil, fmt.Errorf("make sled %s: %w", name, err)
	}
	machine.World().Share(shared)
	s := &simulated.Sled{Name: name, Machine: machine, Host: machine.Host(), Dir: dir, Log: o.Log}
	if err := s.Prepare(ctx, number); err != nil {
		return nil, err
	}
	c, err := p.Config("system:node:"+name, "system:nodes")
	if err != nil {
		return nil, err
	}
	part(s.Agent)
	if err := s.Answers(ctx); err != nil {
		return nil, err
	}
	part(func(ctx context.Context) error { return s.Node(ctx, c, o.Scheme, pace()) })
	part(s.Guard)
	return machine, nil
}
