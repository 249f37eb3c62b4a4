package bootstrap_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/disk"
	"github.com/sledctl/sledctl/illumos/key"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sled/base"
	"github.com/sledctl/sledctl/sled/bootstrap"
	"github.com/sledctl/sledctl/sled/network"
	"github.com/sledctl/sledctl/sled/reap"
	"github.com/sledctl/sledctl/sled/storage"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/test/sledtest"
	"github.com/sledctl/sledctl/zfs"
)

// bench is a fresh simulated sled.
type bench struct {
	*testing.T
	sled      *sim.Sled
	directory string // of the ledger, where it is configured
}

func newBench(t *testing.T, o sim.Options) *bench {
	t.Helper()
	s := sim.New(o, hosttest.Files)
	t.Cleanup(s.Close)
	return &bench{T: t, sled: s}
}

// as is what a process on a host has: an environment and settings.
func (b *bench) as(h host.Host) (operation.Env, bootstrap.Settings) {
	places := func() ledger.Places {
		return ledger.Places{Lock: "/var/run/sledctl/ledger.lock", Locations: ledger.Find(h.Files(), b.directory)}
	}
	var mu sync.Mutex
	n := 0
	env := operation.Env{
		Host: h, RunDir: "/var/run/sledctl", PID: 1,
		Ledger: func(ctx context.Context) (*ledger.Ledger, error) {
			if err := host.MkdirAll(h.Files(), "/var/run/sledctl", 0o755); err != nil {
				return nil, err
			}
			l, _, err := ledger.Open(ctx, h.Files(), places())
			return l, err
		},
		NewID: func() string { mu.Lock(); defer mu.Unlock(); n++; return fmt.Sprint("draw-", n) },
	}
	names := naming.DefaultPrefixes()
	settings := bootstrap.Settings{
		Storage: storage.Settings{Disks: []disk.Source{disk.Detect{Board: "gimlet"}}, Keys: key.NewRing(key.Development{}, "/var/run/sledctl/key")},
		Network: network.Settings{Names: names, Etherstub: "stub0", GZVNIC: "gz0", GZAddress: netip.MustParsePrefix("10.77.0.1/16"), MTU: 1500},
		Reap:    reap.Settings{Names: names},
		Base:    base.Settings{Names: names, Brand: "sparse", Packaging: packaging.Settings{Directory: "/opt/oxide/propolis-server", Images: []string{"/opt/oxide/propolis-server.tar.gz"}}},
		CreateLedger: func(ctx context.Context) error {
			return ledger.Create(ctx, h.Files(), places(), ledger.Creation{Who: "test"})
		},
		Pools: storage.ZonePools,
	}
	settings.Reread = func() (bootstrap.Settings, error) { return settings, nil }
	return env, settings
}

func (b *bench) bootstrap() ([]bootstrap.Part, error) {
	env, settings := b.as(b.sled.Host())
	return settings.Run(b.Context(), env, false)
}

func (b *bench) prepared() []bootstrap.Part {
	b.Helper()
	parts, err := b.bootstrap()
	if err != nil {
		b.Fatal(err)
	}
	return parts
}

func (b *bench) view() ledger.View {
	b.Helper()
	env, _ := b.as(b.sled.Host())
	return operationtest.View(b, env)
}

func (b *bench) state() string {
	b.Helper()
	data, err := sim.Comparable(b.Context(), b.sled.World())
	if err != nil {
		b.Fatal(err)
	}
	return regexp.MustCompile(`02:08:20(:[0-9a-f]{2}){3}`).ReplaceAllString(string(data), "a MAC that was drawn")
}

func (b *bench) arm(f world.Fault) {
	b.Helper()
	if err := b.sled.World().Update(b.Context(), func(tx *world.Tx) error { tx.Arm(f); return nil }); err != nil {
		b.Fatal(err)
	}
}

func names(parts []bootstrap.Part) string {
	var all []string
	for _, p := range parts {
		all = append(all, strings.Fields(p.Name)[0])
	}
	return strings.Join(all, " ")
}

// valid counts the bases that are, and those that are not.
func (b *bench) valid() (good, bad int) {
	b.Helper()
	_, settings := b.as(b.sled.Host())
	all, err := settings.Base.List(b.Context(), b.sled.Host(), b.view())
	if err != nil {
		b.Fatal(err)
	}
	for _, st := range all {
		if st.Valid {
			good++
		} else {
			bad++
		}
	}
	return good, bad
}

func TestAFreshSledIsPreparedOnce(t *testing.T) {
	b := newBench(t, sim.Options{})
	if got, want := names(b.prepared()), "storage storage network reap base base base base"; got != want {
		t.Errorf("parts: %s, want %s", got, want)
	}
	if good, bad := b.valid(); good != 4 || bad != 0 {
		t.Errorf("%d bases are valid, %d are not", good, bad)
	}
	members := ledger.Find(b.sled.Host().Files(), "")
	if len(members) != 2 {
		t.Fatalf("ledgers may lie at %v", members)
	}
	for _, m := range members {
		if data, err := host.ReadFile(b.sled.Host().Files(), m.Directory+"/ledger.jsonl"); err != nil || len(data) == 0 {
			t.Errorf("%s: %v", m.Directory, err)
		}
	}
	if open := operation.Open(b.view()); len(open) > 0 {
		t.Errorf("open: %+v", open)
	}
}

