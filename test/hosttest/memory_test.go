package hosttest_test

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/test/hosttest/expect"
)

func TestMemoryMountpointsHaveTheirDevice(t *testing.T) {
	f := hosttest.Memory()
	expect.OK(t, host.MkdirAll(f, "/pool/zone/sub", 0o755))
	expect.Put(t, f, "/pool/zone/file", "x")
	expect.OK(t, f.SetDevice("/pool/zone", 7))
	in, err := f.In("/pool/zone")
	expect.OK(t, err)
	device := func(f host.Files, name string) uint64 {
		info, err := f.Stat(name)
		expect.OK(t, err)
		return info.Device
	}
	for name, want := range map[string]uint64{"/": 1, "/pool": 1, "/pool/zone": 7, "/pool/zone/sub": 7, "/pool/zone/file": 7} {
		if got := device(f, name); got != want {
			t.Errorf("%s is on device %d, want %d", name, got, want)
		}
	}
	if got := device(in, "/"); got != 7 {
		t.Errorf("a view's top is on device %d", got)
	}
	list, err := f.ReadDir("/pool")
	expect.OK(t, err)
	if len(list) != 1 || list[0].Device != 7 {
		t.Errorf("ReadDir: %+v", list)
	}
	expect.Fails(t, f.Rename("/pool/zone/file", "/pool/file"), syscall.EXDEV)
	expect.Fails(t, f.Remove("/pool/zone"), syscall.EBUSY)
	expect.OK(t, f.SetDevice("/pool/zone", 0))
	expect.OK(t, f.Rename("/pool/zone/file", "/pool/file"))
	expect.Fails(t, f.SetDevice("/no", 3), os.ErrNotExist)
	expect.Fails(t, f.SetDevice("/pool/file", 3), syscall.ENOTDIR)
}

func TestMemoryFaults(t *testing.T) {
	f := hosttest.Memory()
	expect.OK(t, f.Mkdir("/dir", 0o755))
	in, err := f.In("/dir")
	expect.OK(t, err)
	expect.Put(t, in, "/a", "x")
	f.Fail(func(op, name string) error {
		if name == "/dir/a" && (op == "append" || op == "sync") {
			return syscall.ENOSPC
		}
		return nil
	})
	expect.Fails(t, in.Append("/a", []byte("y")), syscall.ENOSPC)
	expect.Fails(t, f.Sync("/dir/a"), syscall.ENOSPC)
	expect.Holds(t, f, "/dir/a", "x")
	f.Fail(nil)
	expect.OK(t, f.Sync("/dir/a"))
}

func TestMemoryWritesHalf(t *testing.T) {
	f := hosttest.Memory()
	expect.Put(t, f, "/a", "")
	f.Fail(func(op, name string) error {
		if op == "append" || op == "write" {
			return &hosttest.ShortWrite{Written: 3, Err: syscall.ENOSPC}
		}
		return nil
	})
	expect.Fails(t, f.Append("/a", []byte("hello")), syscall.ENOSPC)
	expect.Holds(t, f, "/a", "hel")
	file, err := f.Open("/a", os.O_WRONLY|os.O_TRUNC, 0)
	expect.OK(t, err)
	n, err := file.Write([]byte("world"))
	if n != 3 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %d, %v", n, err)
	}
	expect.Holds(t, f, "/a", "wor")
}

func TestMemoryLocksWaitInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := hosttest.Memory()
		l, err := f.Lock(t.Context(), "/lock", host.LockExclusive)
		expect.OK(t, err)
		start := time.Now()
		go func() {
			time.Sleep(time.Hour)
			_ = l.Unlock()
		}()
		l, err = f.Lock(t.Context(), "/lock", host.LockExclusive)
		expect.OK(t, err)
		if waited := time.Since(start); waited != time.Hour {
			t.Errorf("waited %v", waited)
		}
		expect.OK(t, l.Unlock())
	})
}

