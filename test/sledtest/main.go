package sledtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/sim"
)

// Main runs the tests of a package. The test binary is sledctl, too, and, through
// links that sledctl itself makes, the stand-in commands.
func Main(m testscript.TestingM) {
	if sim.IsStandIn(filepath.Base(os.Args[0])) {
		// Not os.Exit: with the race detector it sleeps for a second, and the
		// environment that would tell it not to is kept from host commands.
		syscall.Exit(commands.Main(os.Args, os.Stdin, os.Stdout, os.Stderr, os.Environ(), version))
	}
	debug.SetGCPercent(400) // each of thousands of sleds is garbage soon
	testscript.Main(m, map[string]func(){"sledctl": sledctl})
}

// Program is the variable that names a sledctl for the scripts, in the place of the one
// that Installed builds: with mutants, or with -cover (make reached).
const Program = "TEST_PROGRAM"

// Installed puts sledctl as it is released into a directory, which the scripts' PATH
// begins with: it starts in half of the time that a test binary takes, which holds all
// tests. There is none ("") where a developer waits, for whom it is not built, nor below
// the race detector: the test binary stands for both.
func Installed(t *testing.T) (dir string) {
	t.Helper()
	program := os.Getenv(Program)
	if program == "" && (Quick() || Raced) {
		return ""
	}
	dir = t.TempDir()
	name := filepath.Join(dir, "sledctl")
	if program != "" {
		if err := os.Symlink(program, name); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	if out, err := Build(t.Context(), ".", name).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// Build is the command that builds the scripts' sledctl as a file, from any directory of the module.
func Build(ctx context.Context, from, name string, flags ...string) *exec.Cmd {
	args := slices.Concat([]string{"build", "-ldflags", "-X main.version=" + version, "-o", name}, flags, []string{"github.com/sledctl/sledctl/cmd/sledctl"})
	build := exec.CommandContext(ctx, "go", args...)
	build.Dir = from
	return build
}

// version is the one that the scripts' sledctl has.
const version = "v0.0.0-test"

func sledctl() {
	os.Exit(commands.Main(os.Args, os.Stdin, os.Stdout, os.Stderr, os.Environ(), version))
}
