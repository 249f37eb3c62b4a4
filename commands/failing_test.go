package commands_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
)

// howFails says what fails, and how.
type howFails string

const (
	refuses howFails = "refuses the command"         // it does not do it
	doubles howFails = "does and denies the command" // it does it, and says that it did not
	broken  howFails = "refuses from the command"    // neither this one nor any after it
	full    howFails = "has no room for the change of a file"
	silent  howFails = "cannot be dialled from the call" // no connection comes to be any more
)

// failing is a host on which the n-th thing of a kind fails: commands that
// change something, changes of files, connections.
type failing struct {
	host.Host
	how howFails
	at  int // 0: none, to count them

	mu    sync.Mutex
	count map[string]int
}

// fails counts a thing, and says whether it is to fail.
func (f *failing) fails(kind string, how ...howFails) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count == nil {
		f.count = map[string]int{}
	}
	f.count[kind]++
	n := f.count[kind]
	further := f.how == broken || f.how == silent
	return f.at > 0 && slices.Contains(how, f.how) && (n == f.at || n > f.at && further)
}

func (f *failing) Run(ctx context.Context, c host.Command) (host.Result, error) {
	if c.ReadOnly || !f.fails("command", refuses, doubles, broken) {
		return f.Host.Run(ctx, c)
	}
	if f.how == doubles {
		if r, err := f.Host.Run(ctx, c); err != nil || r.Exit != 0 {
			return r, err
		}
	}
	return host.Result{Exit: 1, Stderr: []byte(c.Program + ": the injected failure\n")}, nil
}

func (f *failing) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if f.fails("call", silent) {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	return f.Host.Dial(ctx, network, address)
}

func (f *failing) Files() host.Files { return failingFiles{f.Host.Files(), f} }

type failingFiles struct {
	host.Files
	host *failing
}

func (f failingFiles) change(name string, do func() error) error {
	if f.host.fails("file", full) {
		return &fs.PathError{Op: "write", Path: name, Err: syscall.ENOSPC}
	}
	return do()
}

func (f failingFiles) Open(name string, flag int, perm fs.FileMode) (file host.File, err error) {
	open := func() error {
		file, err = f.Files.Open(name, flag, perm)
		return err
	}
	if flag&(os.O_CREATE|os.O_TRUNC) == 0 {
		err = open()
	} else {
		err = f.change(name, open)
	}
	return file, err
}

func (f failingFiles) Append(name string, data []byte) error {
	return f.change(name, func() error { return f.Files.Append(name, data) })
}

func (f failingFiles) Rename(from, to string) error {
	return f.change(from, func() error { return f.Files.Rename(from, to) })
}

func (f failingFiles) Chmod(name string, mode fs.FileMode) error {
	return f.change(name, func() error { return f.Files.Chmod(name, mode) })
}

func (f failingFiles) In(dir string) (host.Files, error) {
	in, err := f.Files.In(dir)
	return failingFiles{in, f.host}, err
}

func TestAVerbThatFailsLeavesNothingOrNamesIt(t *testing.T) {
	kinds := map[string][]howFails{"command": {refuses, doubles, broken}, "file": {full}, "call": {silent}}
	for _, i := range interruptions() {
		t.Run(i.name, func(t *testing.T) {
			t.Parallel()
			var want string
			count := &failing{}
			synctest.Test(t, func(t *testing.T) {
				s := i.scene(t)
				count.Host = s.Host()
				if a := s.on(t.Context(), count, i.line); a.exit != 0 {
					t.Fatalf("exit %d: %s", a.exit, a.errs)
				}
				want = s.settled()
			})
			cases, exits := 0, map[int]int{}
			for kind, hows := range kinds {
				for n := 1; n <= count.count[kind]; n++ {
					for m, how := range hows {
						if testing.Short() && n%len(hows) != m {
							continue // each thing fails in one way, the ways in turn
						}
						synctest.Test(t, func(t *testing.T) {
							s := i.scene(t)
							exits[s.fails(t, n, how)]++
							s.again(t, s.point(n, how), want)
						})
						cases++
					}
				}
			}
			t.Logf("%v, %d cases; exit codes: %v", count.count, cases, exits)
		})
	}
}

func (s *scene) point(n int, how howFails) string {
	return fmt.Sprintf("%s at a host that %s %d", s.line, how, n)
}

