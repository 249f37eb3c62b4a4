package storage_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sled/storage"
	"github.com/sledctl/sledctl/test/hosttest"
)

const markProperty = "sledctl:ledger"

// witnessed is a sled's witness, the names of its U.2 pools, and the commands
// that were run.
func witnessed(t *testing.T, o sim.Options) (w storage.Witness, pools []string, ran *[]string) {
	t.Helper()
	s := sim.New(o, hosttest.Files)
	t.Cleanup(s.Close)
	look := inventory.Look(t.Context(), s.Host(), inventory.Want{Parts: []inventory.Part{inventory.Pools}})
	all, err := look.Pools()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if strings.HasPrefix(p.Name, "oxp_") {
			pools = append(pools, p.Name)
		}
	}
	ran = new([]string)
	return storage.Witness{Host: host.Trace(s.Host(), func(e host.Event) { *ran = append(*ran, e.Line.Text) })}, pools, ran
}

func mark(n uint64, epoch string) ledger.EpochTag {
	return ledger.EpochTag{Ledger: "0123456789abcdef", N: n, Epoch: epoch}
}

// newest is the latest mark, and how many pools have one.
func newest(ctx context.Context, w storage.Witness) (m ledger.EpochTag, marked int, err error) {
	said, err := w.Read(ctx)
	for _, s := range said {
		if s.Tagged {
			marked++
		}
		if s.Tag.N > m.N {
			m = s.Tag
		}
	}
	return m, marked, err
}

