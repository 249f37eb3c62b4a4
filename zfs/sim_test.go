package zfs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/test/steptest"
	"github.com/sledctl/sledctl/zfs"
)

// The driver on the simulated sled, which knows nothing of this package: what
// it refuses, a real sled would.

type step = steptest.Step

type rig struct {
	t      *testing.T
	sled   *sim.Sled
	host   host.Host // traced
	events []host.Event
	// patient rigs compare a step that was repeated, because something was busy,
	// as if it had not been: zfs-fuse calls every dataset busy at first.
	patient bool
}

func simulated(t *testing.T) *rig {
	t.Helper()
	s := sim.New(sim.Options{}, hosttest.Files)
	t.Cleanup(s.Close)
	r := &rig{t: t, sled: s}
	r.host = host.Trace(s.Host(), func(e host.Event) { r.events = append(r.events, e) })
	return r
}

// do does steps that must succeed, and compares what they did with what they
// said they would.
func (r *rig) do(steps ...step) {
	r.t.Helper()
	for _, s := range steps {
		r.events = nil
		if err := s.Do(r.t.Context(), r.host); err != nil {
			r.t.Fatalf("%s: %v", s.Verb(), err)
		}
		if diff := cmp.Diff(s.Explain(), r.changes()); diff != "" {
			r.t.Errorf("%s does not do what it explains: %s", s.Verb(), diff)
		}
	}
}

// changes are the lines that changed something since the last step.
func (r *rig) changes() []host.Line {
	var lines []host.Line
	for _, e := range r.events {
		if e.Line.Mutates() && !(r.patient && slices.Contains(lines, e.Line)) {
			lines = append(lines, e.Line)
		}
	}
	return lines
}

func (r *rig) get(name string, user ...string) zfs.Dataset {
	r.t.Helper()
	d, err := zfs.Get(r.t.Context(), r.host, name, user...)
	if err != nil {
		r.t.Fatal(err)
	}
	return d
}

