package zfs

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/host"
)

func TestDestroyUnmountsFirst(t *testing.T) {
	f := newFake(t, tankA())
	if err := (Destroy{Dataset: "tank/a", GUID: "11"}).Do(t.Context(), f); err != nil {
		t.Error(err)
	}
	ranExactly(t, f, "zfs unmount tank/a", "zfs destroy tank/a")
	there(t, f)
}

func TestDestroyOfWhatIsNotMounted(t *testing.T) {
	for _, said := range []string{"not currently mounted", "legacy mountpoint"} {
		d := tankA()
		d.Mounted = false
		f := newFake(t, d).answer("unmount", answer{exit: 1, stderr: "cannot unmount 'tank/a': " + said + "\n"})
		if err := (Destroy{Dataset: "tank/a"}).Do(t.Context(), f); err != nil {
			t.Errorf("%s: %v", said, err)
		}
		there(t, f)
	}
	volume := Dataset{Name: "tank/a", Type: TypeVolume, GUID: "11"}
	f := newFake(t, volume)
	if err := (Destroy{Dataset: "tank/a"}).Do(t.Context(), f); err != nil {
		t.Errorf("a volume: %v", err)
	}
	ranExactly(t, f, "zfs destroy tank/a")
}

// zfs destroy ends a legacy mount itself, which zfs unmount refuses to do; if it
// cannot, there is nothing that could be mounted again.
func TestALegacyMountIsLeftToZFSDestroy(t *testing.T) {
	legacy := tankA()
	legacy.Mountpoint, legacy.Mounted = "legacy", true
	refuses := answer{exit: 1, stderr: "cannot unmount 'tank/a': legacy mountpoint\n"}
	f := newFake(t, legacy).answer("unmount", refuses)
	if err := (Destroy{Dataset: "tank/a"}).Do(t.Context(), f); err != nil {
		t.Errorf("idle: %v", err)
	}
	ranExactly(t, f, "zfs unmount tank/a", "zfs destroy tank/a")

	f = newFake(t, legacy).answer("unmount", refuses).answer("destroy", answer{exit: 1, stderr: "cannot destroy 'tank/a': permission denied\n"})
	if err := (Destroy{Dataset: "tank/a"}).Do(t.Context(), f); err == nil {
		t.Error("refused: no error")
	}
	ranExactly(t, f, "zfs unmount tank/a", "zfs destroy tank/a")
}

func TestDestroyRefusesBeforeItTouches(t *testing.T) {
	child, snapshot := tankA(), tankA()
	child.Name = "tank/a/b"
	snapshot.Name, snapshot.Type = "tank/a@s", TypeSnapshot
	f := newFake(t, tankA())
	err := Destroy{Dataset: "tank/a", GUID: "12"}.Do(t.Context(), f)
	if e, ok := errors.AsType[*OtherError](err); !ok || e.Is != "11" || e.Want != "12" {
		t.Errorf("another dataset: %v", err)
	}
	ranExactly(t, f)

	f = newFake(t, tankA(), child, snapshot)
	err = Destroy{Dataset: "tank/a"}.Do(t.Context(), f)
	if e, ok := errors.AsType[*ChildrenError](err); !ok || len(e.Children) != 2 {
		t.Errorf("a dataset with children: %v", err)
	}
	ranExactly(t, f)

	f = newFake(t)
	if err := (Destroy{Dataset: "tank/a"}).Do(t.Context(), f); !errors.Is(err, host.ErrNotFound) {
		t.Errorf("no dataset: %v", err)
	}
	ranExactly(t, f)

	f = newFake(t, snapshot)
	err = DestroySnapshot{Name: "tank/a@s", GUID: "12"}.Do(t.Context(), f)
	if _, ok := errors.AsType[*OtherError](err); !ok {
		t.Errorf("another snapshot: %v", err)
	}
	ranExactly(t, f)
}

func TestDestroyMountsAgainWhatItCannotDestroy(t *testing.T) {
	f := newFake(t, tankA()).answer("destroy", answer{exit: 1, stderr: "cannot destroy 'tank/a': I/O error\n"})
	if err := (Destroy{Dataset: "tank/a", GUID: "11"}).Do(t.Context(), f); err == nil {
		t.Error("no error")
	}
	ranExactly(t, f, "zfs unmount tank/a", "zfs destroy tank/a", "zfs mount tank/a")
	if !f.datasets[0].Mounted {
		t.Error("it is not mounted")
	}

	f = newFake(t, tankA()).answer("destroy", answer{exit: 1}).answer("mount", answer{exit: 1})
	err := Destroy{Dataset: "tank/a"}.Do(t.Context(), f)
	if _, ok := errors.AsType[*host.LeftoverError](err); !ok {
		t.Errorf("what could not be mounted again is not told: %v", err)
	}

	f = newFake(t, tankA()).answer("unmount", answer{exit: 1, stderr: "cannot unmount '/tank/a': I/O error\n"})
	if err := (Destroy{Dataset: "tank/a"}).Do(t.Context(), f); err == nil {
		t.Error("no error")
	}
	ranExactly(t, f, "zfs unmount tank/a") // still mounted: nothing to put right
}

