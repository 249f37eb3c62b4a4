package disk_test

import (
	"errors"
	"os"
	"path"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/disk"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
	"github.com/sledctl/sledctl/test/hosttest"
)

// The driver on the simulated sled, which knows nothing of this package.

func simulated(t *testing.T, o sim.Options) *sim.Sled {
	t.Helper()
	s := sim.New(o, hosttest.Files)
	t.Cleanup(s.Close)
	return s
}

func look(t *testing.T, s *sim.Sled) []disk.Disk {
	t.Helper()
	disks, err := disk.Look(t.Context(), s.Host(), disk.Detect{Board: "gimlet"})
	if err != nil {
		t.Fatal(err)
	}
	return disks
}

func change(t *testing.T, s *sim.Sled, fn func(tx *world.Tx)) {
	t.Helper()
	if err := s.World().Update(t.Context(), func(tx *world.Tx) error { fn(tx); return nil }); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, s *sim.Sled, line string) {
	t.Helper()
	words := strings.Fields(line)
	r, err := s.Host().Run(t.Context(), host.Command{Program: words[0], Args: words[1:]})
	if err != nil || r.Exit != 0 {
		t.Fatalf("%s: %v, exit %d: %s", line, err, r.Exit, r.Stderr)
	}
}

func TestDisksOfTheSimulatedSled(t *testing.T) {
	for _, mode := range []world.Mode{world.Helios, world.OmniOS} {
		s := simulated(t, sim.Options{Mode: mode})
		disks, err := disk.Look(t.Context(), s.Host(), disk.Detect{})
		if mode != world.Helios {
			if !errors.Is(err, disk.ErrNoSlots) || len(disks) > 0 {
				t.Errorf("%s: %v, %v", mode, disks, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var want []disk.Disk
		change(t, s, func(tx *world.Tx) {
			for i, d := range tx.State.Disks {
				device := "/dev/dsk/" + d.Name
				w := disk.Disk{
					Name: d.Name, Kind: disk.Kind(d.Kind), Slot: d.Slot, Identity: disk.Identity{Vendor: d.Vendor, Model: d.Model, Serial: d.Serial},
					Size: d.Size / 4096 * 4096, Device: device, PoolDevice: device, Boot: i == 0,
				}
				if d.Kind == "m2" {
					for n := range 6 {
						w.PoolDevice = device + "s" + string(rune('0'+n))
						w.Partitions = append(w.Partitions, w.PoolDevice)
					}
				}
				want = append(want, w)
			}
		})
		if diff := cmp.Diff(want, disks); diff != "" || len(disks) != 6 {
			t.Errorf("%d disks: %s", len(disks), diff)
		}
	}
}

func TestADiskThatIsPulledIsNotListed(t *testing.T) {
	s := simulated(t, sim.Options{})
	before := look(t, s)
	change(t, s, func(tx *world.Tx) { zfs.LoseDisk(tx, before[3].Name) })
	if diff := cmp.Diff(append(before[:3:3], before[4:]...), look(t, s)); diff != "" {
		t.Error(diff)
	}
	disks, err := disk.Look(t.Context(), s.Host(), disk.Devices{{Kind: disk.U2, Path: before[3].Device}, {Kind: disk.U2, Path: before[4].Device}})
	if err != nil || len(disks) != 2 || !disks[0].Absent || disks[1].Absent || disks[1].Identity != before[4].Identity {
		t.Errorf("%+v, %v", disks, err)
	}
}

// A configured M.2 may be one of a sled's, with six partitions, or any disk.
func TestAConfiguredM2IsTakenAsItIs(t *testing.T) {
	s := simulated(t, sim.Options{Blank: true})
	all := look(t, s)
	m2, u2 := all[0], all[2]
	disks, err := disk.Look(t.Context(), s.Host(), disk.Devices{{Kind: disk.M2, Path: m2.Device}, {Kind: disk.M2, Path: u2.Device}})
	if err != nil || len(disks) != 2 {
		t.Fatal(disks, err)
	}
	if disks[1].Device == m2.Device {
		disks[0], disks[1] = disks[1], disks[0]
	}
	if diff := cmp.Diff([]string{m2.PoolDevice, u2.Device}, []string{disks[0].PoolDevice, disks[1].PoolDevice}); diff != "" {
		t.Error(diff)
	}
	if len(disks[0].Partitions) != 6 || disks[1].Partitions != nil {
		t.Errorf("%+v", disks)
	}
	for _, d := range disks {
		c, err := disk.Probe(t.Context(), s.Host(), d, nil)
		if err != nil || c.State != disk.Blank {
			t.Errorf("%s: %+v, %v", d.Name, c, err)
		}
		run(t, s, "zpool create p"+d.Name+" "+c.Device)
		if c, err = disk.Probe(t.Context(), s.Host(), d, nil); err != nil || c.Pool.Name != "p"+d.Name {
			t.Errorf("%s: %+v, %v", d.Name, c, err)
		}
	}
}

func TestContentsOfTheSimulatedDisks(t *testing.T) {
	s := simulated(t, sim.Options{})
	for _, d := range look(t, s) {
		c, err := disk.Probe(t.Context(), s.Host(), d, nil)
		prefix := map[disk.Kind]string{disk.M2: "oxi_", disk.U2: "oxp_"}[d.Kind]
		if err != nil || c.State != disk.HasPool || !strings.HasPrefix(c.Pool.Name, prefix) || c.Pool.GUID == "" {
			t.Errorf("%s: %+v, %v", d.Name, c, err)
		}
		if want := map[disk.Kind]string{disk.M2: d.Device + "s5", disk.U2: d.Device + "s0"}[d.Kind]; c.Device != want {
			t.Errorf("%s: its pool is on %s, not %s", d.Name, c.Device, want)
		}
	}
	blank := simulated(t, sim.Options{Blank: true})
	for _, d := range look(t, blank) {
		c, err := disk.Probe(t.Context(), blank.Host(), d, nil)
		if want := (disk.Content{State: disk.Blank, Device: d.PoolDevice}); err != nil || !cmp.Equal(want, c) {
			t.Errorf("%s: %+v, %v", d.Name, c, err)
		}
		run(t, blank, "zpool create p"+d.Name+" "+c.Device)
		c, err = disk.Probe(t.Context(), blank.Host(), d, nil)
		if err != nil || c.State != disk.HasPool || c.Pool.Name != "p"+d.Name {
			t.Errorf("%s, with a pool: %+v, %v", d.Name, c, err)
		}
	}
}

// A pool that was destroyed leaves a disk with a partition table and nothing in
// its first partition; one that does not answer is neither that nor blank.
func TestADiskThatFailsIsNeverBlank(t *testing.T) {
	s := simulated(t, sim.Options{})
	d := look(t, s)[2]
	probe := func() (disk.Content, error) { return disk.Probe(t.Context(), s.Host(), d, nil) }
	fail := func(failing bool) {
		change(t, s, func(tx *world.Tx) {
			for _, w := range tx.State.Disks {
				if w.Name == d.Name {
					w.Failing = failing
				}
			}
		})
	}
	c, err := probe()
	if err != nil {
		t.Fatal(err)
	}
	fail(true)
	if got, err := probe(); err == nil {
		t.Errorf("while its pool is imported, and nobody says so: %+v", got)
	}
	imported := []disk.Pool{{Name: c.Pool.Name, GUID: c.Pool.GUID, Imported: true, Devices: []string{path.Base(d.Device)}}}
	if got, err := disk.Probe(t.Context(), s.Host(), d, imported); err != nil || got.State != disk.HasPool {
		t.Errorf("while its pool is imported: %+v, %v", got, err)
	}
	fail(false)
	run(t, s, "zpool export "+c.Pool.Name)
	fail(true)
	if got, err := probe(); err == nil {
		t.Errorf("while its pool is exported: %+v", got)
	}
	fail(false)
	if got, err := probe(); err != nil || got.Pool.GUID != c.Pool.GUID {
		t.Errorf("when it answers again: %+v, %v", got, err)
	}
	change(t, s, func(tx *world.Tx) { zfs.LoseDisk(tx, d.Name) })
	if got, err := probe(); err == nil {
		t.Errorf("when it is pulled: %+v", got)
	}
}

func TestContentsOfSimulatedFiles(t *testing.T) {
	s := simulated(t, sim.Options{})
	files := s.Host().Files()
	const name = "/var/tmp/u2_0.vdev"
	if err := host.MkdirAll(files, "/var/tmp", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := host.WriteFile(files, name, make([]byte, 64<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	disks, err := disk.Look(t.Context(), s.Host(), disk.Vdevs{Names: []string{"u2_0.vdev"}})
	if err != nil || len(disks) != 1 {
		t.Fatal(disks, err)
	}
	probe := func(want disk.State) disk.Content {
		t.Helper()
		c, err := disk.Probe(t.Context(), s.Host(), disks[0], nil)
		if err != nil || c.State != want || c.Device != name {
			t.Errorf("%+v, %v, want %s", c, err, want)
		}
		return c
	}
	probe(disk.Blank)
	run(t, s, "zpool create -o ashift=12 oxp_1 "+name)
	if c := probe(disk.HasPool); c.Pool.Name != "oxp_1" {
		t.Errorf("%+v", c)
	}
	run(t, s, "zpool destroy oxp_1")
	probe(disk.Other) // its label is still there: zpool import -D would find it
	f, err := files.Open(name, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if c, err := disk.Probe(t.Context(), s.Host(), disks[0], nil); err == nil {
		t.Errorf("an empty file: %+v", c)
	} else if errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
}

// An M.2 that somebody bought has no partitions; one from the factory has. What
// has none is neither blank nor readable: it is told what it lacks.
func TestAnM2WithoutPartitionsSaysSo(t *testing.T) {
	s := simulated(t, sim.Options{Blank: true})
	d := look(t, s)[0]
	change(t, s, func(tx *world.Tx) {
		if err := zfs.ReplaceDisk(tx, d.Name); err != nil {
			t.Error(err)
		}
	})
	if c, err := disk.Probe(t.Context(), s.Host(), d, nil); d.Kind != disk.M2 || err != nil || c.State != disk.Blank {
		t.Errorf("from the factory: %+v, %v", c, err)
	}
	change(t, s, func(tx *world.Tx) { zfs.FindDisk(tx, d.Name).Layout = "" })
	_, err := disk.Probe(t.Context(), s.Host(), d, nil)
	if lacks, ok := errors.AsType[*disk.PartitionError](err); !ok || !strings.Contains(lacks.Error(), "disk "+d.Name+" has no partition "+d.Name+"s5") {
		t.Errorf("without partitions: %v", err)
	}
}
