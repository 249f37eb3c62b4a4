// Package histories plays random histories of a sled: sledctl's commands,
// commands that are killed, changes by hand, reboots, a disk that comes and
// goes, a ledger that is lost. After each step what sledctl says is held against a small model that
// was written from the manual (model_test.go); at the end the manual's way out
// has to lead to where it began. One that does not is made as short as it can
// be, and printed as a shell script (script_test.go).
//
// Histories share their beginnings: a sled in memory is cloned more cheaply
// than a bring-up is gone once more. So a story is a trunk of a few acts, with
// branches of one or two acts at every height, and each way from the root to
// the end of a branch is a history.
package histories

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/lattice"
	"github.com/sledctl/sledctl/test/sledtest"
)

var (
	seed   = flag.Uint64("seed", 0, "the first story; 0: always the same, and when soaking today's")
	number = flag.Int64("histories", 0, "how many are played; 0: as many as a test should")
)

// How a story is built.
const (
	trunk    = 7 // acts
	branches = 5 // at each height
)

// unraced is why -short, which the race detector runs with, leaves a test out.
const unraced = "one command after the other, many times: the race detector sees nothing more in it"

func TestRandomHistories(t *testing.T) {
	want, until := int64(10_000), time.Now().Add(90*time.Second) // two cores that have nothing else to do take half of that
	switch {
	case os.Getenv("SLEDCTL_SOAK") != "":
		want, until = 1_000_000, time.Now().Add(80*time.Minute) // no part of a soak takes longer than 90
		if deadline, ok := t.Deadline(); ok && deadline.Add(-time.Minute).Before(until) {
			until = deadline.Add(-time.Minute)
		}
	case sledtest.Quick():
		want = 40
	case testing.Short():
		want = 60
	}
	if *number > 0 {
		want = *number
	}
	first := *seed
	if first == 0 && os.Getenv("SLEDCTL_SOAK") != "" {
		first = uint64(time.Now().Unix() / 86400 * 1_000_000)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(2400)) // it is all short-lived: a quarter of a gigabyte at most
	roots := prepareAll(t)
	var played counts
	start := time.Now()
	var next atomic.Uint64
	next.Store(first)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for played.histories.Load() < want && time.Now().Before(until) && !t.Failed() {
				number := next.Add(1) - 1
				root := roots[number%uint64(len(roots))]()
				played.on(root)
				if bad := root.story(t, number, &played); bad != nil {
					report(t, root, number, bad)
				}
			}
		})
	}
	workers.Wait()
	played.print(t, fmt.Sprintf("of %d in %s; stories from -seed %d", want, time.Since(start).Round(time.Second), first))
}

type counts struct {
	histories, acts, killed atomic.Int64

	mu    sync.Mutex
	sleds map[string]bool
}

// on counts a sled.
func (c *counts) on(root *player) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sleds == nil {
		c.sleds = map[string]bool{}
	}
	c.sleds[root.row.String()] = true
}

// print prints what was played. On a machine that is busy that may be less than
// what was wanted.
func (c *counts) print(t *testing.T, of string) {
	line := fmt.Sprintf("histories: %d (%d acts, %d of them killed) on %d sleds of the lattice, %s\n", c.histories.Load(), c.acts.Load(), c.killed.Load(), len(c.sleds), of)
	if t.Failed() {
		t.Log(line)
		return
	}
	fmt.Print(line)
	if name := os.Getenv("SLEDCTL_HISTORIES"); name != "" { // go test hides what a package prints that passes
		if err := os.WriteFile(name, []byte(line), 0o666); err != nil {
			t.Error(err)
		}
	}
}

// plain is the sled of which the table of sleds has nothing to tell.
func plain() lattice.Row { table := lattice.Sleds(); return table.Plain() }

// prepareAll gives the sleds on which histories begin: those of a lattice of pairs,
// or of triples.
func prepareAll(t *testing.T) (roots []func() *player) {
	table, strength := lattice.Sleds(), 2
	if os.Getenv("SLEDCTL_SOAK") != "" {
		strength = 3
	}
	for _, row := range table.Cover(strength) {
		roots = append(roots, sync.OnceValue(func() *player { return prepareOnce(t, row) }))
	}
	return roots
}

// prepareOnce gives a sled on which histories begin.
func prepareOnce(t *testing.T, row lattice.Row) *player {
	t.Helper()
	var root *player
	synctest.Test(t, func(t *testing.T) {
		p, err := prepare(row)
		if err != nil {
			panic(err) // of all workers, who wait for it
		}
		p.sled.Close()
		root = p
	})
	return root
}

// inBubble lets somebody play in a bubble of time, later than the sled was
// prepared in another.
func (p *player) inBubble(t *testing.T, play func(*player)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(24 * time.Hour)
		f := p.fork()
		f.work()
		defer f.leave()
		play(f)
	})
}

