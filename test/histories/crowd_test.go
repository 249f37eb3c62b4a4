package histories

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/sledtest"
)

// Many do random verbs on 16 instances at once. None waits: a verb that
// finds its instance locked exits with 6. The exit codes, and the instances that exist
// in the end, must be as if the verbs had been done one after another, in
// some order that keeps to the times at which each was begun and ended.

const crowded = 16 // instances

// said is a verb that one of the crowd has done, and what he was told.
type said struct {
	verb
	exit       int
	begun, end int64 // moments, in their order
}

func (s said) String() string {
	return fmt.Sprintf("%d-%d: %s # exit %d", s.begun, s.end, s.line(), s.exit)
}

const exitLocked = 6

// crowd lets n at once do some verbs each, and returns the results by instance.
func crowd(t *testing.T, n, each int, run func(line string) (exit int, errs string)) map[string][]said {
	var (
		clock atomic.Int64
		mu    sync.Mutex
		told  = map[string][]said{}
		all   sync.WaitGroup
	)
	for who := range n {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(who), 1))
			for range each {
				s := said{verb: drawCrowded(r), begun: clock.Add(1)}
				var errs string
				s.exit, errs = run(s.line())
				s.end = clock.Add(1)
				if !slices.Contains([]int{0, exitMissing, exitConflict, exitLocked}, s.exit) {
					t.Errorf("sledctl %s: exit %d: %s", s.line(), s.exit, errs)
				}
				mu.Lock()
				told[s.name] = append(told[s.name], s)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return told
}

func drawCrowded(r *rand.Rand) verb {
	v := verb{
		name: fmt.Sprint("vm", r.IntN(crowded)),
		word: draw(r, []weight[string]{{"ensure", 10}, {"start", 3}, {"stop", 4}, {"delete", 4}, {"reap", 1}}),
	}
	switch v.word {
	case "ensure":
		v.cpus, v.recreate = 1+r.IntN(3), r.IntN(3) == 0
	case "reap":
		v.name = ""
	}
	return v
}

// explained reports whether some order of the results of an instance leads from
// nothing to what exists.
func explained(told []said, is shown, recorded bool) bool {
	if len(told) > 64 {
		panic("too many for the search")
	}
	type at struct {
		done uint64
		it   vm
	}
	been := map[at]bool{}
	var from func(at) bool
	from = func(now at) bool {
		if been[now] {
			return false
		}
		been[now] = true
		if now.done == 1<<len(told)-1 {
			return now.it.agrees(is, recorded) == nil
		}
		for i, s := range told {
			if now.done>>i&1 == 1 || slices.ContainsFunc(told, func(other said) bool {
				return now.done>>slices.Index(told, other)&1 == 0 && other.end < s.begun
			}) {
				continue // it is done, or another that had ended before it is not
			}
			next := at{now.done | 1<<i, now.it}
			if s.exit != exitLocked {
				m := &model{ground: prepared, vms: map[string]*vm{s.name: now.it.clone()}}
				after := m.certain(s.verb)[s.exit]
				if after == nil {
					continue // he would have been told otherwise
				}
				next.it = *after.vms[s.name]
			}
			if from(next) {
				return true
			}
		}
		return false
	}
	return from(at{it: vm{life: none}})
}

// inOrder holds what a crowd was told against what sledctl lists.
func inOrder(t *testing.T, told map[string][]said, seen map[string]shown) {
	t.Helper()
	users, locked, count := map[string]string{}, 0, 0
	for name, all := range told {
		for _, s := range all {
			if count++; s.exit == exitLocked {
				locked++
			}
		}
		is, recorded := seen[name]
		if name != "" && !explained(all, is, recorded) {
			t.Errorf("no order of these explains %+v:\n%s", is, lines(all))
		}
	}
	for name, is := range seen {
		if told[name] == nil {
			t.Errorf("%s is there, which nobody has made", name)
		}
		for _, thing := range is.has(plain()) {
			if other, used := users[thing]; used {
				t.Errorf("%s and %s both have %s", other, name, thing)
			}
			users[thing] = name
		}
	}
	t.Logf("%d verbs, %d of them met another; %d instances in the end", count, locked, len(seen))
}

