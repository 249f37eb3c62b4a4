package zfs

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
)

// ranExactly compares the commands that changed something.
func ranExactly(t *testing.T, f *fake, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, f.ran); diff != "" {
		t.Errorf("commands: %s", diff)
	}
}

func there(t *testing.T, f *fake, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, f.names()); diff != "" {
		t.Errorf("datasets: %s", diff)
	}
}

func TestCreateGivesTheMountpointItsMode(t *testing.T) {
	f := newFake(t)
	s := Create{Dataset: "tank/a", Mountpoint: "/tank/a", Mode: 0o700, Properties: []Property{{"x:y", "1"}}}
	if err := s.Do(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	ranExactly(t, f, "zfs create -o x:y=1 tank/a")
	info, err := f.files.Stat("/tank/a")
	if err != nil || info.Mode.Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode, err)
	}
}

func TestCreateThatFailsLeavesNothing(t *testing.T) {
	const notMounted = "cannot mount '/tank/a': directory is not empty\nfilesystem successfully created, but not mounted\n"
	undone := []string{"zfs create tank/a", "zfs unmount tank/a", "zfs destroy tank/a"}
	for name, c := range map[string]struct {
		step Create
		then answer
		want []string // commands
		kind error
	}{
		"created, but not mounted": {
			Create{Dataset: "tank/a"},
			answer{does: true, exit: 1, stderr: notMounted}, undone, nil,
		},
		"the directory in the way is known": {
			Create{Dataset: "tank/a", Mountpoint: "/tank/a"},
			answer{does: true, exit: 1, stderr: notMounted}, undone, host.ErrState,
		},
		"created without output": {
			Create{Dataset: "tank/a"},
			answer{does: true, exit: 255}, undone, nil,
		},
		"mounted elsewhere": {
			Create{Dataset: "tank/a", Mountpoint: "/zone/a"},
			answer{does: true}, undone, host.ErrState,
		},
		"not mounted at all": {
			Create{Dataset: "tank/a", Mountpoint: "/tank/a"},
			answer{does: true, then: func(f *fake) { f.datasets[0].Mounted = false }}, undone, host.ErrState,
		},
		"no directory to give a mode to": {
			Create{Dataset: "tank/a", Mountpoint: "/tank/a", Mode: 0o700},
			answer{does: true, then: func(f *fake) {
				if err := f.files.Remove("/tank/a"); err != nil {
					f.t.Error(err)
				}
			}}, undone, fs.ErrNotExist,
		},
		"nothing was created": {
			Create{Dataset: "tank/a"},
			answer{exit: 1, stderr: "cannot create 'tank/a': parent does not exist\n"}, undone[:1], host.ErrRefused,
		},
		"still running": {
			Create{Dataset: "tank/a"},
			answer{err: host.ErrStillRunning}, undone[:1], host.ErrStillRunning,
		},
	} {
		f := newFake(t).answer("create", c.then)
		err := c.step.Do(t.Context(), f)
		if err == nil || c.kind != nil && !errors.Is(err, c.kind) {
			t.Errorf("%s: %v", name, err)
		}
		ranExactly(t, f, c.want...)
		there(t, f)
	}
}

func TestCreateTakesNothingBackThatIsNotItsOwn(t *testing.T) {
	f := newFake(t, tankA())
	if err := (Create{Dataset: "tank/a"}).Do(t.Context(), f); !errors.Is(err, host.ErrExists) {
		t.Errorf("one that was there: %v", err)
	}
	ranExactly(t, f)

	f = newFake(t).answer("create", answer{does: true, exit: 1, stderr: "cannot create 'tank/a': dataset already exists\n"})
	if err := (Create{Dataset: "tank/a"}).Do(t.Context(), f); !errors.Is(err, host.ErrExists) {
		t.Errorf("one that came meanwhile: %v", err)
	}
	ranExactly(t, f, "zfs create tank/a")
	there(t, f, "tank/a")
}

func TestCreateTakesBackBeyondItsTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := newFake(t).answer("create", answer{does: true, exit: 1, then: func(*fake) { cancel() }})
	err := Create{Dataset: "tank/a"}.Do(ctx, f)
	if _, ok := errors.AsType[*host.CommandError](err); !ok {
		t.Error(err)
	}
	there(t, f)
}

