package operation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest"
)

// machine is a host of files alone; its commands end well.
type machine struct{ files *hosttest.MemoryFiles }

func (m machine) Run(context.Context, host.Command) (host.Result, error) { return host.Result{}, nil }
func (m machine) Files() host.Files                                      { return m.files }
func (m machine) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("nobody listens")
}

func (machine) DeviceVersion(context.Context, host.Device) (int, error) { return 0, fs.ErrNotExist }

// fakeStep runs one command, then fails or not.
type fakeStep struct {
	name   string
	fails  error
	undo   error
	undoes bool
}

func (d fakeStep) Verb() string { return "step" }
func (d fakeStep) Explain() []host.Line {
	return []host.Line{host.CommandLine(host.Command{Program: "do", Args: []string{d.name}})}
}

func (d fakeStep) Do(ctx context.Context, h host.Host) error {
	if _, err := h.Run(ctx, host.Command{Program: "do", Args: []string{d.name}}); err != nil {
		return err
	}
	return d.fails
}

func (d fakeStep) Undo() any {
	if d.undoes {
		return nil
	}
	return fakeStep{name: "undo " + d.name, fails: d.undo, undoes: true}
}

func fact(key, value string) ledger.Fact {
	return ledger.Fact{Key: key, Value: json.RawMessage(fmt.Sprintf("%q", value))}
}

func newEnv(t *testing.T) operation.Env {
	t.Helper()
	env := operationtest.New(t, machine{files: hosttest.Memory()})
	env.PID = 7
	return env
}

func request(actions []plan.Action, policy plan.Policy) operation.Request[struct{}] {
	return operation.Request[struct{}]{
		Verb: "test", Subject: "thing/1",
		Look: func(context.Context, host.Host) (struct{}, error) { return struct{}{}, nil },
		Decide: func(ledger.View, struct{}, operation.Stamp) (operation.Decision, error) {
			return operation.Decision{
				Plan:      plan.Plan{Policy: policy, Actions: actions},
				Intent:    operation.Intent{Makes: []operation.Object{{Kind: "thing", Name: "1"}}},
				OnStart:   []ledger.Fact{fact("thing/1", "creating")},
				OnSuccess: []ledger.Fact{fact("thing/1", "ready")},
				OnUndo:    []ledger.Fact{{Key: "thing/1"}},
			}, nil
		},
	}
}

func action(d fakeStep) plan.Action {
	return plan.Action{ID: d.name, Object: "thing " + d.name, Change: plan.Create, Step: d}
}