func lines(all []said) string {
	var b strings.Builder
	for _, s := range all {
		b.WriteString("\t" + s.String() + "\n")
	}
	return b.String()
}

// gone removes everything, and checks that nothing is left.
func gone(t *testing.T, run func(line string) (int, string)) {
	t.Helper()
	for i := range crowded {
		if exit, errs := run(fmt.Sprint("instance delete vm", i)); exit != 0 {
			t.Errorf("delete: exit %d: %s", exit, errs)
		}
	}
	if exit, errs := run("reap"); exit != 0 {
		t.Errorf("reap: exit %d: %s", exit, errs)
	}
}

func TestACrowdOf64(t *testing.T) {
	if sledtest.Quick() {
		t.Skip("takes seconds")
	}
	each := 5
	if testing.Short() {
		each = 2
	}
	p, err := prepare(plain())
	if err != nil {
		t.Fatal(err)
	}
	defer p.sled.Close()
	run := func(line string) (int, string) {
		exit, _, errs, err := p.run(p.sled.Host(), "sledctl "+line)
		return exit, errs + errText(err)
	}
	told := crowd(t, 64, each, run)
	seen, err := p.list()
	if err != nil {
		t.Fatal(err)
	}
	inOrder(t, told, seen)
	gone(t, run)
	now, err := p.world()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(p.first, "\n"), strings.Split(now, "\n")); diff != "" {
		t.Errorf("the sled is not as it was (-first +now):\n%s", diff)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return " " + err.Error()
}

// Real processes on a sled in a directory. 64 of them take a while: what each
// reads of the simulated sled grows with what all have made.
func TestACrowdOfProcesses(t *testing.T) {
	if sledtest.Quick() {
		t.Skip("takes seconds")
	}
	for n, each := range crowds() {
		t.Run(fmt.Sprint(n), func(t *testing.T) { crowdOfProcesses(t, n, each) })
	}
}

// crowds are how many processes there are at once, and how many verbs each of
// them stands for.
func crowds() map[int]int {
	switch {
	case os.Getenv("SLEDCTL_SOAK") != "":
		return map[int]int{2: 8, 8: 8, 64: 5}
	case testing.Short():
		return map[int]int{2: 3}
	}
	return map[int]int{2: 8, 8: 3}
}

func crowdOfProcesses(t *testing.T, n, each int) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(dir, "sledctl"))
	}
	if err != nil {
		t.Fatal(err)
	}
	sledctl := func(line string) (exit int, out, errs string) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "sledctl"), strings.Fields(line)...)
		cmd.Env = append(os.Environ(), "SLEDCTL_HOST=sim:"+filepath.Join(dir, "sled"), "SLEDCTL_CONFIG=", "GORACE=atexit_sleep_ms=0")
		data, err := cmd.Output()
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			return failed.ExitCode(), string(data), string(failed.Stderr)
		}
		return 0, string(data), errText(err)
	}
	run := func(line string) (int, string) {
		exit, _, errs := sledctl(line)
		return exit, errs
	}
	for _, line := range []string{"sim init --m2 2 --u2 1", "bootstrap"} {
		if exit, errs := run(line); exit != 0 {
			t.Fatal(errs)
		}
	}
	sled, err := sim.Open(filepath.Join(dir, "sled"))
	if err != nil {
		t.Fatal(err)
	}
	defer sled.Close()
	p := &player{sled: sled}
	first, err := p.world()
	if err != nil {
		t.Fatal(err)
	}
	told := crowd(t, n, each, run)
	_, out, errs := sledctl("instance list -o json")
	seen, err := readList(out)
	if err != nil {
		t.Fatal(err, errs)
	}
	inOrder(t, told, seen)
	gone(t, run)
	now, err := p.world()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(first, "\n"), strings.Split(now, "\n")); diff != "" {
		t.Errorf("the sled is not as it was (-first +now):\n%s", diff)
	}
}
