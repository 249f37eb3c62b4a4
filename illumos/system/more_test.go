package system

import (
	"errors"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/hosttest"
)

func TestADirectoryLiesInTheNearestMount(t *testing.T) {
	all, err := ParseMounts("rpool/ROOT/omnios - / zfs - no \nswap - /tmp tmpfs - no xattr\nrpool/var - /var zfs - no rw\n")
	if err != nil || len(all) != 3 {
		t.Fatalf("%v, %v", all, err)
	}
	for dir, want := range map[string]string{"/": "rpool/ROOT/omnios", "/tmp": "swap", "/tmp/x": "swap", "/tmpx": "rpool/ROOT/omnios", "/var/opt": "rpool/var"} {
		if got, ok := MountOf(all, dir); !ok || got.Special != want {
			t.Errorf("%s: %+v", dir, got)
		}
	}
	if _, ok := MountOf(nil, "/"); ok {
		t.Error("a mount where there is none")
	}
	if _, err := ParseMounts("rpool on /\n"); !errors.Is(err, ErrSyntax) {
		t.Errorf("%v", err)
	}
}

func TestParseSwap(t *testing.T) {
	got, err := ParseSwap("total: 303620k bytes allocated + 63388k reserved = 367008k used, 1054984k available\n")
	if err != nil || got != (Swap{367008 << 10, 1054984 << 10}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, out := range []string{"", "total: 1k used", "= 99999999999999999999k used, 1k available", "= 1k used, 99999999999999999999k available"} {
		if _, err := ParseSwap(out); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %v", out, err)
		}
	}
}

func TestWhatASledHasMountedAndFree(t *testing.T) {
	sled := sim.New(sim.Options{}, hosttest.Files)
	t.Cleanup(sled.Close)
	mounts, err := QueryMounts(t.Context(), host.ReadOnly(sled.Host()))
	root, ok := MountOf(mounts, "/")
	if err != nil || !ok || root != (Mount{"rpool/ROOT/omnios-r151058", "/", "zfs"}) {
		t.Errorf("%+v, %v", root, err)
	}
	if run, _ := MountOf(mounts, "/var/run/sledctl"); run.Type != "tmpfs" {
		t.Errorf("%+v", run)
	}
	swap, err := QuerySwap(t.Context(), host.ReadOnly(sled.Host()))
	if err != nil || swap.Available == 0 {
		t.Errorf("%+v, %v", swap, err)
	}
}