func TestTheSecondTimeNothingIsChanged(t *testing.T) {
	b := newBench(t, sim.Options{})
	b.prepared()
	before, seq := b.state(), b.view().Seq()
	var mu sync.Mutex
	var changes []string
	env, settings := b.as(host.Trace(b.sled.Host(), func(e host.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Line.Kind == host.LineRun || e.Line.Kind == host.LineRequest || strings.Contains(e.Line.Text, "ledger.jsonl") {
			changes = append(changes, e.Line.Text)
		}
	}))
	parts, err := settings.Run(t.Context(), env, false)
	if err != nil || len(changes) > 0 || b.view().Seq() != seq {
		t.Errorf("%v, changes: %q", err, changes)
	}
	for _, p := range parts {
		if !p.Report.Plan.Empty() {
			t.Errorf("%s: %v", p.Name, p.Report.Plan)
		}
	}
	if d := cmp.Diff(before, b.state()); d != "" {
		t.Error(d)
	}
}

func TestASledWithoutM2sKeepsItsLedgerWhereItIsTold(t *testing.T) {
	b := newBench(t, sim.Options{M2: -1, U2: -1})
	b.directory = "/var/lib/sledctl"
	if got := names(b.prepared()); got != "storage storage network reap base" {
		t.Errorf("parts: %s", got)
	}
	if _, err := host.ReadFile(b.sled.Host().Files(), "/var/lib/sledctl/ledger.jsonl"); err != nil {
		t.Error(err)
	}
	if good, bad := b.valid(); good != 1 || bad != 0 {
		t.Errorf("%d bases are valid, %d are not", good, bad)
	}
}

func TestASledWithNoPlaceForALedgerIsRefused(t *testing.T) {
	b := newBench(t, sim.Options{M2: -1, U2: -1})
	parts, err := b.bootstrap()
	if err == nil || names(parts) != "storage ledger" {
		t.Errorf("parts: %s, %v", names(parts), err)
	}
}

// Zones of an image need no base: the rest is prepared.
func TestAHostThatMakesZonesOfImagesGetsNoBases(t *testing.T) {
	b := newBench(t, sim.Options{Mode: world.Helios})
	if got := names(b.prepared()); got != "storage storage network reap" {
		t.Errorf("parts: %s", got)
	}
}

