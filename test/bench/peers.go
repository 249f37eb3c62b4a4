package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// peer is another program that keeps a record of each of many machines or containers, and
// lists them.
type peer struct {
	name, module string   // what go install makes it of; empty: it cannot
	version      []string // the arguments that only make it start
	// record makes it know of n, stopped, below a directory, and gives the arguments that
	// list them; nil: they cannot be made without running them.
	record func(dir string, n int) ([]string, error)
}

var peersOf = []peer{
	{name: "runc", module: "github.com/opencontainers/runc@v1.5.2", version: []string{"--version"}, record: runcContainers},
	{name: "podman", version: []string{"--version"}},
	{name: "cocoon", version: []string{"version"}},
}

// runcContainers writes what runc keeps of a container, libcontainer's state.json
// (libcontainer/container_linux.go).
func runcContainers(dir string, n int) ([]string, error) {
	for i := range n {
		id := fmt.Sprintf("vm%05d", i)
		state := fmt.Sprintf(`{"id":%q,"init_process_pid":999999,"init_process_start":1,"created":"2026-11-01T00:00:00Z",`+
			`"config":{"rootfs":"/tmp","version":"1.2.0","labels":["bundle=/tmp"],"cgroups":{"name":%[1]q,"path":"/%[1]s","resources":{}}},`+
			`"cgroup_paths":{"":"/sys/fs/cgroup/%[1]s"},"namespace_paths":{}}`, id)
		if err := os.MkdirAll(filepath.Join(dir, id), 0o711); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, id, "state.json"), []byte(state), 0o600); err != nil {
			return nil, err
		}
	}
	return []string{"--root", dir, "list"}, nil
}

// peers compares whole processes, each in turn.
func (b bench) peers(ctx context.Context) ([]row, error) {
	const records = 1000
	sled := filepath.Join(b.dir, "peers")
	s, err := inDirectory(ctx, sled)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := s.know(ctx, records); err != nil {
		return nil, err
	}
	ours := program{binary: b.binary, sled: sled}
	var rows []row
	for _, p := range peersOf {
		what := "next to " + p.name
		binary, why := p.find(ctx, b.dir)
		if binary == "" {
			rows = append(rows, told(what, "not available: "+why))
			continue
		}
		start, err := ours.nextTo(ctx, binary, []string{"version"}, p.version, 0)
		if err != nil {
			return nil, err
		}
		rows = append(rows, told(what+": start-up", start))
		if p.record == nil {
			continue
		}
		args, err := p.record(filepath.Join(b.dir, p.name+".d"), records)
		if err != nil {
			return nil, err
		}
		list, err := ours.nextTo(ctx, binary, []string{"instance", "list", "-H"}, args, records)
		if err != nil {
			return nil, err
		}
		rows = append(rows, told(fmt.Sprintf("%s: a list of %d, stopped", what, records), list))
	}
	return rows, nil
}

// find finds the peer, or builds it; else it says why it is not available.
func (p peer) find(ctx context.Context, dir string) (binary, why string) {
	if found, err := exec.LookPath(p.name); err == nil {
		return found, ""
	}
	if p.module == "" {
		return "", "no " + p.name + " in PATH, and go install cannot build it"
	}
	build := exec.CommandContext(ctx, "go", "install", p.module)
	build.Dir = dir
	build.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=-mod=mod")
	if said, err := build.CombinedOutput(); err != nil {
		last := bytes.Split(bytes.TrimSpace(said), []byte("\n"))
		return "", fmt.Sprintf("go install %s: %s", p.module, last[len(last)-1])
	}
	return filepath.Join(dir, p.name), ""
}

// nextTo runs sledctl and a peer, each in turn, and says how their medians compare. Both
// must print so many lines at least.
func (p program) nextTo(ctx context.Context, binary string, ours, theirs []string, lines int) (string, error) {
	const n = 31
	var our, their times
	for range n {
		start := time.Now()
		said, err := p.run(ctx, ours...)
		if err != nil {
			return "", err
		}
		our = append(our, time.Since(start))
		start = time.Now()
		other, err := exec.CommandContext(ctx, binary, theirs...).Output()
		if err != nil {
			return "", fmt.Errorf("%s %s: %w", binary, strings.Join(theirs, " "), err)
		}
		their = append(their, time.Since(start))
		if got := slices.Min([]int{bytes.Count(said, []byte("\n")), bytes.Count(other, []byte("\n"))}); got < lines {
			return "", fmt.Errorf("%d lines are listed, want %d", got, lines)
		}
	}
	return fmt.Sprintf("%.1f times its time (%s / %s, n=%d)", float64(our.median())/float64(their.median()), millis(our.median()), millis(their.median()), n), nil
}
