package inventory_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/hosttest"
)

// A plain directory among the zones' datasets is reported, and what it holds; a
// dataset that is mounted there is not one.
func TestPlainDirectoriesWhereZonesLie(t *testing.T) {
	s := sim.New(sim.Options{M2: -1, U2: -1}, hosttest.Files)
	t.Cleanup(s.Close)
	h := s.Host()
	for _, argv := range [][]string{
		{"zfs", "create", "-o", "mountpoint=/zone", "rpool/zone"}, {"zfs", "create", "rpool/zone/z1"}, {"zfs", "create", "-o", "mountpoint=/zone/mounted/in/it", "rpool/zone/z2"},
	} {
		if r, err := h.Run(t.Context(), host.Command{Program: argv[0], Args: argv[1:]}); err != nil || r.Exit != 0 {
			t.Fatal(argv, err, string(r.Stderr))
		}
	}
	for _, dir := range []string{"/zone/bare", "/zone/nested/root/etc", "/zone/full/root", "/zone/deep/a/b/c/d/e"} {
		if err := host.MkdirAll(h.Files(), dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"/zone/full/root/file", "/zone/no-directory"} {
		if err := host.WriteFile(h.Files(), name, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	inv := inventory.Look(t.Context(), h, inventory.Want{Parts: []inventory.Part{inventory.Homes}})
	homes, err := inv.Homes()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, home := range homes {
		got[home.Path] = home.Holds
		if home.Inode == 0 {
			t.Errorf("%s has no inode", home.Path)
		}
	}
	want := map[string]string{
		"/zone/bare": "", "/zone/nested": "", "/zone/full": "/zone/full/root/file", "/zone/deep": "/zone/deep/a/b/c/d/e", "/zone/mounted": "/zone/mounted/in/it",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestASledWithoutZonesHasNoPlainDirectories(t *testing.T) {
	s := sim.New(sim.Options{M2: -1, U2: -1}, hosttest.Files)
	t.Cleanup(s.Close)
	inv := inventory.Look(t.Context(), s.Host(), inventory.Want{Parts: []inventory.Part{inventory.Homes, inventory.Pools}})
	if homes, err := inv.Homes(); err != nil || len(homes) != 0 {
		t.Errorf("%v, %v", homes, err)
	}
}

// What lies under a mountpoint is hidden as soon as its dataset is mounted, and
// is no zone's.
func TestDirectoriesUnderAMountpointAreNoHomes(t *testing.T) {
	s := sim.New(sim.Options{M2: -1, U2: -1}, hosttest.Files)
	t.Cleanup(s.Close)
	if err := host.MkdirAll(s.Host().Files(), "/zone/bare", 0o700); err != nil {
		t.Fatal(err)
	}
	inv := inventory.Look(t.Context(), s.Host(), inventory.Want{Parts: []inventory.Part{inventory.Homes}})
	if homes, err := inv.Homes(); err != nil || len(homes) != 0 {
		t.Errorf("%v, %v", homes, err)
	}
}

func TestEntriesOfDirectories(t *testing.T) {
	h := newSled(t).Host()
	if err := host.MkdirAll(h.Files(), "/var/run/x", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := host.WriteFile(h.Files(), "/var/run/x/k", []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	inv := inventory.Look(t.Context(), h, inventory.Want{Parts: []inventory.Part{inventory.Entries}, Directories: []string{"/var/run/x", "/var/run/none"}})
	entries, err := inv.Entries()
	if err != nil || len(entries) != 1 || entries[0].Path != "/var/run/x/k" || entries[0].Size != 3 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestAddressesOfTheGlobalZone(t *testing.T) {
	h := newSled(t).Host()
	for _, argv := range [][]string{{"dladm", "create-vnic", "-t", "-l", "net0", "gz0"}, {"ipadm", "create-addr", "-t", "-T", "static", "-a", "10.0.0.1/24", "gz0/control"}} {
		if r, err := h.Run(t.Context(), host.Command{Program: argv[0], Args: argv[1:]}); err != nil || r.Exit != 0 {
			t.Fatal(argv, err, string(r.Stderr))
		}
	}
	inv := inventory.Look(t.Context(), h, inventory.Want{Parts: []inventory.Part{inventory.Addresses}})
	all, err := inv.Addresses()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if a.Object == "gz0/control" && a.Address.String() == "10.0.0.1/24" {
			return
		}
	}
	t.Errorf("%+v", all)
}