func TestCreateTellsWhatItCouldNotTakeBack(t *testing.T) {
	f := newFake(t).answer("create", answer{does: true, exit: 1, stderr: "first\n"}).
		answer("destroy", answer{exit: 1, stderr: "second\n"})
	err := Create{Dataset: "tank/a"}.Do(t.Context(), f)
	left, ok := errors.AsType[*host.LeftoverError](err)
	if !ok || left.Cause == nil || left.Err == nil {
		t.Fatal(err)
	}
	there(t, f, "tank/a")
}

func TestWithoutAnAnswerNothingIsChanged(t *testing.T) {
	for _, s := range []doer{
		Create{Dataset: "tank/a"}, Destroy{Dataset: "tank/a"}, DestroySnapshot{Name: "tank/a@s"}, Mount{"tank/a"}, Unmount{"tank/a"},
	} {
		for _, a := range []answer{
			{exit: 1, stderr: "cannot open 'tank/a': I/O error\n"}, {exit: 1}, {exit: 2, stderr: "usage:\n"}, {err: host.ErrNoCommand},
		} {
			f := newFake(t, tankA()).answer("get", a)
			err := s.Do(t.Context(), f)
			if err == nil || errors.Is(err, host.ErrNotFound) {
				t.Errorf("%s: %v", s.Verb(), err)
			}
			ranExactly(t, f)
		}
	}
}

// doer is a step.
type doer interface {
	Verb() string
	Do(ctx context.Context, h host.Host) error
}

func TestWhatZFSWouldMisreadNeverReachesIt(t *testing.T) {
	bad := []Property{{"x:y", "a\nb"}}
	for _, s := range []doer{
		Create{Dataset: "tank/a@b"},
		Create{Dataset: "tank/a", Properties: bad},
		Create{Dataset: "tank/a", Mode: 0o700},
		Create{Dataset: "tank/a", Mode: fs.ModeSetuid | 0o700, Mountpoint: "/a"},
		Create{Dataset: "tank/a", Mountpoint: "a"},
		Create{Dataset: "tank/a", Mountpoint: "/a/"},
		Set{Dataset: "-r", Name: "x:y", Value: "1"},
		Set{Dataset: "tank/a", Name: "x:y", Value: "a\tb"},
		Set{Dataset: "tank/a", Name: "-x", Value: "1"},
		Inherit{Dataset: "tank/a", Name: "-r"},
		Inherit{Dataset: "", Name: "x:y"},
		Mount{"-a"}, Unmount{"-a"}, Mount{"/tank/a"},
		Snapshot{Name: "tank/a"},
		Snapshot{Name: "tank/a@b", Properties: bad},
		Destroy{Dataset: "tank/a@b"}, Destroy{Dataset: "tank/a#b"}, Destroy{Dataset: "-r"},
		DestroySnapshots{Dataset: "tank/a"}, DestroySnapshots{Dataset: "tank/a", Snapshot: "b,c"}, DestroySnapshots{Snapshot: "b"},
		DestroySnapshot{Name: "tank/a"}, DestroySnapshot{Name: "tank/a@b%c"}, DestroySnapshot{Name: "tank/a@b,c"},
	} {
		f := newFake(t, tankA())
		if err := s.Do(t.Context(), f); err == nil {
			t.Errorf("%s of %+v did not fail", s.Verb(), s)
		}
		if len(f.ran) > 0 || f.asked > 0 {
			t.Errorf("%s of %+v: %q and %d queries", s.Verb(), s, f.ran, f.asked)
		}
	}
}

func TestSetGoesBackWhereTheFileSystemCannotBeMounted(t *testing.T) {
	set := Set{Dataset: "tank/a", Name: "mountpoint", Value: "/b", Old: "/tank/a", OldSource: Local}
	f := newFake(t, tankA()).answer("set", answer{
		exit:   1,
		stderr: "cannot mount '/b': directory is not empty\nproperty may be set but unable to remount filesystem\n",
	})
	err := set.Do(t.Context(), f)
	if _, ok := errors.AsType[*host.CommandError](err); !ok {
		t.Error(err)
	}
	ranExactly(t, f, "zfs set mountpoint=/b tank/a", "zfs set mountpoint=/tank/a tank/a")

	f = newFake(t, tankA()).answer("set", answer{exit: 1, stderr: "cannot set property for 'tank/a': 'mountpoint' must be an absolute path\n"})
	if err := set.Do(t.Context(), f); !errors.Is(err, host.ErrRefused) {
		t.Error(err)
	}
	ranExactly(t, f, "zfs set mountpoint=/b tank/a")
}