func (r *rig) write(name, content string) {
	r.t.Helper()
	f, err := r.host.Files().Open(name, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := f.Write([]byte(content)); err != nil {
		r.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		r.t.Fatal(err)
	}
}

// run runs a command for which there is no step.
func (r *rig) run(program string, args ...string) {
	r.t.Helper()
	got, err := r.host.Run(r.t.Context(), host.Command{Program: program, Args: args})
	if err != nil || got.Exit != 0 {
		r.t.Fatalf("%s %q: %v, exit %d: %s", program, args, err, got.Exit, got.Stderr)
	}
}

// look is the sled as it is, without counters, times and what is drawn again.
func (r *rig) look() string {
	r.t.Helper()
	b, err := sim.Comparable(r.t.Context(), r.sled.World())
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

// lifecycle is what sledctl does with the zonepath's dataset of an instance, on
// any host that has a pool.
func lifecycle(r *rig, pool, mountpoint string) {
	zones, base := pool+"/sledctl-test", pool+"/sledctl-test/base"
	place := path.Join(mountpoint, "base")
	r.do(
		zfs.Create{Dataset: zones, Properties: []zfs.Property{{Name: "mountpoint", Value: mountpoint}}},
		zfs.Create{
			Dataset: base, Mountpoint: place, Mode: 0o700,
			Properties: []zfs.Property{{Name: "sledctl:base", Value: "unfinished"}},
		},
	)
	r.write(path.Join(place, "etc"), "x")
	r.do(
		zfs.Set{Dataset: base, Name: "sledctl:base", Value: "it is ready = 1", Old: "unfinished"},
		zfs.Set{Dataset: base, Name: "quota", Value: "1073741824"},
		zfs.Snapshot{Name: base + "@s", Properties: []zfs.Property{{Name: "sledctl:instance", Value: "web1"}}},
		zfs.Unmount{Dataset: base},
		zfs.Mount{Dataset: base},
	)

	all, err := zfs.List(r.t.Context(), r.host, []string{zones}, []string{"sledctl:base", "sledctl:instance"})
	if err != nil || len(all) != 3 {
		r.t.Fatalf("%v, %v", all, err)
	}
	for i, want := range []zfs.Dataset{
		{Name: zones, Type: zfs.TypeFilesystem, Mountpoint: mountpoint, Mounted: true, Canmount: "on"},
		{
			Name: base, Type: zfs.TypeFilesystem, Mountpoint: place, Mounted: true, Canmount: "on", Quota: 1 << 30,
			User: map[string]zfs.Value{"sledctl:base": {Value: "it is ready = 1", Source: zfs.Local}},
		},
		{
			Name: base + "@s", Type: zfs.TypeSnapshot,
			User: map[string]zfs.Value{
				"sledctl:base":     {Value: "it is ready = 1", Source: "inherited from " + base},
				"sledctl:instance": {Value: "web1", Source: zfs.Local},
			},
		},
	} {
		got := all[i]
		if got.GUID == "" || got.GUID == "0" || got.Type == zfs.TypeFilesystem && got.Available == 0 {
			r.t.Errorf("%+v", got)
		}
		got.GUID, got.Used, got.Available, got.Compression = "", 0, 0, ""
		if diff := cmp.Diff(want, got); diff != "" {
			r.t.Error(diff)
		}
	}
	info, err := r.host.Files().Stat(place)
	if err != nil || info.Mode.Perm() != 0o700 {
		r.t.Errorf("mode %v, %v", info.Mode, err)
	}

	r.do(
		zfs.Inherit{Dataset: base, Name: "sledctl:base"},
		zfs.DestroySnapshot{Name: all[2].Name, GUID: all[2].GUID},
		zfs.Destroy{Dataset: base, GUID: all[1].GUID},
		zfs.Destroy{Dataset: zones, GUID: all[0].GUID},
	)
	if _, err := zfs.Get(r.t.Context(), r.host, base); !errors.Is(err, host.ErrNotFound) {
		r.t.Errorf("after all: %v", err)
	}
}

func TestLifeOfADataset(t *testing.T) {
	r := simulated(t)
	before := r.look()
	lifecycle(r, "rpool", "/zone")
	if diff := cmp.Diff(before, r.look()); diff != "" {
		t.Errorf("left behind: %s", diff)
	}
}

func TestTheModeOfADatasetThatIsThereIsSet(t *testing.T) {
	r := simulated(t)
	r.do(
		zfs.Create{Dataset: "rpool/z", Properties: []zfs.Property{{Name: "mountpoint", Value: "/z"}}},
		zfs.SetMode{Dataset: "rpool/z", Mountpoint: "/z", Mode: 0o700},
	)
	if info, err := r.host.Files().Stat("/z"); err != nil || info.Mode.Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode, err)
	}
	r.do(zfs.Unmount{Dataset: "rpool/z"})
	err := zfs.SetMode{Dataset: "rpool/z", Mountpoint: "/z", Mode: 0o700}.Do(t.Context(), r.host)
	if _, ok := errors.AsType[*zfs.MountError](err); !ok {
		t.Errorf("not mounted: %v", err)
	}
}

func TestPoolsOfTheSimulatedSled(t *testing.T) {
	r := simulated(t)
	pools, err := zfs.Pools(t.Context(), r.host)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, p := range pools {
		kind, _, _ := strings.Cut(p.Name, "_")
		kinds[kind]++
		if p.Health != "ONLINE" || p.Size == 0 || p.Size != p.Allocated+p.Free {
			t.Errorf("%+v", p)
		}
	}
	if diff := cmp.Diff(map[string]int{"rpool": 1, "oxi": 2, "oxp": 4}, kinds); diff != "" {
		t.Error(diff)
	}
}

