package instance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/sled/instance/record"
)

func TestEachKeepsToItsBoundAndTellsAllErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := strings.Fields("a b c d e f g h i j")
		var now, most atomic.Int32
		results, err := Each(t.Context(), names, strings.ToUpper, 3, func(_ context.Context, name string) (Result, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(time.Second)
			if name == "c" || name == "h" {
				return Result{}, errors.New("no " + name)
			}
			return Result{Record: record.Record{Name: name}}, nil
		})
		if most.Load() != 3 {
			t.Errorf("%d at once", most.Load())
		}
		for i, r := range results {
			if failed := names[i] == "c" || names[i] == "h"; (r.Record.Name != names[i]) != failed {
				t.Errorf("%s: %q", names[i], r.Record.Name)
			}
		}
		if err == nil || err.Error() != "2 of 10 instances: not done\n  C: no c\n  H: no h" {
			t.Errorf("%v", err)
		}
	})
}

// A cause that all share stands once. If it names one instance, the others follow.
func TestACauseOfAllIsToldOnce(t *testing.T) {
	for want, cause := range map[string]func(name string) error{
		`none of 2 instances: no instance "web8"; the same of web9`:  func(name string) error { return &record.NotFoundError{Name: name} },
		"none of 2 instances: no pool":                               func(string) error { return errors.New("no pool") },
		"2 of 2 instances: not done\n  web8: a web8\n  web9: b web9": func(name string) error { return errors.New(map[string]string{"web8": "a ", "web9": "b "}[name] + name) },
	} {
		err := &PartialError{Of: 2, Failures: []Failure{{Name: "web8", Err: cause("web8")}, {Name: "web9", Err: cause("web9")}}}
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
}

// Of several causes, the one of most instances comes first, once, with all their names.
func TestFailuresAreGroupedByCause(t *testing.T) {
	id := func(n int) string { return fmt.Sprintf("%08d-0000-4000-8000-000000000000", n) }
	err := &PartialError{Of: 9, Failures: []Failure{
		{"ci3", errors.New("zone propolis_" + id(3) + " of ci3: out of space")},
		{"web1", errors.New("web1 is locked")},
		{"ci7", errors.New("zone propolis_" + id(7) + " of ci7: out of space")},
		{"dev-2", errors.New("zone propolis_" + id(2) + " of dev-2: out of space")},
		{"web2", errors.New("no such pool")},
	}}
	want := "5 of 9 instances: not done" +
		"\n  ci3, ci7, dev-2: zone propolis_" + id(3) + " of ci3: out of space" +
		"\n  web1: web1 is locked" +
		"\n  web2: no such pool"
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
}

func TestEachBeginsNoneWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("enough")
		ctx, end := context.WithCancelCause(t.Context())
		var begun []string
		_, err := Each(ctx, []string{"a", "b", "c"}, strings.ToUpper, 1, func(_ context.Context, name string) (Result, error) {
			begun = append(begun, name)
			if name == "b" {
				end(cause)
			}
			return Result{}, nil
		})
		if diff := cmp.Diff([]string{"a", "b"}, begun); diff != "" {
			t.Errorf("begun: %s", diff)
		}
		some, ok := errors.AsType[*PartialError](err)
		if !ok || len(some.Failures) != 1 || some.Failures[0].Name != "C" || !errors.Is(err, cause) {
			t.Errorf("%v", err)
		}
	})
	if _, err := Each(t.Context(), nil, strings.ToUpper, 0, func(context.Context, string) (Result, error) { return Result{}, nil }); err != nil {
		t.Errorf("of none: %v", err)
	}
}

