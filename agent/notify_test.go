package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/peer/dropshot"
	"github.com/sledctl/sledctl/peer/nexus"
)

func vmID(n int) uuid.UUID { return uuid.MustParse(fmt.Sprintf("a8d0f0c4-0e5f-4a44-a5bd-%012d", n)) }

func in(n int, s api.VMState) VM { return VM{ID: vmID(n), Name: fmt.Sprint("web", n), State: s} }

// plane is a control plane that receives notifications.
type plane struct {
	mu     sync.Mutex
	answer func(v VM) error // nil: it hears everything
	heard  []VM
	asked  []time.Duration // when, since it was made
	since  time.Time
}

func (p *plane) tell(_ context.Context, v VM) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, time.Since(p.since))
	if p.answer != nil {
		if err := p.answer(v); err != nil {
			return err
		}
	}
	p.heard = append(p.heard, v)
	return nil
}

// alarm is a table with a notifier of a control plane.
func alarm(t *testing.T, answer func(VM) error) (context.Context, *vmTable, *notifier, *plane, func(VM)) {
	p := &plane{answer: answer, since: time.Now()}
	b := newTable(1)
	rings := newNotifier(b, p.tell, func() float64 { return 0.5 }, func(error) {})
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); rings.Wait() })
	return ctx, b, rings, p, func(v VM) {
		if _, changed := b.Publish(v); changed {
			rings.Notify(ctx, v.ID)
		}
	}
}

var errUnreachable = errors.New("connection refused")

// Whatever is refused or lost on the way, the control plane hears of the last
// state once it listens, and of what came in between at most once.
func TestTheControlPlaneHearsOfTheLastState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := true
		ctx, _, rings, p, say := alarm(t, func(VM) error {
			if away {
				return errUnreachable
			}
			return nil
		})
		say(in(1, api.Starting))
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := len(p.asked); n < 20 || n > 40 {
			t.Errorf("%d attempts in an hour", n)
		}
		say(in(1, api.Running))
		say(in(2, api.Running))
		p.mu.Lock()
		away = false
		p.mu.Unlock()
		time.Sleep(2 * nexus.LongestPause)
		synctest.Wait()
		got := map[string]int{}
		for _, v := range p.heard {
			got[v.Name+" "+string(v.State)]++
		}
		if want := map[string]int{"web1 running": 1, "web2 running": 1}; !maps.Equal(got, want) {
			t.Errorf("heard %v, want %v", got, want)
		}
		rings.Sweep(ctx)
		synctest.Wait()
		if len(p.heard) != 2 {
			t.Errorf("a sweep told again what is known: %v", p.heard)
		}
	})
}

// What is rejected is not sent again at once, but by a sweep.
func TestARejectedDoorbellIsRungAgainByASweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := false
		ctx, _, rings, p, say := alarm(t, func(VM) error {
			if !known {
				return &dropshot.Refusal{Status: 404, Code: "ObjectNotFound", Message: "Not Found"}
			}
			return nil
		})
		say(in(1, api.Running))
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(p.asked) != 1 || len(p.heard) != 0 || rings.rejected.Load() != 1 {
			t.Errorf("%d attempts, heard %v", len(p.asked), p.heard)
		}
		known = true
		rings.Sweep(ctx)
		synctest.Wait()
		if len(p.heard) != 1 {
			t.Errorf("after the sweep: heard %v", p.heard)
		}
	})
}

// A slow notification of one VM holds up no other; what changes meanwhile is
// sent once.
func TestASlowAnswerHoldsUpNoOtherVM(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		_, _, _, p, say := alarm(t, nil)
		p.answer = func(v VM) error {
			if v.Name == "web1" && v.State == api.Starting {
				p.mu.Unlock()
				<-release
				p.mu.Lock()
			}
			return nil
		}
		say(in(1, api.Starting))
		synctest.Wait()
		for _, s := range []api.VMState{api.Running, api.Rebooting, api.Running, api.Stopping} {
			say(in(1, s))
		}
		say(in(2, api.Running))
		synctest.Wait()
		if len(p.heard) != 1 || p.heard[0].Name != "web2" {
			t.Fatalf("heard %v", p.heard)
		}
		close(release)
		synctest.Wait()
		last := p.heard[len(p.heard)-1]
		if len(p.heard) != 3 || last.State != api.Stopping {
			t.Errorf("heard %v", p.heard)
		}
	})
}

// A table that is read while it is written to shows every VM at generations
// that only grow, and never one generation twice.
func TestGenerationsOnlyGrow(t *testing.T) {
	b := newTable(3)
	seen := map[uint64]VM{}
	var last uint64
	for n, s := range []api.VMState{api.Starting, api.Running, api.Running, api.Stopping, api.Destroyed, api.Running} {
		v, changed := b.Publish(in(1, s))
		if want := n != 2 && n != 5; changed != want {
			t.Errorf("%d, %s: changed %v", n, s, changed)
		}
		if old, ok := seen[v.Gen]; ok && old != v || v.Gen < last || v.Gen>>epochBits != 3 {
			t.Errorf("generation %d: %v, then %v", v.Gen, old, v)
		}
		seen[v.Gen], last = v, v.Gen
	}
	if v, _ := b.Get(vmID(1)); v.State != api.Destroyed {
		t.Errorf("%v came after the end", v)
	}
	if highest := newTable(maxEpoch).gen + 1<<epochBits - 1; highest >= 1<<53 {
		t.Errorf("the highest generation is %d", highest)
	}
}

// A follower sees what is, then what changes; one that continues sees all that it
// has missed, once.
func TestAFollowerMissesNoLastState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTable(1)
		b.Publish(in(1, api.Running))
		b.Publish(in(2, api.Starting))
		follow := func(after uint64, do func()) (got []string, last uint64) {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				for v := range b.Follow(ctx, after) {
					got, last = append(got, v.Name+" "+string(v.State)), v.Gen
				}
			}()
			synctest.Wait()
			do()
			synctest.Wait()
			cancel()
			<-done
			return got, last
		}
		got, last := follow(0, func() { b.Publish(in(2, api.Running)) })
		if want := []string{"web1 running", "web2 starting", "web2 running"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		b.Publish(in(1, api.Stopping))
		b.Publish(in(3, api.Starting))
		b.Publish(in(1, api.Destroyed))
		got, _ = follow(last, func() {})
		if want := []string{"web3 starting", "web1 destroyed"}; !slices.Equal(got, want) {
			t.Errorf("again: %q, want %q", got, want)
		}
	})
}
