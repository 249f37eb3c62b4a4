package sledtest

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"

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
		syscall.Exit(commands.Main(os.Args, os.Stdin, os.Stdout, os.Stderr, os.Environ(), "v0.0.0-test"))
	}
	debug.SetGCPercent(400) // each of thousands of sleds is garbage soon
	testscript.Main(m, map[string]func(){"sledctl": sledctl})
}

// Covered is the variable that names a sledctl built with -cover, which takes this
// one's place in the scripts: a test binary says nothing of what the programs that
// it became have reached. make reached sets it.
const Covered = "TEST_COVERED"

func sledctl() {
	if program := os.Getenv(Covered); program != "" {
		panic(syscall.Exec(program, os.Args, os.Environ()))
	}
	os.Exit(commands.Main(os.Args, os.Stdin, os.Stdout, os.Stderr, os.Environ(), "v0.0.0-test"))
}