// kept is what the ledger holds of the thing, and how many intents are open.
func kept(t *testing.T, env operation.Env) (thing string, open int) {
	t.Helper()
	l, err := env.Ledger(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	view, err := l.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	value, _ := view.Get("thing/1")
	return strings.Trim(string(value), `"`), len(operation.Open(view))
}

var errBroken = errors.New("broken")

func TestWhatTheLedgerHoldsAfterARun(t *testing.T) {
	for name, tc := range map[string]struct {
		actions []plan.Action
		fails   bool
		thing   string
		open    int
	}{
		"all done":               {[]plan.Action{action(fakeStep{name: "a"})}, false, "ready", 0},
		"failed and undone":      {plan.Chain(action(fakeStep{name: "a"}), action(fakeStep{name: "b", fails: errBroken})), true, "", 0},
		"failed, something left": {plan.Chain(action(fakeStep{name: "a", undo: errBroken}), action(fakeStep{name: "b", fails: errBroken})), true, "creating", 1},
	} {
		t.Run(name, func(t *testing.T) {
			env := newEnv(t)
			_, err := operation.Run(t.Context(), env, request(tc.actions, plan.Undo))
			if (err != nil) != tc.fails || tc.fails && !errors.Is(err, errBroken) {
				t.Fatalf("error: %v", err)
			}
			if thing, open := kept(t, env); thing != tc.thing || open != tc.open {
				t.Errorf("the ledger holds %q and %d open intents, want %q and %d", thing, open, tc.thing, tc.open)
			}
		})
	}
}

func TestTheNextRunAnswersForWhatADeadOneLeft(t *testing.T) {
	env := newEnv(t)
	broken := plan.Chain(action(fakeStep{name: "a", undo: errBroken}), action(fakeStep{name: "b", fails: errBroken}))
	if _, err := operation.Run(t.Context(), env, request(broken, plan.Undo)); err == nil {
		t.Fatal("no error")
	}
	if _, err := operation.Run(t.Context(), env, request([]plan.Action{action(fakeStep{name: "a"})}, plan.Undo)); err != nil {
		t.Fatal(err)
	}
	if thing, open := kept(t, env); thing != "ready" || open != 0 {
		t.Errorf("the ledger holds %q and %d open intents", thing, open)
	}
}

func TestNothingToDoWritesNothing(t *testing.T) {
	env := newEnv(t)
	r := request(nil, plan.Undo)
	r.Decide = func(ledger.View, struct{}, operation.Stamp) (operation.Decision, error) {
		return operation.Decision{}, nil
	}
	before := seq(t, env)
	report, err := operation.Run(t.Context(), env, r)
	if err != nil || report.ID != "" {
		t.Fatalf("report %+v, error %v", report, err)
	}
	if after := seq(t, env); after != before {
		t.Errorf("the ledger went from %d to %d", before, after)
	}
}

func TestADryRunWritesNothingAndLocksNothing(t *testing.T) {
	env := newEnv(t)
	r := request([]plan.Action{action(fakeStep{name: "a"})}, plan.Undo)
	r.DryRun = true
	before := seq(t, env)
	report, err := operation.Run(t.Context(), env, r)
	if err != nil || len(report.Plan.Actions) != 1 {
		t.Fatalf("report %+v, error %v", report, err)
	}
	if after := seq(t, env); after != before {
		t.Errorf("the ledger went from %d to %d", before, after)
	}
	if _, err := env.Host.Files().Stat(operation.LockName(env.RunDir, "thing/1")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a lock file is there: %v", err)
	}
}

func seq(t *testing.T, env operation.Env) uint64 {
	t.Helper()
	l, err := env.Ledger(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	view, err := l.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return view.Seq()
}

func TestALockedSubjectNamesItsHolder(t *testing.T) {
	env := newEnv(t)
	r := request([]plan.Action{action(fakeStep{name: "a"})}, plan.Undo)
	r.Look = func(ctx context.Context, _ host.Host) (struct{}, error) {
		other := env
		other.PID = 8
		_, err := operation.Run(ctx, other, request(nil, plan.Undo))
		return struct{}{}, err
	}
	_, err := operation.Run(t.Context(), env, r)
	locked, ok := errors.AsType[*operation.LockedError](err)
	if !ok || locked.Holder.PID != 7 || locked.Holder.Verb != "test" || locked.Holder.Since.IsZero() {
		t.Fatalf("error: %v", err)
	}
	if _, living := operation.Alive(t.Context(), env, "thing/1"); living {
		t.Error("the lock is still held")
	}
}

func TestWhoOnlyAsksForALockIsInNobodysWay(t *testing.T) {
	for _, asked := range []time.Duration{10 * time.Millisecond, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			env := newEnv(t)
			r := request([]plan.Action{action(fakeStep{name: "a"})}, plan.Undo)
			name := operation.LockName(env.RunDir, r.Subject)
			if err := host.MkdirAll(env.Host.Files(), path.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			l, err := env.Host.Files().Lock(t.Context(), name, host.LockShared)
			if err != nil {
				t.Fatal(err)
			}
			asks := make(chan struct{})
			go func() { time.Sleep(asked); l.Unlock(); close(asks) }()
			_, err = operation.Run(t.Context(), env, r)
			<-asks
			if _, locked := errors.AsType[*operation.LockedError](err); locked != (asked == time.Hour) || !locked && err != nil {
				t.Errorf("asked for %s: %v", asked, err)
			}
		})
	}
}

func TestBeforeThereIsALedgerIntentsLieOnTheRamdisk(t *testing.T) {
	env := newEnv(t)
	env.Ledger = func(context.Context) (*ledger.Ledger, error) { return nil, &ledger.AbsentError{} }
	r := request([]plan.Action{action(fakeStep{name: "a"})}, plan.Stop)
	if _, err := operation.Run(t.Context(), env, r); !errors.Is(err, ledger.ErrAbsent) {
		t.Fatalf("without leave: %v", err)
	}
	r.BeforeLedger = true
	if _, err := operation.Run(t.Context(), env, r); err != nil {
		t.Fatal(err)
	}
	left, err := env.Host.Files().ReadDir("/var/run/sledctl/intent")
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestTheTraceTellsWhatWasRun(t *testing.T) {
	env := newEnv(t)
	report, err := operation.Run(t.Context(), env, request([]plan.Action{action(fakeStep{name: "a"})}, plan.Undo))
	if err != nil {
		t.Fatal(err)
	}
	trace, err := operation.ReadTrace(env.Host.Files(), env.RunDir, report.ID)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range trace.Events {
		lines = append(lines, e.Action+": "+e.Line.Text)
	}
	if diff := cmp.Diff([]string{"a: do a"}, lines); diff != "" {
		t.Error(diff)
	}
	if len(trace.Steps) != 1 || trace.Steps[0].Object != "thing a" || trace.Verb != "test" {
		t.Errorf("trace: %+v", trace)
	}
}

func TestOnlyTheNewestTracesAreKept(t *testing.T) {
	env := newEnv(t)
	kept := func(name func(n int) string, runs int) (listed, files int) {
		n := 0
		env.NewID = func() string { n++; return name(n) }
		for range runs {
			if _, err := operation.Run(t.Context(), env, request([]plan.Action{action(fakeStep{name: "a"})}, plan.Undo)); err != nil {
				t.Fatal(err)
			}
		}
		heads, err := operation.TraceList(env.Host.Files(), env.RunDir)
		if err != nil {
			t.Fatal(err)
		}
		entries, err := env.Host.Files().ReadDir(path.Join(env.RunDir, "trace"))
		if err != nil {
			t.Fatal(err)
		}
		return len(heads), len(entries)
	}
	if listed, _ := kept(func(n int) string { return fmt.Sprint("f", n) }, operation.Traces+5); listed != operation.Traces {
		t.Errorf("%d traces are listed", listed)
	}
	if listed, files := kept(func(n int) string { return fmt.Sprint("0", n) }, 20); listed != operation.Traces || files != operation.Traces {
		t.Errorf("%d traces are listed, %d are kept", listed, files)
	}
}

// poor is a machine that lacks something.
type poor struct {
	machine
	programs   []string
	privileges error
}

func (p poor) Privileged() error { return p.privileges }

func (p poor) Lookup(programs ...string) error {
	for _, name := range programs {
		if !slices.Contains(p.programs, name) {
			return fmt.Errorf("%s: %w", name, host.ErrNoCommand)
		}
	}
	return nil
}

func TestWhatTheHostLacksIsFoundOutFirst(t *testing.T) {
	for _, c := range []struct {
		name string
		lack poor
		want error
	}{
		{"a program", poor{}, host.ErrNoCommand},
		{"privileges", poor{programs: []string{"do"}, privileges: host.ErrPrivileges}, host.ErrPrivileges},
		{"nothing", poor{programs: []string{"do"}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := newEnv(t)
			c.lack.machine = env.Host.(machine)
			env.Host = c.lack
			report, err := operation.Run(t.Context(), env, request([]plan.Action{action(fakeStep{name: "a"})}, plan.Undo))
			if !errors.Is(err, c.want) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			thing, open := kept(t, env)
			if wrote := thing != "" || open > 0; wrote != (c.want == nil) || (report.ID != "") != (c.want == nil) {
				t.Errorf("thing %q, %d intents, report %q", thing, open, report.ID)
			}
		})
	}
}

// Who is at work is known for as long as that lasts, with what it works on; the file of a
// lock that a killed run left counts for nothing.
func TestWhoIsAtWorkIsListed(t *testing.T) {
	env := newEnv(t)
	list := func() (all []string) {
		holders, err := operation.AtWork(t.Context(), env)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range holders {
			all = append(all, fmt.Sprint(h.Subject, " ", h.Verb, " ", h.PID))
		}
		return all
	}
	if got := list(); got != nil {
		t.Errorf("on a fresh sled: %q", got)
	}
	for _, subject := range []string{"thing/2", "thing/1"} {
		release, err := operation.Hold(t.Context(), env, "do", subject)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
	}
	release, err := operation.Hold(t.Context(), env, "do", "over")
	if err != nil {
		t.Fatal(err)
	}
	release()
	if err := host.WriteFile(env.Host.Files(), operation.LockName(env.RunDir, "killed"), []byte(`{"pid":9}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := list(), []string{"thing/1 do 7", "thing/2 do 7"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// What comes before the intent has no name yet: a new instance has no record then.
func TestEventsNameTheSubjectOnceItIsRecorded(t *testing.T) {
	env := operationtest.New(t, machine{files: hosttest.Memory()})
	env.Name = func(view ledger.View, subject string) string {
		if _, known := view.Get(subject); known {
			return "web1"
		}
		return "unknown"
	}
	var told []string
	env.Observe = func(e operation.Event) { told = append(told, string(e.Kind)+" "+e.Name) }
	action := func(id string) plan.Action {
		return plan.Action{ID: id, Object: "thing " + id, Change: plan.Create, Step: fakeStep{name: id}}
	}
	_, err := operation.Run(t.Context(), env, operation.Request[struct{}]{
		Verb: "instance ensure", Subject: "instance/1",
		Look: func(context.Context, host.Host) (struct{}, error) { return struct{}{}, nil },
		Decide: func(ledger.View, struct{}, operation.Stamp) (operation.Decision, error) {
			return operation.Decision{
				Ahead: []plan.Action{action("ahead")}, Plan: plan.Plan{Actions: []plan.Action{action("a")}, Policy: plan.Undo},
				OnStart: []ledger.Fact{{Key: "instance/1", Value: json.RawMessage(`{"name":"web1"}`)}},
			}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"started ", "finished ", "started web1", "finished web1", "over web1"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}