// fails runs the verb on a failing host, and sees that it tells the truth about
// what is left.
func (s *scene) fails(t *testing.T, n int, how howFails) (exit int) {
	t.Helper()
	a := s.on(t.Context(), &failing{Host: s.Host(), at: n, how: how}, s.line+" -o json")
	told := leftOf(t, a)
	switch {
	case a.exit == 9 && how == full: // what became of it could not be written down
	case a.exit == 7 && how == silent && len(told) == 0: // the deadline of a wait
		s.undone(t, s.point(n, how))
	case a.exit == 0 && len(told) == 0: // the step has found another way
	case a.exit == 1 && len(told) == 0:
		s.undone(t, s.point(n, how))
	case a.exit == 3 && strings.HasPrefix(s.line, "bootstrap") && strings.Contains(a.errs, `"message":"storage: `):
		// It went on with the others, and what those made is to stay.
	case a.exit == 3 && len(told) > 0:
		s.exactly(t, s.point(n, how), told)
	default:
		t.Fatalf("%s: exit %d, left %q: %s", s.point(n, how), a.exit, told, a.errs)
	}
	return a.exit
}

// undone sees that a verb that left nothing left nothing, also in the ledger.
// One that had to take the old away first leaves neither.
func (s *scene) undone(t *testing.T, point string) {
	t.Helper()
	world := s.world()
	if world != s.before && world != s.first {
		t.Fatalf("%s: exit 1, but (-before +after):\n%s", point, cmp.Diff(strings.Split(s.before, "\n"), strings.Split(world, "\n")))
	}
	if s.bare {
		return
	}
	facts := s.ledger()
	for key := range facts {
		if strings.HasPrefix(key, "intent/") {
			t.Errorf("%s: exit 1, and %s is open", point, key)
		}
	}
	if world == s.before {
		if diff := cmp.Diff(slices.Sorted(maps.Keys(s.facts)), slices.Sorted(maps.Keys(facts))); diff != "" {
			t.Errorf("%s: exit 1, but the ledger (-before +after):\n%s", point, diff)
		}
	}
}

// leftOf reads what the error says that is left.
func leftOf(t *testing.T, a answer) []string {
	t.Helper()
	if a.exit == 0 {
		return nil
	}
	var failure struct{ Left []string }
	lines := strings.Split(strings.TrimSpace(a.errs), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &failure); err != nil {
		t.Fatalf("%v: %s", err, a.errs)
	}
	return failure.Left
}

// exactly sees that what is told to be left is there and was not at first, and
// that nothing else is.
func (s *scene) exactly(t *testing.T, point string, told []string) {
	t.Helper()
	there := things(t, s.world())
	for thing := range things(t, s.first) {
		delete(there, thing)
	}
	for _, thing := range told {
		kind, _, _ := strings.Cut(thing, " ")
		if _, ok := there[thing]; !ok && slices.Contains([]string{"zone", "vnic", "etherstub", "dataset"}, kind) {
			t.Errorf("%s: %s is told to be left, and is not there", point, thing)
		}
	}
	for thing, within := range there {
		if !slices.Contains(told, thing) && !slices.ContainsFunc(within, func(w string) bool { return slices.Contains(told, w) }) {
			t.Errorf("%s: %s is there, and is not told to be left: %q", point, thing, told)
		}
	}
}

// things lists what is on a sled as an error names it, each with what it lies
// in or goes with.
func things(t *testing.T, comparable string) map[string][]string {
	t.Helper()
	var world sim.Snapshot
	if err := json.Unmarshal([]byte(comparable), &world); err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, z := range world.Zones {
		all["zone "+z.Name] = nil
	}
	for _, l := range world.Links {
		all[l.Class+" "+l.Name] = nil
	}
	for _, stack := range world.Stacks {
		for _, a := range stack.Addresses {
			link, _, _ := strings.Cut(a.Object, "/")
			all["address "+a.Object] = []string{"zone " + stack.Zone, "vnic " + link}
		}
	}
	for _, d := range world.Datasets {
		all["dataset "+d.Name] = nil
		for name := d.Name; name != ""; name = name[:max(0, strings.LastIndexAny(name, "/@"))] {
			base := name[strings.LastIndexByte(name, '/')+1:]
			all["dataset "+d.Name] = append(all["dataset "+d.Name], "dataset "+name, "zone "+base)
		}
		if _, snapshot, ok := strings.Cut(d.Name, "@"); ok {
			all["dataset "+d.Name] = append(all["dataset "+d.Name], "snapshots "+snapshot, "zone "+strings.TrimSuffix(snapshot, "_snap"))
		}
	}
	return all
}
