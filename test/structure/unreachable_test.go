package main

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unreached are the functions that the program cannot reach, and that stay: at
// most fifteen.
var unreached = []string{
	// The manual and the benchmarks use the commands without the program.
	"commands.Root", "commands.Settings", "commands.SimulatedConfig",
	"commands.On", "commands/terminal.Buffers",
	// Tests and benchmarks make their sleds in memory.
	"sim.New", "sim/world/boot.Memory", "sim/world.InMemory",
	// What the defaults of the configuration are held against.
	"illumos/naming.DefaultPrefixes",
}

const mostUnreached = 10

// TestNoFunctionIsUnreachable runs deadcode on the program: what only tests use
// belongs to test/, and what nothing uses is removed.
func TestNoFunctionIsUnreachable(t *testing.T) {
	if testing.Short() {
		t.Skip("deadcode reads the whole program")
	}
	if len(unreached) > mostUnreached {
		t.Errorf("%d functions may be unreachable, and at most %d should", len(unreached), mostUnreached)
	}
	deadcode := exec.Command("go", "tool", "-modfile=test/tools/go.mod", "deadcode", "./cmd/sledctl")
	deadcode.Dir = "../.."
	out, err := deadcode.Output()
	if err != nil {
		t.Fatalf("deadcode: %v\n%s", err, out)
	}
	found := unreachable(string(out))
	for _, name := range found {
		if !slices.Contains(unreached, name) {
			t.Errorf("the program cannot reach %s: remove it, or move it to where it is used", name)
		}
	}
	for _, name := range unreached {
		if !slices.Contains(found, name) {
			t.Errorf("%s is reachable, or gone: remove it from the list", name)
		}
	}
}

// unreachable are the functions in deadcode's output, with their folders.
func unreachable(out string) (all []string) {
	line := regexp.MustCompile(`(?m)^(\S+)/[^/]+\.go:\d+:\d+: unreachable func: (\S+)$`)
	for _, m := range line.FindAllStringSubmatch(strings.ReplaceAll(out, "\\", "/"), -1) {
		all = append(all, m[1]+"."+m[2])
	}
	return all
}

func TestUnreachableFunctionsAreFound(t *testing.T) {
	got := unreachable("zfs/step.go:82:17: unreachable func: Snapshot.Verb\ncommands/terminal/streams.go:132:6: unreachable func: Buffers\n")
	if !slices.Equal(got, []string{"zfs.Snapshot.Verb", "commands/terminal.Buffers"}) {
		t.Errorf("found %v", got)
	}
}