func TestWavesAreInStartOrder(t *testing.T) {
	order := func(s string) record.StartOrder {
		_, number, _ := strings.Cut(s, ":")
		o, err := record.ParseStartOrder(number)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	for given, want := range map[string][][]string{
		"":                             nil,
		"a:none b:none":                {{"a:none", "b:none"}},
		"b:7 a:7":                      {{"b:7", "a:7"}},
		"a:none b:0":                   {{"b:0"}, {"a:none"}},
		"c:10 b:9 a:999":               {{"b:9"}, {"c:10"}, {"a:999"}},
		"w:none d:10 a:20 x:none e:10": {{"d:10", "e:10"}, {"a:20"}, {"w:none", "x:none"}},
	} {
		if diff := cmp.Diff(want, Waves(strings.Fields(given), order)); diff != "" {
			t.Errorf("%q: %s", given, diff)
		}
	}
}

// The next wave begins when the last of this one is done or has failed, and not before.
func TestAWaveWaitsForTheOneBeforeIt(t *testing.T) {
	takes := map[string]time.Duration{"db1": time.Second, "db2": 5 * time.Second, "app1": 2 * time.Second, "web1": time.Second, "web2": time.Second}
	waves := [][]string{{"db1", "db2"}, {"app1"}, {"web1", "web2"}}
	for parallel, want := range map[int]map[string]time.Duration{
		64: {"db1": 0, "db2": 0, "app1": 5 * time.Second, "web1": 7 * time.Second, "web2": 7 * time.Second},
		1:  {"db1": 0, "db2": time.Second, "app1": 6 * time.Second, "web1": 8 * time.Second, "web2": 9 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			var mu sync.Mutex
			began := map[string]time.Duration{}
			results, err := EachInWaves(t.Context(), waves, strings.ToUpper, parallel, func(_ context.Context, name string) (Result, error) {
				mu.Lock()
				began[name] = time.Since(start)
				mu.Unlock()
				time.Sleep(takes[name])
				if name == "db1" || name == "web2" {
					return Result{}, errors.New("no " + name)
				}
				return Result{Record: record.Record{Name: name}}, nil
			})
			if diff := cmp.Diff(want, began); diff != "" {
				t.Errorf("%d at once: %s", parallel, diff)
			}
			if err == nil || err.Error() != "2 of 5 instances: not done\n  DB1: no db1\n  WEB2: no web2" {
				t.Errorf("%v", err)
			}
			var done []string
			for _, r := range results {
				done = append(done, r.Record.Name)
			}
			if diff := cmp.Diff([]string{"", "db2", "app1", "web1", ""}, done); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNoWaveBeginsWhenTheTimeIsOver(t *testing.T) {
	cause := errors.New("enough")
	ctx, end := context.WithCancelCause(t.Context())
	_, err := EachInWaves(ctx, [][]string{{"a"}, {"b"}, {"c"}}, strings.ToUpper, 64, func(_ context.Context, name string) (Result, error) {
		if name != "a" {
			t.Errorf("%s begins", name)
		}
		end(cause)
		return Result{}, nil
	})
	if some, ok := errors.AsType[*PartialError](err); !ok || some.Of != 3 || len(some.Failures) != 2 || !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
}

// Died are those that ran since the sled was booted; WantedUp those too that a
// reboot has ended.
func TestWhoIsBroughtUp(t *testing.T) {
	c := settings()
	r := made(t, c, web(1))
	earlier, begun, stopped, cleared := r, half(r), r, r
	incarnation := *r.Incarnation
	incarnation.Boot = earlierBoot
	earlier.Incarnation = &incarnation
	stopped.Incarnation, stopped.Wanted = nil, record.WantedStopped
	cleared.Incarnation = nil
	leaving := r
	leaving.Leaving = []record.Incarnation{incarnation}
	for name, s := range map[string]struct {
		instance     Instance
		wanted, died bool
	}{
		"runs":                       {Instance{Record: r, Status: Status{State: record.Running}}, false, false},
		"runs, the last one remains": {Instance{Record: leaving, Status: Status{State: record.Running}}, true, false},
		"failed":                     {Instance{Record: r, Status: Status{State: record.Failed}}, true, true},
		"was shut down by its guest": {Instance{Record: r, Status: Status{State: "destroyed"}}, true, true},
		"its zone was removed":       {Instance{Record: r, Status: Status{State: record.Absent}}, true, true},
		"the sled was rebooted":      {Instance{Record: earlier, Status: Status{State: record.Absent}}, true, false},
		"was never finished":         {Instance{Record: begun, Status: Status{State: record.Creating}}, true, false},
		"runs, and nobody knows":     {Instance{Record: begun, Status: Status{State: record.Running}}, true, false},
		"cannot be seen":             {Instance{Record: r, Status: Status{State: record.Unknown}}, true, false},
		"is stopped":                 {Instance{Record: stopped, Status: Status{State: record.Stopped}}, false, false},
		"was stopped with the sled":  {Instance{Record: cleared, Status: Status{State: record.Absent}}, true, false},
	} {
		if got := WantedUp(s.instance); got != s.wanted {
			t.Errorf("%s: brought up: %v", name, got)
		}
		if got := s.instance.Died(thisBoot); got != s.died {
			t.Errorf("%s: died: %v", name, got)
		}
	}
}

func TestRareCausesAreCounted(t *testing.T) {
	err := &PartialError{Of: 9}
	for _, cause := range []string{"a", "a", "b", "c", "d", "e", "f", "g"} {
		err.Failures = append(err.Failures, Failure{Name: fmt.Sprint("web", len(err.Failures)), Err: errors.New("cause " + cause)})
	}
	lines := strings.Split(err.Error(), "\n")
	want := "  2 more, for 2 other reasons: sledctl events --failed lists them"
	if len(lines) != 7 || lines[1] != "  web0, web1: cause a" || lines[6] != want {
		t.Errorf("%q", lines)
	}
}