// broken is a history in which a law is broken.
type broken struct {
	acts []act
	err  error
}

// story plays the histories of one trunk, until one is broken.
func (p *player) story(t *testing.T, number uint64, played *counts) (bad *broken) {
	p.inBubble(t, func(on *player) {
		r := rand.New(rand.NewPCG(number, 1))
		for height := range trunk + 1 {
			for range branches {
				branch := on.fork()
				bad = branch.acted(r, 1+r.IntN(4)/3, played) // one, or two
				if bad == nil {
					bad = branch.ended()
				}
				branch.leave()
				played.histories.Add(1)
				if bad != nil {
					return
				}
			}
			if height == trunk {
				return
			}
			if bad = on.acted(r, 1, played); bad != nil {
				return
			}
		}
	})
	return bad
}

// acted plays n random acts, or a few more.
func (p *player) acted(r *rand.Rand, n int, played *counts) *broken {
	for range n {
		for _, a := range drawActs(r, p.model, p.row) {
			p.acts = append(p.acts, a)
			played.acts.Add(1)
			if err := p.play(a); err != nil {
				return &broken{p.acts, err}
			}
			if p.killed {
				played.killed.Add(1)
			}
		}
	}
	return nil
}

func (p *player) ended() *broken {
	if err := p.finish(); err != nil {
		return &broken{p.acts, err}
	}
	return nil
}

// replay plays a history from the beginning.
func (p *player) replay(t *testing.T, acts []act) (bad *broken, log []string) {
	p.inBubble(t, func(on *player) {
		defer func() { log = on.log }()
		for i, a := range acts {
			if err := on.play(a); err != nil {
				bad = &broken{acts[:i+1], err}
				return
			}
		}
		if err := on.finish(); err != nil {
			bad = &broken{acts, err}
		}
	})
	return bad, log
}

var reports sync.Mutex

// report prints a history that breaks a rule, as short as it can be.
func report(t *testing.T, root *player, number uint64, bad *broken) {
	reports.Lock()
	defer reports.Unlock()
	if t.Failed() {
		return // one is enough
	}
	short, log := shrink(t, root, bad)
	t.Errorf("story %d: %v\n\nwhat was played:\n\t%s\n\nas a script:\n%s", number, short.err, strings.Join(log, "\n\t"), script(short.acts, root.row))
}

// tries is how often a history is played before it is taken for good: what
// runs side by side is not done in the same order each time.
const tries = 3

// shrink makes a broken history as short and as plain as it can, in what it
// breaks. One that never breaks again is left as it is.
func shrink(t *testing.T, root *player, bad *broken) (*broken, []string) {
	var log []string
	fails := func(acts []act) *broken {
		for range tries {
			again, played := root.replay(t, acts)
			if again != nil {
				log = played
				return again
			}
		}
		return nil
	}
	if again := fails(bad.acts); again != nil {
		bad = again
	} else {
		bad.err = fmt.Errorf("%w\n(it was not so when it was played %d times more)", bad.err, tries)
		return bad, nil
	}
	for {
		smaller := false
		for _, candidate := range simpler(bad.acts) {
			if again := fails(candidate); again != nil {
				bad, smaller = again, true
				break
			}
		}
		if !smaller {
			break
		}
	}
	if again := fails(bad.acts); again != nil {
		bad = again // and its log
	}
	return bad, log
}

// simpler are histories that are a little less than this one, the boldest first.
func simpler(acts []act) [][]act {
	var all [][]act
	for size := len(acts) / 2; size > 0; size /= 2 {
		for from := 0; from+size <= len(acts); from += size {
			all = append(all, append(acts[:from:from], acts[from+size:]...))
		}
	}
	for i, a := range acts {
		for _, plain := range a.plainer() {
			other := append([]act{}, acts...)
			other[i] = plain
			all = append(all, other)
		}
	}
	return all
}

// plainer are acts that are a little less than this one.
func (a act) plainer() []act {
	var all []act
	without := func(change func(*act)) {
		other := a
		change(&other)
		if other != a {
			all = append(all, other)
		}
	}
	without(func(a *act) { a.verb.crash, a.verb.how = 0, 0 })
	if a.verb.how == host.CrashDuring {
		without(func(a *act) { a.verb.how = host.CrashAfter })
	}
	without(func(a *act) { a.verb.dry = false })
	if !a.verb.extra { // a spec says how many there are
		without(func(a *act) { a.verb.cpus = 0 })
		without(func(a *act) { a.verb.nics = 0 })
	}
	without(func(a *act) { a.verb.extra = false })
	without(func(a *act) { a.verb.protect = "" })
	without(func(a *act) { a.verb.recreate = false })
	without(func(a *act) { a.verb.yes = false })
	if a.verb.crash > 1 {
		without(func(a *act) { a.verb.crash /= 2 })
		without(func(a *act) { a.verb.crash-- })
	}
	return all
}