func busyMount() answer { return answer{exit: 1, stderr: "cannot unmount '/tank/a': Device busy\n"} }

func TestWhatIsBusyIsTriedAgain(t *testing.T) {
	busy := answer{exit: 1, stderr: "cannot destroy 'tank/a': dataset is busy\n"}
	snapshot := Dataset{Name: "tank/a@s", Type: TypeSnapshot, GUID: "12"}
	for name, c := range map[string]struct {
		step doer
		f    func(t *testing.T) *fake
		ran  int
	}{
		"unmount": {Unmount{"tank/a"}, func(t *testing.T) *fake { return newFake(t, tankA()).answer("unmount", busyMount(), busyMount()) }, 3},
		"mount": {
			Mount{"tank/a"},
			func(t *testing.T) *fake {
				return newFake(t, tankA()).answer("mount", answer{exit: 1, stderr: "cannot mount 'tank/a': mountpoint or dataset is busy\n"})
			},
			2,
		},
		"mount, and others do": {
			Mount{"tank/a"},
			func(t *testing.T) *fake {
				return newFake(t, tankA()).answer("mount", answer{exit: 1, stderr: "cannot mount 'tank/a': mountpoint or dataset is busy\n"},
					answer{exit: 1, stderr: "cannot mount 'tank/a': filesystem already mounted\n"})
			},
			2,
		},
		"destroy": {
			Destroy{Dataset: "tank/a"},
			func(t *testing.T) *fake {
				return newFake(t, tankA()).answer("unmount", busyMount()).answer("destroy", busy)
			},
			1 + 2 + 2,
		},
		"destroy snapshot": {
			DestroySnapshot{Name: "tank/a@s"},
			func(t *testing.T) *fake {
				return newFake(t, snapshot).answer("destroy", answer{exit: 1, stderr: "cannot destroy 'tank/a@s': dataset is busy\n"})
			},
			2,
		},
		"destroy snapshots": {
			DestroySnapshots{Dataset: "tank", Snapshot: "s"},
			func(t *testing.T) *fake {
				return newFake(t, snapshot).answer("destroy", answer{exit: 1, stderr: "cannot destroy 'tank/a@s': dataset is busy\n"})
			},
			2,
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := c.f(t)
			if err := c.step.Do(t.Context(), f); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if len(f.ran) != c.ran {
				t.Errorf("%s: %q", name, f.ran)
			}
		})
	}
}

func TestWhatStaysBusyIsLeftAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, tankA())
		for range 100 {
			f.answer("unmount", busyMount())
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		err := Destroy{Dataset: "tank/a"}.Do(ctx, f)
		if !errors.Is(err, host.ErrBusy) || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("took %v", took)
		}
		// 20 ms, 40 ms, … up to a second between the attempts.
		if n := len(f.ran); n < 10 || n > 20 {
			t.Errorf("%d attempts", n)
		}
		if !f.datasets[0].Mounted {
			t.Error("it is no longer mounted")
		}
	})
}

func TestWhatChangesWhileItIsBusy(t *testing.T) {
	replace := func(f *fake) { f.datasets[0].GUID = "99" }
	vanish := func(f *fake) { f.remove("tank/a") }
	left := func(f *fake) {
		f.answer("unmount", answer{exit: 1, stderr: "cannot unmount 'tank/a': not currently mounted\n"})
	}
	change := func(then func(*fake)) answer { a := busyMount(); a.then = then; return a }
	for name, c := range map[string]struct {
		step doer
		then func(*fake)
		good bool
		left int
	}{
		"another takes its name":      {Destroy{Dataset: "tank/a", GUID: "11"}, replace, false, 1},
		"it is destroyed by others":   {Destroy{Dataset: "tank/a", GUID: "11"}, vanish, true, 0},
		"it is unmounted by others":   {Unmount{"tank/a"}, left, true, 1},
		"others unmount, we destroy":  {Destroy{Dataset: "tank/a", GUID: "11"}, left, true, 0},
		"a dataset is created in it":  {Destroy{Dataset: "tank/a"}, func(f *fake) { f.do("create", "tank/a/b") }, false, 2},
		"nothing but that it is free": {Destroy{Dataset: "tank/a"}, nil, true, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(t, tankA()).answer("unmount", change(c.then))
			if err := c.step.Do(t.Context(), f); (err == nil) != c.good {
				t.Errorf("%s: %v", name, err)
			}
			if got := len(f.names()); got != c.left {
				t.Errorf("%s: %d datasets are left", name, got)
			}
		})
	}
}
