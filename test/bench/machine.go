package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/hosttest"
)

// machine is a simulated sled in this process.
type machine struct {
	*sim.Sled
	host host.Host // what its command lines see; nil: the sled's own
}

// inMemory is one that lives in memory, prepared.
func inMemory(ctx context.Context) (machine, error) {
	s := machine{Sled: sim.New(sim.Options{Seed: 1}, hosttest.Files)}
	return s, s.prepare(ctx)
}

// inDirectory is one whose files are real, prepared.
func inDirectory(ctx context.Context, dir string) (machine, error) {
	made, err := sim.Init(dir, sim.Options{Seed: 1})
	if err != nil {
		return machine{}, err
	}
	s := machine{Sled: made}
	return s, s.prepare(ctx)
}

func (s machine) configure() error { return s.configureAs(commands.SimulatedConfig()) }

func (s machine) configureAs(config string) error {
	files := s.Host().Files()
	if err := host.MkdirAll(files, "/etc/sledctl", 0o755); err != nil {
		return err
	}
	return host.WriteFile(files, "/etc/sledctl/config.toml", []byte(config), 0o644)
}

func (s machine) prepare(ctx context.Context) error {
	if err := s.configure(); err != nil {
		return err
	}
	_, err := s.run(ctx, nil, "bootstrap")
	return err
}

// slow gives the sled the times of a real one. Before, it was prepared
// without.
func (s machine) slow(ctx context.Context) error {
	return s.World().Update(ctx, func(tx *world.Tx) error {
		tx.State.Latency = "helios2021"
		return nil
	})
}

// run is one command line as it was carried out.
type run struct {
	out    string
	wall   time.Duration
	events []host.Event
}

// run runs a command line in this process.
func (s machine) run(ctx context.Context, observe func(plan.Event), args ...string) (run, error) {
	var mu sync.Mutex
	var events []host.Event
	seen := s.host
	if seen == nil {
		seen = s.Host()
	}
	traced := host.Trace(seen, func(e host.Event) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, e)
	})
	start := time.Now()
	env, out, errs := commands.On(traced, observe)
	exit := commands.Run(ctx, env, args)
	wall := time.Since(start)
	mu.Lock()
	defer mu.Unlock()
	r := run{out: out.String(), wall: wall, events: events}
	if exit != 0 {
		return r, fmt.Errorf("sledctl %s: exit %d: %s", strings.Join(args, " "), exit, errs)
	}
	return r, nil
}

// own is the run's time without that of host commands and requests.
func (r run) own() time.Duration { return r.wall - host.Busy(r.events) }

// counts is what a run asked of the host.
type counts struct{ changes, looks, requests, files int }

func (r run) counts() counts {
	var c counts
	for _, e := range r.events {
		switch {
		case e.Status != 0:
			c.requests++
		case e.Line.Kind == host.LineRun:
			c.changes++
		case e.Line.Kind == host.LineQuery:
			c.looks++
		case e.Line.Kind == host.LineFile:
			c.files++
		}
	}
	return c
}

// commands is how many host commands were run.
func (c counts) commands() int { return c.changes + c.looks }

// String says them all.
func (c counts) String() string {
	return fmt.Sprintf("%d that change, %d that look, %d requests, %d writes of files", c.changes, c.looks, c.requests, c.files)
}
