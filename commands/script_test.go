package commands_test

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/sim"
)

var update = flag.Bool("update", false, "rewrite the expected output in the scripts")

// TestMain lets the test binary be sledctl, and, through links that sledctl
// itself makes, the stand-in commands.
func TestMain(m *testing.M) {
	if sim.IsStandIn(filepath.Base(os.Args[0])) {
		sledctl()
	}
	testscript.Main(m, map[string]func(){"sledctl": sledctl})
}

func sledctl() {
	os.Exit(commands.Main(os.Args, os.Stdin, os.Stdout, os.Stderr, os.Environ(), "v0.0.0-test"))
}

// TestScripts are bring-up stories as operators would type them, each on a
// simulated sled of its own.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("SLEDCTL_HOST", "sim:"+filepath.Join(env.WorkDir, "sled"))
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("TZ", "UTC")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exitcode": exitCode, "stdout2env": stdoutToEnv,
		},
	})
}

// exitCode N PROGRAM ARGS... runs a program and asserts its exit code.
func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode N program args...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%v: exit %d, want %d", args[1:], got, want)
	}
}

// stdoutToEnv NAME puts the last command's output into a variable.
func stdoutToEnv(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: stdout2env NAME")
	}
	out := ts.ReadFile("stdout")
	for len(out) > 0 && out[len(out)-1] == '\n' {
		out = out[:len(out)-1]
	}
	ts.Setenv(args[0], out)
}
