package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sledctl/sledctl/sim/simtest"
	"github.com/sledctl/sledctl/test/sledtest"
)

func TestMain(m *testing.M) { sledtest.Main(m) }

// TestScripts are the stories of the tarball on a simulated sled each: installed by its
// own installer, which runs with the sled's commands and root.
func TestScripts(t *testing.T) {
	installed := sledtest.Installed(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true,
		Condition: func(name string) (bool, error) { return name == "quick" && sledtest.Quick(), nil },
		Setup: func(env *testscript.Env) error {
			if sledtest.Raced {
				env.T().Skip("programs that end soon, in which the race detector sees no more than within tests")
			}
			network, release, err := simtest.Underlay()
			if errors.Is(err, syscall.EADDRNOTAVAIL) {
				env.T().Skip("this system has no further loopback addresses: ", err)
			}
			if err != nil {
				return err
			}
			env.Defer(release)
			env.Setenv("PATH", strings.TrimPrefix(installed+":"+env.Getenv("PATH"), ":"))
			for key, value := range map[string]string{
				"SLEDCTL_HOST": "sim:" + filepath.Join(env.WorkDir, "sled"), "ROOT": filepath.Join(env.WorkDir, "sled", "root"), "HOME": env.WorkDir, "TZ": "UTC",
				"SLEDCTL_NETWORK_UNDERLAY": network.String(), "SLEDCTL_NETWORK_GZ_ADDRESS": network.Addr().Next().String() + "/24",
			} {
				env.Setenv(key, value)
			}
			for _, version := range []string{"v1", "v2", "v3"} {
				if err := unpacked(env.WorkDir, version); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exitcode": exitCode, "image": image},
	})
}

// unpacked writes what the tarball of a version holds. In the place of the program for a
// sled is a script that notes which version was called, and calls the one of this test.
func unpacked(dir, version string) error {
	in := example()
	in.version = version
	in.program = fmt.Appendf(nil, "#!/bin/sh\necho %s \"$*\" >>%s/called\nexec %[2]s/sled/bin/sledctl \"$@\"\n", version, dir)
	if version == "v3" { // knows an earlier form of the ledger only
		in.program = bytes.Replace(in.program, []byte("exec "), []byte("[ \"$1\" != ledger ] || { echo 'sledctl: error: the file has format 9; this sledctl knows formats up to 1' >&2; exit 9; }\nexec "), 1)
	}
	files, err := content(in)
	if err != nil {
		return err
	}
	for _, f := range below(version, files) {
		name := filepath.Join(dir, f.name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, f.data, f.mode); err != nil {
			return err
		}
	}
	return nil
}

// image DIR adds the files of a directory to the system's image.
func image(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: image dir")
	}
	ts.Check(sledtest.AddToImage(context.Background(), ts.MkAbs("sled"), ts.MkAbs(args[0])))
}

// exitCode N PROGRAM ARGS... runs a program and asserts its exit code.
func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode N program args...")
	}
	err := ts.Exec(args[1], args[2:]...)
	if err == nil && args[0] != "0" || err != nil && !strings.Contains(err.Error(), "exit status "+args[0]) {
		ts.Fatalf("%v: %v, want exit %s", args[1:], err, args[0])
	}
}
