package boot_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/sim/world/network"
	"github.com/sledctl/sledctl/sim/world/zfs"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// shown is a copy of a sled's state.
func shown(t *testing.T, w *world.World) *world.State {
	t.Helper()
	var data []byte
	var version uint64
	err := w.View(t.Context(), func(tx *world.Tx) (err error) {
		version = tx.State.Version
		tx.State.DecodeAll()
		data, err = json.Marshal(tx.State)
		return err
	})
	s := &world.State{}
	if err == nil {
		err = json.Unmarshal(data, s)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Version = version
	return s
}

// difference is that of two states; empty: there is none.
func difference(a, b *world.State) string {
	return cmp.Diff(a, b, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(world.State{}))
}

func opened(t *testing.T, dir string) *world.World {
	t.Helper()
	w, err := boot.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return w.Handle(world.Handlers{})
}

func changed(t *testing.T, w *world.World, change func(*world.Tx)) {
	t.Helper()
	if err := w.Update(t.Context(), func(tx *world.Tx) error { change(tx); return nil }); err != nil {
		t.Fatal(err)
	}
}

// A process that is killed while it adds to a sled's file leaves a part of a transaction:
// it does not count, and the next change takes its place, for those too who had read
// the file before.
func TestATornTransactionDoesNotCount(t *testing.T) {
	dir := t.TempDir()
	if _, err := boot.Init(dir, boot.Options{}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "world.json")
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	was := shown(t, opened(t, dir))
	changed(t, opened(t, dir), func(tx *world.Tx) {
		tx.Arm(world.Fault{Name: "fail", Match: "zfs"})
		if err := network.CreateVNIC(tx, network.VNIC{Name: "vnic0", Over: "net0", Temporary: true}); err != nil {
			t.Fatal(err)
		}
	})
	after, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(after), string(before)) {
		t.Fatalf("it was not added behind what was there: %v", err)
	}
	step := 1
	if testing.Short() {
		step = 13
	}
	for cut := len(before); cut < len(after); cut += step {
		if err := os.WriteFile(file, after[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		reader := opened(t, dir)
		if diff := difference(was, shown(t, reader)); diff != "" {
			t.Fatalf("%d bytes of a transaction count: %s", cut-len(before), diff)
		}
		if cut > len(before)+3 && cut < len(after)-12 && cut%16 > 0 {
			continue
		}
		changed(t, opened(t, dir), func(tx *world.Tx) { tx.Count("x") })
		want := *was
		want.Version++
		want.Counters = map[string]uint64{"x": 1}
		for name, n := range was.Counters {
			want.Counters[name] = n
		}
		for who, w := range map[string]*world.World{"had read it": reader, "opens it": opened(t, dir)} {
			if diff := difference(&want, shown(t, w)); diff != "" {
				t.Fatalf("after %d bytes of a transaction, one who %s: %s", cut-len(before), who, diff)
			}
		}
	}
}

// A sled of an older version opens as it is, is not written by who only looks, and
// has the new format from the first change on.
func TestASledOfTheOldFormatIsTakenOver(t *testing.T) {
	dir := t.TempDir()
	w, err := boot.Init(dir, boot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	changed(t, w, func(tx *world.Tx) {
		if _, err := zones.AddZone(tx, "z1", world.Config{Zonepath: "/zones/z1"}); err != nil {
			t.Fatal(err)
		}
		tx.State.Due = []*world.Event{{At: tx.Now.Add(time.Hour), Kind: "k"}}
	})
	was := shown(t, w)
	old := *was
	old.Format = 1
	data, err := json.Marshal(old)
	file := filepath.Join(dir, "world.json")
	if err == nil {
		err = os.WriteFile(file, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	reader, writer := opened(t, dir), opened(t, dir)
	changed(t, writer, func(*world.Tx) {})
	if now, err := os.ReadFile(file); err != nil || string(now) != string(data) {
		t.Errorf("a transaction that changed nothing has written: %v", err)
	}
	for _, w := range []*world.World{reader, writer, opened(t, dir)} {
		if diff := difference(was, shown(t, w)); diff != "" {
			t.Error(diff)
		}
	}
	changed(t, writer, func(tx *world.Tx) { tx.FindZone("z1").UUID = "u"; tx.Count("x") })
	if now, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(now), "{\"format\":2}\n") {
		t.Errorf("the change is not in the new format: %v", err)
	}
	was.Zones[0].UUID, was.Counters["x"], was.Version = "u", 1, was.Version+1
	for _, w := range []*world.World{reader, writer, opened(t, dir)} {
		if diff := difference(was, shown(t, w)); diff != "" {
			t.Error(diff)
		}
	}
}

// Two who write in turn, one who looks now and then and one who opens the sled see
// the same, whatever was changed, also across the files that replace one that has
// grown.
func TestAllWhoShareASledSeeTheSame(t *testing.T) {
	dir := t.TempDir()
	if _, err := boot.Init(dir, boot.Options{}); err != nil {
		t.Fatal(err)
	}
	all := []*world.World{opened(t, dir), opened(t, dir), opened(t, dir)}
	draw := rand.New(rand.NewPCG(1, 2))
	file := filepath.Join(dir, "world.json")
	files, last := 0, os.FileInfo(nil)
	changes := 1500
	if testing.Short() {
		changes = 1200
	}
	for n := range changes {
		w := all[draw.IntN(2)]
		changed(t, w, func(tx *world.Tx) { somehow(tx, draw, n) })
		now, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if last == nil || !os.SameFile(last, now) {
			files++
		}
		if last = now; now.Size() > 400<<10 {
			t.Fatalf("the file has %d bytes", now.Size())
		}
		if n%23 > 0 {
			continue
		}
		want := shown(t, w)
		for i, w := range append(slices.Clone(all), opened(t, dir)) {
			if diff := difference(want, shown(t, w)); diff != "" {
				t.Fatalf("after %d changes, number %d: %s", n+1, i, diff)
			}
		}
	}
	if files < 3 {
		t.Errorf("%d files: none has replaced another", files)
	}
}

// somehow makes one of the changes that there are.
func somehow(tx *world.Tx, draw *rand.Rand, n int) {
	s := tx.State
	name := fmt.Sprintf("z%d", draw.IntN(20))
	switch draw.IntN(12) {
	case 0, 1:
		if tx.FindZone(name) == nil {
			_, _ = zones.AddZone(tx, name, world.Config{Brand: strings.Repeat("b", draw.IntN(500)), Zonepath: "/zones/" + name})
		}
	case 2:
		if z := tx.FindZone(name); z != nil {
			_ = zones.RemoveZone(tx, z)
		}
	case 3:
		if z := tx.FindZone(name); z != nil && tx.FindZone("r"+name) == nil {
			_ = zones.RenameZone(tx, z, "r"+name)
		}
	case 4:
		slices.Reverse(s.Links)
		_ = network.CreateVNIC(tx, network.VNIC{Name: fmt.Sprintf("vnic%d", n), Over: "net0", Temporary: true})
	case 5:
		if i := draw.IntN(len(s.Links)); s.Links[i].Class == "vnic" {
			_ = network.DeleteLink(tx, s.Links[i])
		}
	case 6:
		_ = zfs.CreateFilesystem(tx, fmt.Sprintf("rpool/d %d", draw.IntN(30)), map[string]string{"mountpoint": "none", "x:y": strings.Repeat("v", 900)})
	case 7:
		if d := s.Datasets[fmt.Sprintf("rpool/d %d", draw.IntN(30))]; d != nil {
			tx.TouchDataset(d.Name)
			delete(s.Datasets, d.Name)
		}
	case 8:
		s.Processes = append(s.Processes, &world.Process{PID: n, Zone: name})
		tx.Schedule(time.Hour+time.Duration(draw.IntN(3))*time.Minute, "k", name, fmt.Sprint(n))
	case 9:
		if len(s.Processes) > 0 {
			i := draw.IntN(len(s.Processes))
			tx.TouchProcess(s.Processes[i])
			s.Processes[i].OSPID++
			s.Processes = slices.Delete(s.Processes, i, i+1)
		}
		tx.Cancel("k", name, "")
	case 10:
		s.Disks[draw.IntN(len(s.Disks))].Failing = draw.IntN(2) == 0
		tx.TouchStack(name)
		s.Stacks[name] = &world.Stack{}
	case 11:
		tx.Arm(world.Fault{Name: "fail", Match: name})
		tx.Count("f")
		tx.TouchStack(name)
		delete(s.Stacks, name)
		tx.TouchAround()
		s.NAPI = map[bool]*world.NAPI{true: {Address: name}}[draw.IntN(2) == 0]
	}
}