func TestRefusalsOfTheSimulatedSled(t *testing.T) {
	r := simulated(t)
	r.do(
		zfs.Create{Dataset: "rpool/a", Properties: []zfs.Property{{Name: "mountpoint", Value: "/a"}}},
		zfs.Create{Dataset: "rpool/a/b"},
		zfs.Create{Dataset: "rpool/off", Properties: []zfs.Property{{Name: "canmount", Value: "off"}}},
		zfs.Create{Dataset: "rpool/origin"},
		zfs.Snapshot{Name: "rpool/origin@s"},
	)
	r.run("zfs", "clone", "rpool/origin@s", "rpool/clone")
	r.run("zfs", "create", "-V", "8192", "-s", "rpool/volume")
	before := r.look()
	for _, c := range []struct {
		step step
		want error
	}{
		{zfs.Create{Dataset: "rpool/a"}, host.ErrExists},
		{zfs.Create{Dataset: "rpool/no/a"}, host.ErrRefused},
		{zfs.Create{Dataset: "no/a"}, host.ErrRefused},
		{zfs.Create{Dataset: "rpool/c", Properties: []zfs.Property{{Name: "compression", Value: "much"}}}, host.ErrRefused},
		{zfs.Create{Dataset: "rpool/c", Mountpoint: "/elsewhere"}, host.ErrState},
		{zfs.Set{Dataset: "rpool/a", Name: "nonsense", Value: "1"}, host.ErrRefused},
		{zfs.Set{Dataset: "rpool/a", Name: "used", Value: "1"}, host.ErrRefused},
		{zfs.Set{Dataset: "rpool/no", Name: "x:y", Value: "1"}, host.ErrNotFound},
		{zfs.Inherit{Dataset: "rpool/no", Name: "x:y"}, host.ErrNotFound},
		{zfs.Mount{Dataset: "rpool/a"}, host.ErrState},
		{zfs.Mount{Dataset: "rpool/off"}, host.ErrState},
		{zfs.Mount{Dataset: "rpool/no"}, host.ErrNotFound},
		{zfs.Mount{Dataset: "rpool/volume"}, host.ErrRefused},
		{zfs.Unmount{Dataset: "rpool/off"}, host.ErrState},
		{zfs.Snapshot{Name: "rpool/origin@s"}, host.ErrExists},
		{zfs.Snapshot{Name: "rpool/no@s"}, host.ErrNotFound},
		{zfs.Destroy{Dataset: "rpool/no"}, host.ErrNotFound},
		{zfs.Destroy{Dataset: "rpool/a"}, host.ErrRefused},
		{zfs.Destroy{Dataset: "rpool/origin"}, host.ErrRefused},
		{zfs.Destroy{Dataset: "rpool/a/b", GUID: "1"}, host.ErrRefused},
		{zfs.DestroySnapshot{Name: "rpool/origin@s"}, host.ErrRefused},
		{zfs.DestroySnapshot{Name: "rpool/origin@no"}, host.ErrNotFound},
		{zfs.DestroySnapshot{Name: "rpool/origin@s", GUID: "1"}, host.ErrRefused},
	} {
		if err := c.step.Do(t.Context(), r.host); !errors.Is(err, c.want) {
			t.Errorf("%s of %+v: %v, want %v", c.step.Verb(), c.step, err, c.want)
		}
	}
	if _, err := zfs.List(t.Context(), r.host, []string{"rpool", "no"}, nil); !errors.Is(err, host.ErrNotFound) {
		t.Errorf("a listing of a missing pool: %v", err)
	}
	if diff := cmp.Diff(before, r.look()); diff != "" {
		t.Errorf("the refusals changed something: %s", diff)
	}
}

func TestCreateOverADirectoryThatIsNotEmptyLeavesNothing(t *testing.T) {
	r := simulated(t)
	if err := host.MkdirAll(r.host.Files(), "/zone/a", 0o755); err != nil {
		t.Fatal(err)
	}
	r.write("/zone/a/file", "x")
	before := r.look()
	err := zfs.Create{Dataset: "rpool/a", Properties: []zfs.Property{{Name: "mountpoint", Value: "/zone/a"}}}.Do(t.Context(), r.host)
	if !errors.Is(err, host.ErrState) || !strings.Contains(err.Error(), "directory is not empty") {
		t.Error(err)
	}
	if diff := cmp.Diff(before, r.look()); diff != "" {
		t.Errorf("left behind: %s", diff)
	}
}

func TestVolumesAndWhatIsNotMountedAreDestroyed(t *testing.T) {
	r := simulated(t)
	before := r.look()
	r.run("zfs", "create", "-V", "8192", "-s", "rpool/volume")
	r.do(
		zfs.Create{Dataset: "rpool/off", Properties: []zfs.Property{{Name: "canmount", Value: "off"}}},
		zfs.Create{Dataset: "rpool/legacy", Properties: []zfs.Property{{Name: "mountpoint", Value: "legacy"}}},
	)
	r.do(
		zfs.Destroy{Dataset: "rpool/volume", GUID: r.get("rpool/volume").GUID, Type: zfs.TypeVolume},
		zfs.Destroy{Dataset: "rpool/off", GUID: r.get("rpool/off").GUID},
		zfs.Destroy{Dataset: "rpool/legacy", GUID: r.get("rpool/legacy").GUID},
	)
	if diff := cmp.Diff(before, r.look()); diff != "" {
		t.Errorf("left behind: %s", diff)
	}
}

func TestDestroyWaitsForWhatIsBusyForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := simulated(t)
		r.do(zfs.Create{Dataset: "rpool/a"})
		err := r.sled.World().Update(t.Context(), func(tx *world.Tx) error {
			tx.Arm(world.Fault{Name: world.FaultBusy, Match: "zfs destroy rpool/a", Times: 3})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := (zfs.Destroy{Dataset: "rpool/a"}).Do(ctx, r.host); err != nil {
			t.Error(err)
		}
		r.sled.Close()
	})
}

func TestSnapshotsOfOneNameGoTogether(t *testing.T) {
	r := simulated(t)
	r.do(zfs.Create{Dataset: "rpool/a"}, zfs.Create{Dataset: "rpool/a/b"})
	before := r.look()
	gone := zfs.DestroySnapshots{Dataset: "rpool/a", Snapshot: "s"}

	r.run("zfs", "snapshot", "-r", "rpool/a@s")
	r.run("zfs", "snapshot", "rpool/a@s2")
	r.run("zfs", "clone", "rpool/a/b@s", "rpool/clone")
	if err := gone.Do(t.Context(), r.host); !errors.Is(err, host.ErrRefused) || r.get("rpool/a@s").Type != zfs.TypeSnapshot {
		t.Errorf("one with a clone: %v", err)
	}
	r.run("zfs", "destroy", "rpool/clone")
	r.do(gone)
	if err := gone.Do(t.Context(), r.host); !errors.Is(err, host.ErrNotFound) {
		t.Errorf("none: %v", err)
	}
	if err := (zfs.DestroySnapshots{Dataset: "rpool/no", Snapshot: "s"}).Do(t.Context(), r.host); !errors.Is(err, host.ErrNotFound) {
		t.Errorf("no dataset: %v", err)
	}
	r.do(zfs.DestroySnapshot{Name: "rpool/a@s2"})
	if diff := cmp.Diff(before, r.look()); diff != "" {
		t.Errorf("left behind: %s", diff)
	}
}

// TestACrashAnywhereIsFinishedByTheNext kills the driver at each point of a
// creation and a removal; the next process looks, and can continue.
func TestACrashAnywhereIsFinishedByTheNext(t *testing.T) {
	create := zfs.Create{Dataset: "rpool/a", Mountpoint: "/rpool/a", Mode: 0o700}
	for _, mode := range []host.CrashMode{host.CrashBefore, host.CrashAfter, host.CrashDuring} {
		for point := 1; ; point++ {
			r := simulated(t)
			before := r.look()
			crashing := host.Crash(r.host, point, mode)
			err := create.Do(t.Context(), crashing)
			if err == nil {
				err = zfs.Destroy{Dataset: "rpool/a"}.Do(t.Context(), crashing)
			}
			crashing.Wait()
			if !crashing.Crashed() {
				if err != nil || point != 5 { // create, chmod, unmount, destroy
					t.Errorf("%d points, %v", point-1, err)
				}
				break
			}
			if !errors.Is(err, host.ErrCrashed) {
				t.Errorf("crash %d at %d: %v", mode, point, err)
			}
			d, err := zfs.Get(t.Context(), r.host, "rpool/a")
			if err == nil {
				err = zfs.Destroy{Dataset: "rpool/a", GUID: d.GUID}.Do(t.Context(), r.host)
			} else if errors.Is(err, host.ErrNotFound) {
				err = nil
			}
			if err != nil {
				t.Errorf("after crash %d at %d: %v", mode, point, err)
			}
			if diff := cmp.Diff(before, r.look()); diff != "" {
				t.Errorf("after crash %d at %d: %s", mode, point, diff)
			}
		}
	}
}

func TestListingOfManyDatasets(t *testing.T) {
	r := simulated(t)
	r.do(zfs.Create{Dataset: "rpool/zone"})
	const n = 200
	for i := range n {
		r.run("zfs", "create", "-o", fmt.Sprintf("sledctl:instance=%d", i), fmt.Sprintf("rpool/zone/z%03d", i))
	}
	all, err := zfs.List(t.Context(), r.host, []string{"rpool/zone"}, []string{"sledctl:instance"})
	if err != nil || len(all) != n+1 {
		t.Fatalf("%d, %v", len(all), err)
	}
	for i, d := range all[1:] {
		if want := fmt.Sprintf("rpool/zone/z%03d", i); d.Name != want || d.User["sledctl:instance"] != (zfs.Value{Value: fmt.Sprint(i), Source: zfs.Local}) {
			t.Errorf("%+v, want %s", d, want)
		}
	}
}
