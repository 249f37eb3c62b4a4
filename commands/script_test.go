package commands_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/simtest"
	"github.com/sledctl/sledctl/sim/simtest/contract"
	"github.com/sledctl/sledctl/test/sledtest"
)

var update = flag.Bool("update", false, "rewrite the expected output in the scripts")

// unraced is why -short, which the race detector runs with, leaves a test out.
const unraced = "one command after the other, many times: the race detector sees nothing more in it"

// TestMain has the tests of the scripts look at what was said to Propolis. Stories wait
// more than they compute, so more of them run at once than there are cores.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	sledtest.Main(conforming{m})
}

// conforming are the tests, and behind them a look at all that was said to the
// simulated Propolis in the scripts, and answered: it must be as published.
type conforming struct{ *testing.M }

// exchanges is the variable that the scripts' programs find the file by.
const exchanges = "TEST_EXCHANGES"

func (c conforming) Run() int {
	published, err := contract.Open()
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Println("the published API documents are not here: what is said in the scripts is held to none")
		return c.M.Run()
	}
	if err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "exchanges")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "exchanges")
	os.Setenv(exchanges, file)
	code := c.M.Run()
	n, err := published.File(file)
	switch {
	case errors.Is(err, fs.ErrNotExist): // no script was run
	case err != nil:
		fmt.Fprintf(os.Stderr, "FAIL: what was said to Propolis in the scripts: %v\n", err)
		return 1
	case testing.Verbose():
		fmt.Printf("%d exchanges with Propolis in the scripts are as published\n", n)
	}
	return code
}

// TestScripts are bring-up stories as operators would type them, each on a
// simulated sled of its own.
func TestScripts(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) { // as below nohup(1): a caught signal is none that programs inherit as ignored
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	installed := sledtest.Installed(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Condition: func(name string) (bool, error) {
			switch name {
			case "quick":
				return sledtest.Quick(), nil
			case "ipv6":
				l, err := net.Listen("tcp", "[::1]:0")
				if err == nil {
					err = l.Close()
				}
				return err == nil, nil
			}
			return false, fmt.Errorf("no condition %q", name)
		},
		Setup: func(env *testscript.Env) error {
			if sledtest.Raced && !lasting(scriptOf(env)) {
				env.T().Skip("programs that end soon, in which the race detector sees no more than within tests")
			}
			env.Setenv("SLEDCTL_HOST", "sim:"+filepath.Join(env.WorkDir, "sled"))
			env.Defer(func() {
				if strange, _, err := strangeKeys(env.WorkDir); err != nil || len(strange) > 0 {
					env.T().Fatal("keys that no package owns, in what the script has written:", strange, err)
				}
			})
			env.Setenv("HOME", env.WorkDir)
			env.Setenv(sim.ExchangesVariable, os.Getenv(exchanges))
			env.Setenv("TZ", "UTC")
			env.Setenv("PATH", strings.TrimPrefix(installed+":"+env.Getenv("PATH"), ":"))
			env.Setenv("GORACE", "atexit_sleep_ms=0") // a binary with the race detector otherwise sleeps a second when it ends
			return ownUnderlay(env)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exitcode": exitCode, "stdout2env": stdoutToEnv, "fenced": fenced, "request": request,
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

// request METHOD URL [BODY] asks a server as curl does, from as soon as it
// listens, and prints the status with the Etag, and the body.
func request(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: request METHOD URL [BODY]")
	}
	args = append(args, "")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		r, err := http.NewRequest(args[0], args[1], strings.NewReader(args[2]))
		ts.Check(err)
		r.Close = true
		r.Header.Set("api-version", sledtest.LatestAPI) // which only dropshot's servers want
		reply, err := http.DefaultClient.Do(r)
		if errors.Is(err, syscall.ECONNREFUSED) && time.Now().Before(deadline) {
			continue
		}
		ts.Check(err)
		defer reply.Body.Close()
		body, err := io.ReadAll(reply.Body)
		ts.Check(err)
		fmt.Fprintf(ts.Stdout(), "%d %s\n%s\n", reply.StatusCode, reply.Header.Get("Etag"), body)
		return
	}
}

// scriptOf is a script's name.
func scriptOf(env *testscript.Env) string {
	return strings.TrimPrefix(filepath.Base(env.WorkDir), "script-")
}

// lasting says whether programs of a script go on for a while, next to others.
func lasting(name string) bool {
	return slices.ContainsFunc([]string{"agent_", "sim_nexus", "nics_serve", "instance_console"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// listens says whether servers of a script really listen on this machine's loopback
// addresses: those of VMs do while a sim shell runs. Addresses of Helios are IPv6,
// which nobody listens on.
func listens(name string, script string) bool {
	all := func(said ...string) bool {
		return !slices.ContainsFunc(said, func(s string) bool { return !strings.Contains(script, s) })
	}
	return strings.HasPrefix(name, "standin") || all("$NET") || all("${PORT}") ||
		all("sim shell", "instance ensure") && !all("--mode helios") && !all("\nunderlay =")
}

// ownUnderlay gives a script whose servers listen a network that no other test uses,
// nor an operator's own sled: NET is its first three bytes. PORT and a digit are ten ports that no
// other has, on any loopback address.
func ownUnderlay(env *testscript.Env) error {
	name := scriptOf(env)
	script, err := os.ReadFile(filepath.Join("testdata", "script", name+".txtar"))
	if err != nil || !listens(name, string(script)) {
		return err
	}
	network, release, err := simtest.Underlay()
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		env.T().Skip("this system has no further loopback addresses: ", err)
	}
	if err != nil {
		return err
	}
	env.Defer(release)
	env.Setenv("PORT", strconv.Itoa(2000+int(network.Addr().As4()[2])))
	if strings.Contains(string(script), "sim connect") {
		return nil // its sleds have an underlay each
	}
	env.Setenv("NET", strings.TrimSuffix(network.Addr().String(), ".0"))
	env.Setenv("SLEDCTL_NETWORK_UNDERLAY", network.String())
	env.Setenv("SLEDCTL_NETWORK_GZ_ADDRESS", network.Addr().Next().String()+"/24")
	return nil
}

// fenced PAGE LANGUAGE FILE writes the first listing of a language on a page of
// the manual to a file, so that what the manual says is what is tested.
func fenced(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: fenced page language file ...")
	}
	page, err := os.ReadFile(filepath.Join("..", "docs", args[0]))
	ts.Check(err)
	rest := string(page)
	for _, file := range args[2:] {
		_, behind, begins := strings.Cut(rest, "\n```"+args[1]+"\n")
		listing, after, ends := strings.Cut(behind, "\n```\n")
		if !begins || !ends {
			ts.Fatalf("%s has no listing in %s for %s", args[0], args[1], file)
		}
		ts.Check(os.WriteFile(ts.MkAbs(file), []byte(listing+"\n"), 0o666))
		rest = after
	}
}
