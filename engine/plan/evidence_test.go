package plan_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest"
)

// logged is a host with a zone's logs.
type logged struct {
	host.Host
	files host.Files
}

func (l logged) Files() host.Files { return l.files }

func newLogged(t *testing.T, newest string) logged {
	t.Helper()
	l := logged{files: hosttest.Memory()}
	if err := host.MkdirAll(l.files, "/z/root/var/svc/log/dir", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, log := range [][2]string{{"old.log", "old\n"}, {"new.log", newest}} {
		time.Sleep(time.Second) // of the bubble's clock
		if err := host.WriteFile(l.files, "/z/root/var/svc/log/"+log[0], []byte(log[1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// start is a run whose second action fails, with evidence of the reason.
func start(book *diary, broken, keep fakeStep) plan.Plan {
	broken.name, broken.book, keep.name, keep.book = "broken", book, "keep", book
	second := action(broken, "made")
	second.Evidence = &plan.Evidence{Root: "/z/root", Log: "/var/svc/log", Keep: []plan.Action{action(keep)}}
	return plan.Plan{Policy: plan.Undo, Actions: []plan.Action{action(fakeStep{name: "made", book: book}), second}}
}

func TestTheEvidenceIsKeptBeforeTheRunIsTakenBack(t *testing.T) {
	taken := []string{"begin made", "end made", "begin broken", "end broken", "begin keep", "end keep", "begin undo made", "end undo made"}
	for name, c := range map[string]struct {
		policy plan.Policy
		keep   error // why it cannot be kept
		o      plan.Options
		want   []string
		kept   int
	}{
		"it fails":             {plan.Undo, nil, plan.Options{}, taken, 1},
		"it cannot be kept":    {plan.Undo, errors.New("no room"), plan.Options{}, taken, 0},
		"its command runs on":  {plan.Undo, host.ErrStillRunning, plan.Options{}, taken, 0},
		"nothing goes":         {plan.Stop, nil, plan.Options{}, taken[:4], 0},
		"what is made is kept": {plan.Undo, nil, plan.Options{Keep: true}, taken[:4], 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			book := &diary{}
			p := start(book, fakeStep{fails: errBroken}, fakeStep{fails: c.keep})
			p.Policy = c.policy
			outcome, err := plan.Apply(t.Context(), newLogged(t, strings.Repeat("long ago\n", 2000)+"\n"+strings.Repeat("x", 5000)+"\nit fell over\n\n"), p, c.o)
			if err != nil || !errors.Is(outcome.Err(), errBroken) || len(outcome.Failed) != 1 {
				t.Fatalf("%s: %v, %+v", name, err, outcome)
			}
			if d := cmp.Diff(c.want, book.lines); d != "" {
				t.Errorf("%s: %s", name, d)
			}
			if len(outcome.Kept) != c.kept || len(outcome.Passed) != len(c.want)/8-c.kept {
				t.Errorf("%s: kept %d, passed %d", name, len(outcome.Kept), len(outcome.Passed))
			}
			q := outcome.Failed[0].Quote
			if n := len(q.Lines); q.File != "/z/root/var/svc/log/new.log" || n != 6 || q.Lines[n-1] != "it fell over" || q.Lines[n-2] != strings.Repeat("x", 400) {
				t.Errorf("%s: %+v", name, q)
			}
		})
	}
}

func TestNobodyWaitsLongForTheEvidence(t *testing.T) {
	for name, c := range map[string]struct {
		end    func(context.Context) (context.Context, context.CancelFunc)
		begins bool
		takes  time.Duration // all of it
	}{
		"it hangs": {context.WithCancel, true, time.Second + plan.EvidenceTime},
		"the operator gives up meanwhile": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(3*time.Second, cancel)
			return ctx, cancel
		}, true, 3 * time.Second},
		"the operator gave up": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second/2, cancel)
			return ctx, cancel
		}, false, time.Second},
		"the time is up": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second/2)
		}, true, time.Second/2 + plan.EvidenceTime},
	} {
		synctest.Test(t, func(t *testing.T) {
			book := &diary{}
			h := newLogged(t, "it fell over\n")
			began := time.Now()
			ctx, release := c.end(t.Context())
			defer release()
			outcome := applyOn(t, ctx, h, start(book, fakeStep{fails: errBroken, takes: time.Second}, fakeStep{takes: time.Hour}))
			if took := time.Since(began); took != c.takes {
				t.Errorf("%s: it took %s, not %s", name, took, c.takes)
			}
			undone := len(outcome.Undone) == 1 && len(outcome.Leftovers) == 0
			if kept := len(outcome.Kept); kept != 0 || !undone || (len(outcome.Passed) == 1) != c.begins {
				t.Errorf("%s: kept %d, %+v", name, kept, outcome)
			}
			if quoted := outcome.Failed != nil && outcome.Failed[0].Quote.File != ""; quoted != c.begins {
				t.Errorf("%s: quoted: %v", name, quoted)
			}
		})
	}
}

func applyOn(t *testing.T, ctx context.Context, h host.Host, p plan.Plan) plan.Outcome {
	t.Helper()
	outcome, err := plan.Apply(ctx, h, p, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

// What was there before this run stays there, with all that it can tell.
func TestNoEvidenceIsKeptOfWhatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := &diary{}
		p := start(book, fakeStep{fails: errBroken}, fakeStep{})
		p.Actions = p.Actions[1:]
		p.Actions[0].After = nil
		outcome := applyOn(t, t.Context(), newLogged(t, "it fell over\n"), p)
		if len(outcome.Kept) != 0 || outcome.Failed[0].Quote.File == "" {
			t.Errorf("%+v", outcome)
		}
	})
}
