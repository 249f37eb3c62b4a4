package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// startUp compares the program with one that does nothing, each in turn, so
// that what the machine does besides meets both.
func (b bench) startUp(ctx context.Context) ([]row, error) {
	const n = 101
	empty, err := b.emptyProgram(ctx)
	if err != nil {
		return nil, err
	}
	var bare, ours times
	for range n {
		for _, of := range []struct {
			cmd *exec.Cmd
			to  *times
		}{{exec.CommandContext(ctx, empty), &bare}, {exec.CommandContext(ctx, b.binary, "version"), &ours}} {
			start := time.Now()
			if err := of.cmd.Run(); err != nil {
				return nil, err
			}
			*of.to = append(*of.to, time.Since(start))
		}
	}
	prepared, err := b.prepared(ctx)
	if err != nil {
		return nil, err
	}
	whole := ours.median() - bare.median()
	return []row{
		told("start-up: sledctl version, beyond an empty Go program", fmt.Sprintf("%s (%s - %s, n=%d)", millis(whole), millis(ours.median()), millis(bare.median()), n)),
		timed("start-up: the same, without what tablewriter and zstd prepare as they are loaded", 2*time.Millisecond, whole-prepared,
			fmt.Sprintf("(%s of these)", millis(prepared))),
	}, nil
}

// prepared is how long tablewriter and zstd prepare tables and caches as they are loaded, in the
// median of some runs: no later version of either offers a way to leave that until something is
// printed or unpacked, and versions of tablewriter up to v1.1.1 align cells of a column wrongly.
func (b bench) prepared(ctx context.Context) (time.Duration, error) {
	var all times
	for range 21 {
		cmd := exec.CommandContext(ctx, b.binary, "version")
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		var said strings.Builder
		cmd.Stderr = &said
		if err := cmd.Run(); err != nil {
			return 0, err
		}
		took, err := preparedBy(said.String(), "github.com/olekukonko/", "github.com/klauspost/")
		if err != nil {
			return 0, err
		}
		all = append(all, took)
	}
	return all.median(), nil
}

// preparedBy sums what packages whose paths begin so took to be initialized, from what the Go
// runtime prints with inittrace=1 (go doc runtime): "init NAME @T ms, T ms clock, ...".
func preparedBy(trace string, packages ...string) (time.Duration, error) {
	var sum time.Duration
	some := false
	for line := range strings.Lines(trace) {
		words := strings.Fields(line)
		if len(words) < 6 || words[0] != "init" || !slices.ContainsFunc(packages, func(p string) bool { return strings.HasPrefix(words[1], p) }) {
			continue
		}
		ms, err := strconv.ParseFloat(words[4], 64)
		if err != nil {
			return 0, fmt.Errorf("what the runtime prints of %s: %w", words[1], err)
		}
		sum += time.Duration(ms * float64(time.Millisecond))
		some = true
	}
	if !some {
		return 0, fmt.Errorf("no package of %s is in what the runtime prints", packages)
	}
	return sum, nil
}

func (b bench) emptyProgram(ctx context.Context) (string, error) {
	source, program := filepath.Join(b.dir, "empty.go"), filepath.Join(b.dir, "empty")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o644); err != nil {
		return "", err
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build an empty program: %w: %s", err, said)
	}
	return program, nil
}
