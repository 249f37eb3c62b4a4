package matrix

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/simtest"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
)

// A sample of the kill matrix with SIGKILL: every verb is a process, on a sled in
// a directory whose commands are processes too, and dies of itself, of one of its
// commands, which goes on, or of somebody next to it. The same again, as a process,
// has to lead where it would have led; the laws are those of the matrix.

// deaths are the ways in which the process ends.
func deaths() []death {
	return []death{
		{"before a change", func(k *killedVerb, r *rand.Rand) { k.crash = fmt.Sprintf("%d:before", 1+r.IntN(k.changes)) }},
		{"after a change", func(k *killedVerb, r *rand.Rand) { k.crash = fmt.Sprintf("%d:after", 1+r.IntN(k.changes)) }},
		{"while its command goes on", func(k *killedVerb, r *rand.Rand) { k.command = 1 + r.IntN(k.commands) }},
		{"at any time", func(k *killedVerb, r *rand.Rand) { k.after = 1 + time.Duration(r.Int64N(int64(k.took))) }},
	}
}

type death struct {
	name string
	draw func(*killedVerb, *rand.Rand)
}

// killedVerb is a verb that is run as a process, and what kills it.
type killedVerb struct {
	changes, commands int           // of the verb undisturbed
	took              time.Duration // about, as a process

	crash   string        // the flag
	command int           // which of its commands kills it; 0: none
	after   time.Duration // when somebody kills it; 0: nobody
}

func TestKilledProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a few hundred processes")
	}
	const shares = 2 // each with a sled's addresses of its own
	var all []row
	for _, r := range rows() {
		// An image's Propolis listens where this machine does not, and the ground has no dataset for local
		// disks; the scripts instance_migrate_breaks and instance_migrate_offline_breaks kill those that take another
		// sled, or read what it sends, and image_fetch_stop what downloads: from here, the simulated web server is out of reach.
		if r.mode == "" && !strings.Contains(r.line, " < ") && !r.pair && !strings.Contains(r.name, "images") && !strings.Contains(r.name, "fetched") && !strings.Contains(r.name, "local disk") {
			all = append(all, r.whole())
		}
	}
	var cases, killed atomic.Int64
	t.Run("rows", func(t *testing.T) {
		for share := range shares {
			t.Run(fmt.Sprint(share), func(t *testing.T) {
				t.Parallel()
				config, network := sledtest.OwnNetworkOf(t)
				ground := filepath.Join(quickDir(t), "ground")
				row{config: config}.whole().onDisk(t, ground).prepared()
				for n := share; n < len(all); n += shares {
					t.Run(all[n].name, func(t *testing.T) { all[n].killedProcesses(t, ground, config, network, n, &cases, &killed) })
				}
			})
		}
	})
	t.Logf("%d processes, %d of them killed", cases.Load(), killed.Load())
}