// A host on which no base can be made is not half prepared.
func TestAHostThatCannotHaveBasesIsRefusedBeforeAnythingIsDone(t *testing.T) {
	for mode, words := range map[world.Mode]string{
		world.SmartOS: "/usr/lib/brand/sparse /usr/bin/pkg /usr/lib/brand/omicron1",
	} {
		t.Run(string(mode), func(t *testing.T) {
			b := newBench(t, sim.Options{Mode: mode})
			before := b.state()
			parts, err := b.bootstrap()
			if _, missing := errors.AsType[*packaging.MissingError](err); !missing || len(parts) > 0 {
				t.Fatalf("parts: %s, %v", names(parts), err)
			}
			for word := range strings.FieldsSeq(words) {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%s is not named: %v", word, err)
				}
			}
			if d := cmp.Diff(before, b.state()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestADryRunOfAFreshSledChangesNothing(t *testing.T) {
	b := newBench(t, sim.Options{})
	before := b.state()
	env, settings := b.as(b.sled.Host())
	parts, err := settings.Run(t.Context(), env, true)
	if err != nil || len(parts) == 0 || parts[0].Report.Plan.Empty() {
		t.Errorf("parts: %s, %v", names(parts), err)
	}
	if d := cmp.Diff(before, b.state()); d != "" {
		t.Error(d)
	}
	if _, err := env.Ledger(t.Context()); !errors.Is(err, ledger.ErrAbsent) {
		t.Errorf("a ledger: %v", err)
	}
}

func TestOnePoolsBaseKeepsNoOtherFromBeingMade(t *testing.T) {
	b := newBench(t, sim.Options{})
	b.arm(world.Fault{Name: world.FaultFail, Match: "install", Times: 1, Exit: 1, Text: "out of luck"})
	if _, err := b.bootstrap(); err == nil || !strings.Contains(err.Error(), "out of luck") {
		t.Errorf("error: %v", err)
	}
	if good, bad := b.valid(); good != 3 || bad != 0 {
		t.Errorf("%d bases are valid, %d are not", good, bad)
	}
	b.prepared()
	if good, bad := b.valid(); good != 4 || bad != 0 {
		t.Errorf("the second time %d bases are valid, %d are not", good, bad)
	}
}

func TestWhatCannotBePreparedEndsThere(t *testing.T) {
	for command, want := range map[string]string{"zpool list": "storage", "dladm create-etherstub": "storage storage network"} {
		t.Run(command, func(t *testing.T) {
			b := newBench(t, sim.Options{U2: 1})
			b.arm(world.Fault{Name: world.FaultFail, Match: command, Times: 1, Exit: 1, Text: "out of luck"})
			parts, err := b.bootstrap()
			if err == nil || names(parts) != want || !strings.HasPrefix(err.Error(), strings.Fields(want)[len(strings.Fields(want))-1]) {
				t.Errorf("parts: %s, %v", names(parts), err)
			}
			b.prepared()
		})
	}
}

// killed runs a bootstrap that is killed at a point, if it is not 0.
func (b *bench) killed(point int, mode host.CrashMode) *host.Crashing {
	b.Helper()
	dying := host.Crash(b.sled.Host(), point, mode)
	env, settings := b.as(dying)
	_, err := settings.Run(b.Context(), env, false)
	dying.Wait()
	if err != nil && !dying.Crashed() {
		b.Fatalf("at %d: %v", point, err)
	}
	return dying
}

// Wherever it is killed, running it again ends in the same sled.
func TestItIsFinishedWhereverTheRunBeforeWasKilled(t *testing.T) {
	for name, c := range map[string]struct {
		options   sim.Options
		directory string
		stride    int // every so many points of each mode
	}{
		"on M.2s":          {sim.Options{M2: 2, U2: 1}, "", 1},
		"on the root pool": {sim.Options{M2: -1, U2: -1}, "/var/lib/sledctl", 3}, // what differs is but the ledger's place
	} {
		if testing.Short() {
			c.stride *= 13
		}
		if sledtest.Quick() {
			c.stride *= 4
		}
		fresh := func(t *testing.T) *bench {
			b := newBench(t, c.options)
			b.directory = c.directory
			return b
		}
		whole := fresh(t)
		points := whole.killed(0, host.CrashBefore).Points()
		want := whole.state()
		for mode, how := range []string{"before", "after", "during"} {
			t.Run(name+", killed "+how, func(t *testing.T) {
				t.Parallel()
				cases := 0
				for point := 1 + mode%c.stride; point <= points; point += c.stride {
					cases++
					b := fresh(t)
					b.killed(point, host.CrashMode(mode))
					if _, err := b.bootstrap(); err != nil {
						t.Errorf("at %d: %v", point, err)
						continue
					}
					if d := cmp.Diff(want, b.state()); d != "" {
						t.Errorf("at %d: %s", point, d)
					}
					if open := operation.Open(b.view()); len(open) > 0 {
						t.Errorf("at %d, open: %+v", point, open)
					}
				}
				t.Logf("%d cases", cases)
			})
		}
	}
}

func TestPartsAreToldBeforeTheyBegin(t *testing.T) {
	b := newBench(t, sim.Options{U2: 1})
	env, settings := b.as(b.sled.Host())
	var told []string
	settings.Reread = nil // it would give others
	settings.Begin = func(part string) { told = append(told, part) }
	if _, err := settings.Run(t.Context(), env, false); err != nil {
		t.Fatal(err)
	}
	if want := []string{"storage", "ledger", "storage", "network", "reap", "base zones"}; !slices.Equal(told, want) {
		t.Errorf("%q", told)
	}
}

// meddling is a host on which somebody else does something once, behind a
// listing of its own.
type meddling struct {
	host.Host
	behind string
	once   *sync.Once
	do     func()
}

func (m meddling) Run(ctx context.Context, c host.Command) (host.Result, error) {
	r, err := m.Host.Run(ctx, c)
	if strings.HasPrefix(c.Shell(), m.behind) {
		m.once.Do(m.do)
	}
	return r, err
}

// A part that has something to do looks again under the lock: what was changed since
// the sled was judged is seen.
func TestWhatIsChangedBehindTheFirstLookIsSeen(t *testing.T) {
	b := newBench(t, sim.Options{U2: 1})
	b.prepared()
	before := b.state()
	raw := func(line string) {
		words := strings.Fields(line)
		if r, err := b.sled.Host().Run(t.Context(), host.Command{Program: words[0], Args: words[1:]}); err != nil || r.Exit != 0 {
			t.Errorf("%s: %v %s", line, err, r.Stderr)
		}
	}
	var parent string
	for _, p := range b.pools() {
		if kind, _ := naming.ParsePool(p.Name); kind == naming.ExternalPool {
			parent = p.Name + "/crypt/zone"
		}
	}
	raw("dladm set-linkprop -t -p mtu=1400 gz0")
	looked := false
	env, settings := b.as(meddling{b.sled.Host(), "zfs get", &sync.Once{}, func() { looked = true; raw("zfs set compression=on " + parent) }})
	if _, err := settings.Run(t.Context(), env, false); err != nil || !looked {
		t.Fatalf("%v, looked: %v", err, looked)
	}
	if d := cmp.Diff(before, b.state()); d != "" {
		t.Error(d)
	}
}

func (b *bench) pools() []zfs.Pool {
	b.Helper()
	pools, err := zfs.Pools(b.Context(), b.sled.Host())
	if err != nil {
		b.Fatal(err)
	}
	return pools
}