func TestTheWitnessIsOnEveryU2(t *testing.T) {
	w, pools, ran := witnessed(t, sim.Options{})
	if _, n, err := newest(t.Context(), w); n > 0 || err != nil {
		t.Fatalf("a fresh sled: %d marks, %v", n, err)
	}
	first := mark(1, "a")
	if err := w.Write(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if got, n, err := newest(t.Context(), w); got != first || n != len(pools) || err != nil {
		t.Errorf("read %v, from %d of %d, %v", got, n, len(pools), err)
	}
	sets := 0
	for _, line := range *ran {
		if strings.HasPrefix(line, "zfs set "+markProperty+"="+first.String()+" oxp_") {
			sets++
		}
	}
	if sets != len(pools) || sets < 2 || len(*ran) != sets+3 {
		t.Errorf("%d pools: %q", len(pools), *ran)
	}
	*ran = nil
	if err := w.Write(t.Context(), first); err != nil || len(*ran) != 1 {
		t.Errorf("again: %v, %q", err, *ran)
	}
}

func TestTheNewestMarkCounts(t *testing.T) {
	w, pools, _ := witnessed(t, sim.Options{})
	run(t, w.Host, "zfs", "set", markProperty+"="+mark(2, "b").String(), pools[0])
	run(t, w.Host, "zfs", "set", markProperty+"="+mark(10, "c").String(), pools[1])
	said, err := w.Read(t.Context())
	for _, want := range []ledger.WitnessTag{{Pool: pools[0], Tag: mark(2, "b"), Tagged: true}, {Pool: pools[1], Tag: mark(10, "c"), Tagged: true}} {
		if err != nil || !slices.Contains(said, want) {
			t.Errorf("read %v, %v: it lacks %v", said, err, want)
		}
	}
	if err := w.Write(t.Context(), mark(9, "d")); err == nil || !strings.Contains(err.Error(), pools[1]) {
		t.Errorf("an older mark was written over a newer one: %v", err)
	}
	if err := w.Write(t.Context(), mark(11, "d")); err != nil {
		t.Fatal(err)
	}
	if got, n, err := newest(t.Context(), w); got != mark(11, "d") || n != len(pools) || err != nil {
		t.Errorf("read %v, from %d, %v", got, n, err)
	}
}

// Disks of another sled that were put in keep what they say: it is all that is
// left of that sled's ledger, should it be lost.
func TestAnotherSledsMarksStay(t *testing.T) {
	w, pools, _ := witnessed(t, sim.Options{})
	other := ledger.EpochTag{Ledger: "fedcba9876543210", N: 3, Epoch: "x"}
	run(t, w.Host, "zfs", "set", markProperty+"="+other.String(), pools[0])
	for _, m := range []ledger.EpochTag{mark(1, "a"), mark(4, "b")} {
		if err := w.Write(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		said, err := w.Read(t.Context())
		if err != nil || !slices.Contains(said, ledger.WitnessTag{Pool: pools[0], Tag: other, Tagged: true}) ||
			!slices.Contains(said, ledger.WitnessTag{Pool: pools[1], Tag: m, Tagged: true}) {
			t.Errorf("%v, %v", said, err)
		}
	}
	if err := w.Write(t.Context(), mark(5, "c"), other); err != nil {
		t.Fatal(err)
	}
	if said, err := w.Read(t.Context()); err != nil || !slices.Contains(said, ledger.WitnessTag{Pool: pools[0], Tag: mark(5, "c"), Tagged: true}) {
		t.Errorf("given up, and still there: %v, %v", said, err)
	}
}

func TestWhatIsNoMarkIsAnErrorAndStays(t *testing.T) {
	w, pools, _ := witnessed(t, sim.Options{})
	for _, text := range []string{"x", "a:1", "a:0:b", "a:01:b", ":1:b", "a:1:", "a:-1:b"} {
		run(t, w.Host, "zfs", "set", markProperty+"="+text, pools[0])
		_, err := w.Read(t.Context())
		bad, ok := errors.AsType[*storage.MarkError](err)
		if !ok || bad.Pool != pools[0] || !strings.Contains(bad.Hint(), "zfs inherit sledctl:ledger "+pools[0]) {
			t.Errorf("%q: %v", text, err)
		}
		if err := w.Write(t.Context(), mark(5, "z")); !errors.As(err, &bad) {
			t.Errorf("%q was written over: %v", text, err)
		}
	}
}

// A pool that fails must not keep the sled from its ledger, as long as
// another one knows.
func TestOnePoolThatTookTheMarkIsEnough(t *testing.T) {
	w, pools, _ := witnessed(t, sim.Options{})
	var warned []error
	w.Warn = func(err error) { warned = append(warned, err) }
	w.Host = failingSet{w.Host, pools[0]}
	if err := w.Write(t.Context(), mark(1, "a")); err != nil {
		t.Fatal(err)
	}
	if len(warned) != 1 || !strings.Contains(warned[0].Error(), pools[0]) {
		t.Errorf("warned %v", warned)
	}
	if got, n, err := newest(t.Context(), w); got != mark(1, "a") || n != len(pools)-1 || err != nil {
		t.Errorf("read %v, from %d, %v", got, n, err)
	}
	w.Host = failingSet{w.Host, "oxp_"}
	if err := w.Write(t.Context(), mark(2, "b")); err == nil || !strings.Contains(err.Error(), pools[1]) {
		t.Errorf("no pool took it: %v", err)
	}
}

// failingSet is a host whose zfs set fails for some pools.
type failingSet struct {
	host.Host
	pool string
}

func (f failingSet) Run(ctx context.Context, c host.Command) (host.Result, error) {
	if c.Program == "zfs" && c.Args[0] == "set" && strings.HasPrefix(c.Args[len(c.Args)-1], f.pool) {
		return host.Result{Exit: 1, Stderr: []byte("cannot set property for '" + c.Args[2] + "': I/O error\n")}, nil
	}
	return f.Host.Run(ctx, c)
}

func TestAWitnessThatCannotBeAskedIsNotSilent(t *testing.T) {
	w, _, _ := witnessed(t, sim.Options{})
	w.Host = failingGet{w.Host}
	if said, err := w.Read(t.Context()); err == nil {
		t.Errorf("read %v", said)
	}
	if err := w.Write(t.Context(), mark(1, "a")); err == nil {
		t.Error("written blindly")
	}
}

type failingGet struct{ host.Host }

func (f failingGet) Run(ctx context.Context, c host.Command) (host.Result, error) {
	if c.Program == "zfs" && c.Args[0] == "get" {
		return host.Result{Exit: 1, Stderr: []byte("internal error: out of memory\n")}, nil
	}
	return f.Host.Run(ctx, c)
}

func TestASledWithoutU2PoolsHasNoWitness(t *testing.T) {
	w, pools, _ := witnessed(t, sim.Options{U2: -1})
	if len(pools) > 0 {
		t.Fatal(pools)
	}
	if err := w.Write(t.Context(), mark(1, "a")); err != nil {
		t.Error(err)
	}
	if said, err := w.Read(t.Context()); len(said) > 0 || err != nil {
		t.Errorf("%v, %v", said, err)
	}
}