// killedProcesses kills one verb in one of the ways, or in each.
func (r row) killedProcesses(t *testing.T, ground, config string, network netip.Prefix, n int, cases, killed *atomic.Int64) {
	ways := deaths()
	if !sledtest.Soak() {
		ways = ways[n%len(ways) : n%len(ways)+1]
	}
	begun, g := r.begun(t, ground, config)
	for at, way := range ways {
		seed := fnv.New64()
		fmt.Fprint(seed, r.name, way.name)
		verb := g.verb
		way.draw(&verb, rand.New(rand.NewPCG(seed.Sum64(), uint64(at))))
		dir := copied(t, begun)
		s := openSled(t, dir, g.stage)
		if err := s.StartServers(t.Context()); err != nil {
			t.Fatal(err)
		}
		cases.Add(1)
		dead := s.killProcess(verb)
		if dead {
			killed.Add(1)
		}
		s.processLaws(fmt.Sprintf("the process of sledctl %s killed %s (%+v, %v)", s.line, way.name, verb, dead))
		s.Close()
		sledtest.RemoveSled(t, dir)
		if err := simtest.Silent(network, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
}

type begun struct {
	*stage
	verb killedVerb
}

// begun is a directory with the sled on which the verb begins, and where it leads
// when nothing goes wrong.
func (r row) begun(t *testing.T, ground, config string) (dir string, g begun) {
	var s *scene
	if r.config == "" && !r.bare && !r.blank && r.early == nil && r.m2 == 0 && r.u2 == 0 {
		dir = copied(t, ground)
		s = openSled(t, dir, &stage{row: r, line: r.line, real: true, files: t.TempDir()})
	} else {
		dir = filepath.Join(quickDir(t), "sled")
		if r.config != "" {
			config = strings.Replace(config, `"development"`, `"file:/secrets"`, 1)
		}
		r.config = config
		s = r.onDisk(t, dir)
		s.ground()
	}
	s.lead()
	g.stage = s.stage
	s.Close()
	count := &commandCount{}
	s = openSled(t, copied(t, dir), g.stage)
	defer s.Close()
	dying := host.Crash(s.Host(), 0, host.CrashBefore)
	count.Host = dying
	if a := s.On(t.Context(), count, s.line); a.Exit != 0 {
		t.Fatalf("sledctl %s: exit %d: %s", s.line, a.Exit, a.Errs)
	}
	for _, line := range r.then {
		s.Run(line)
	}
	g.want = s.settled()
	g.end = s.finish("undisturbed")
	g.verb = killedVerb{changes: dying.Points(), commands: int(max(count.commands.Load(), 1)), took: 50*time.Millisecond + 20*time.Millisecond*time.Duration(count.commands.Load())}
	return dir, g
}

// commandCount counts commands, also those that only look.
type commandCount struct {
	host.Host
	commands atomic.Int64
}

func (c *commandCount) Run(ctx context.Context, cmd host.Command) (host.Result, error) {
	c.commands.Add(1)
	return c.Host.Run(ctx, cmd)
}

// onDisk is a fresh sled in a directory.
func (r row) onDisk(t *testing.T, dir string) *scene {
	t.Helper()
	inner, err := sim.Init(dir, sim.Options{Seed: 1, M2: max(r.m2, 1), U2: max(r.u2, 1), Blank: r.blank})
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{Operator: &sledtest.Operator{Sled: inner, T: t}, stage: &stage{row: r, line: r.line, real: true, files: t.TempDir()}}
	s.WriteFile("/etc/sledctl/config.toml", r.config)
	return s
}

// prepared prepares the sled, and leaves it.
func (s *scene) prepared() {
	s.ground()
	s.Close()
}

func openSled(t *testing.T, dir string, g *stage) *scene {
	t.Helper()
	inner, err := sim.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return &scene{Operator: &sledtest.Operator{Sled: inner, T: t}, stage: g}
}

// quickDir is a directory in memory, where this machine has one: no power is cut
// here, and to flush a disk takes longer than all else.
func quickDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "sledctl-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { sledtest.RemoveSled(t, dir) })
	return dir
}

// copied is another directory with the same sled.
func copied(t *testing.T, dir string) string {
	t.Helper()
	other := filepath.Join(quickDir(t), "sled")
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", dir, other).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return other
}

// process is a sledctl command line as a process, in a shell of the sled.
func (s *scene) process(line string) *exec.Cmd {
	s.T.Helper()
	dir := s.World().Dir()
	self, err := os.Executable()
	if err != nil {
		s.T.Fatal(err)
	}
	bin, err := sim.LinkTools(dir, self, "sledctl")
	if err != nil {
		s.T.Fatal(err)
	}
	cmd := exec.CommandContext(s.T.Context(), filepath.Join(bin, "sledctl"), strings.Fields(line)...)
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), sim.DirVariable+"="+dir, "SLEDCTL_CONFIG=", "GORACE=atexit_sleep_ms=0",
		"SLEDCTL_HOST=illumos", "SLEDCTL_HOST_ROOT="+sim.Root(dir), "SLEDCTL_HOST_COMMAND_PATH="+bin+","+filepath.Join(bin, sim.CommonDir))
	return cmd
}

// killProcess runs the verb until it is killed, and says whether it was: it may
// have been faster.
func (s *scene) killProcess(k killedVerb) bool {
	s.T.Helper()
	line := s.line
	if k.crash != "" {
		line += " --crash-at " + k.crash
	}
	if k.command > 0 {
		s.Arm(world.Fault{Name: world.FaultKillDuring, Times: 1, Skip: k.command - 1})
	}
	cmd := s.process(line)
	if err := cmd.Start(); err != nil {
		s.T.Fatal(err)
	}
	if k.after > 0 {
		time.AfterFunc(k.after, func() { _ = cmd.Process.Kill() })
	}
	err := cmd.Wait()
	if err := s.World().Update(s.T.Context(), func(tx *world.Tx) error { tx.Disarm("", ""); return nil }); err != nil {
		s.T.Fatal(err)
	}
	failed, ended := errors.AsType[*exec.ExitError](err)
	if err != nil && !ended {
		s.T.Fatal(err)
	}
	if err == nil {
		return false
	}
	status, ok := failed.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		s.T.Fatalf("sledctl %s: %v", line, err)
	}
	return true
}

// processLaws are the laws, where the same again is a process too.
func (s *scene) processLaws(at string) {
	s.T.Helper()
	s.foreign(at)
	for _, line := range append([]string{s.line}, s.then...) {
		done := line == s.line && s.isDone()
		cmd := s.process(line + " --wait") // for a command that goes on
		var errs strings.Builder
		cmd.Stderr = &errs
		if err := cmd.Run(); err != nil && (cmd.ProcessState.ExitCode() != s.may || !done || s.may == 0) {
			s.T.Fatalf("%s: sledctl %s: %v: %s", at, line, err, errs.String())
		}
	}
	s.led(at)
}
