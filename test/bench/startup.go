package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	return []row{timed("start-up: sledctl version, beyond an empty Go program", 2*time.Millisecond, ours.median()-bare.median(),
		fmt.Sprintf("(%s - %s, n=%d)", millis(ours.median()), millis(bare.median()), n))}, nil
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