// An exclusive waiter is not starved by those who share.
func TestLockQueueIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := hosttest.Memory()
		reader, err := f.Lock(t.Context(), "/lock", host.LockShared)
		expect.OK(t, err)
		order := make(chan string, 2)
		go func() {
			l, err := f.Lock(t.Context(), "/lock", host.LockExclusive)
			if err == nil {
				order <- "writer"
				_ = l.Unlock()
			}
		}()
		synctest.Wait()
		_, err = f.Lock(t.Context(), "/lock", host.TryShared)
		expect.Fails(t, err, host.ErrLocked)
		go func() {
			l, err := f.Lock(t.Context(), "/lock", host.LockShared)
			if err == nil {
				order <- "reader"
				_ = l.Unlock()
			}
		}()
		synctest.Wait()
		expect.OK(t, reader.Unlock())
		if first, second := <-order, <-order; first != "writer" || second != "reader" {
			t.Errorf("%s came before %s", first, second)
		}
	})
}

// What becomes of a clone is not seen in what it was cloned from, and the other
// way round, also through a file that was open.
func TestAMemoryCloneGoesOnByItself(t *testing.T) {
	f := hosttest.Memory()
	expect.OK(t, host.MkdirAll(f, "/a/b", 0o755))
	expect.OK(t, f.SetDevice("/a", 7))
	expect.Put(t, f, "/a/b/file", "both")
	open, err := f.Open("/a/b/file", os.O_RDWR, 0)
	expect.OK(t, err)
	held, err := f.Lock(t.Context(), "/a/lock", host.LockExclusive)
	expect.OK(t, err)
	clone := f.Clone()
	_, err = clone.Lock(t.Context(), "/a/lock", host.TryExclusive)
	expect.OK(t, err)
	_, err = open.Write([]byte("this"))
	expect.OK(t, err)
	expect.OK(t, clone.Append("/a/b/file", []byte(" that")))
	expect.OK(t, f.Append("/a/b/file", []byte(" one")))
	expect.Put(t, clone, "/a/b/new", "")
	expect.OK(t, f.Chmod("/a/b", 0o700))
	expect.OK(t, held.Unlock())
	for file, want := range map[*hosttest.MemoryFiles]string{f: "this one", clone: "both that"} {
		data, err := host.ReadFile(file, "/a/b/file")
		expect.OK(t, err)
		if string(data) != want {
			t.Errorf("%q, want %q", data, want)
		}
	}
	if _, err := f.Stat("/a/b/new"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file of the clone: %v", err)
	}
	info, err := clone.Stat("/a/b")
	expect.OK(t, err)
	if info.Mode.Perm() != 0o755 || info.Device != 7 {
		t.Errorf("%+v", info)
	}
}

func TestMemoryFilesThatShareTheirContents(t *testing.T) {
	f := hosttest.Memory()
	expect.Put(t, f, "/a", "one")
	expect.OK(t, f.ShareFile("/a", "/b", 0o640))
	expect.OK(t, f.ShareFile("/b", "/c", 0o600))
	expect.OK(t, f.Append("/a", []byte(", two")))
	expect.Put(t, f, "/c", "three")
	for name, want := range map[string]string{"/a": "one, two", "/b": "one", "/c": "three"} {
		if got, err := host.ReadFile(f, name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if info, err := f.Stat("/b"); err != nil || info.Mode != 0o640 {
		t.Errorf("mode %v, %v", info.Mode, err)
	}
	expect.Fails(t, f.ShareFile("/a", "/no/d", 0o600), os.ErrNotExist)
	faulty := hosttest.Memory()
	expect.Put(t, faulty, "/a", "one")
	faulty.Fail(func(string, string) error { return nil })
	cut := hosttest.PowerCuts()
	expect.Put(t, cut, "/a", "one")
	for what, err := range map[string]error{
		"what is there":    f.ShareFile("/a", "/b", 0o600),
		"nothing":          f.ShareFile("/no", "/d", 0o600),
		"a directory":      f.ShareFile("/", "/d", 0o600),
		"with faults":      faulty.ShareFile("/a", "/d", 0o600),
		"power can be cut": cut.ShareFile("/a", "/d", 0o600),
	} {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
