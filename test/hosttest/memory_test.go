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
)

func TestMemoryMountpointsHaveTheirDevice(t *testing.T) {
	f := hosttest.Memory()
	ok(t, host.MkdirAll(f, "/pool/zone/sub", 0o755))
	put(t, f, "/pool/zone/file", "x")
	ok(t, f.SetDevice("/pool/zone", 7))
	in, err := f.In("/pool/zone")
	ok(t, err)
	device := func(f host.Files, name string) uint64 {
		info, err := f.Stat(name)
		ok(t, err)
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
	ok(t, err)
	if len(list) != 1 || list[0].Device != 7 {
		t.Errorf("ReadDir: %+v", list)
	}
	fails(t, f.Rename("/pool/zone/file", "/pool/file"), syscall.EXDEV)
	fails(t, f.Remove("/pool/zone"), syscall.EBUSY)
	ok(t, f.SetDevice("/pool/zone", 0))
	ok(t, f.Rename("/pool/zone/file", "/pool/file"))
	fails(t, f.SetDevice("/no", 3), os.ErrNotExist)
	fails(t, f.SetDevice("/pool/file", 3), syscall.ENOTDIR)
}

func TestMemoryFaults(t *testing.T) {
	f := hosttest.Memory()
	ok(t, f.Mkdir("/dir", 0o755))
	in, err := f.In("/dir")
	ok(t, err)
	put(t, in, "/a", "x")
	f.Fail(func(op, name string) error {
		if name == "/dir/a" && (op == "append" || op == "sync") {
			return syscall.ENOSPC
		}
		return nil
	})
	fails(t, in.Append("/a", []byte("y")), syscall.ENOSPC)
	fails(t, f.Sync("/dir/a"), syscall.ENOSPC)
	holds(t, f, "/dir/a", "x")
	f.Fail(nil)
	ok(t, f.Sync("/dir/a"))
}

func TestMemoryWritesHalf(t *testing.T) {
	f := hosttest.Memory()
	put(t, f, "/a", "")
	f.Fail(func(op, name string) error {
		if op == "append" || op == "write" {
			return &hosttest.ShortWrite{Written: 3, Err: syscall.ENOSPC}
		}
		return nil
	})
	fails(t, f.Append("/a", []byte("hello")), syscall.ENOSPC)
	holds(t, f, "/a", "hel")
	file, err := f.Open("/a", os.O_WRONLY|os.O_TRUNC, 0)
	ok(t, err)
	n, err := file.Write([]byte("world"))
	if n != 3 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %d, %v", n, err)
	}
	holds(t, f, "/a", "wor")
}

func TestMemoryLocksWaitInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := hosttest.Memory()
		l, err := f.Lock(t.Context(), "/lock", host.LockExclusive)
		ok(t, err)
		start := time.Now()
		go func() {
			time.Sleep(time.Hour)
			_ = l.Unlock()
		}()
		l, err = f.Lock(t.Context(), "/lock", host.LockExclusive)
		ok(t, err)
		if waited := time.Since(start); waited != time.Hour {
			t.Errorf("waited %v", waited)
		}
		ok(t, l.Unlock())
	})
}

// An exclusive waiter is not starved by those who share.
func TestLockQueueIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := hosttest.Memory()
		reader, err := f.Lock(t.Context(), "/lock", host.LockShared)
		ok(t, err)
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
		fails(t, err, host.ErrLocked)
		go func() {
			l, err := f.Lock(t.Context(), "/lock", host.LockShared)
			if err == nil {
				order <- "reader"
				_ = l.Unlock()
			}
		}()
		synctest.Wait()
		ok(t, reader.Unlock())
		if first, second := <-order, <-order; first != "writer" || second != "reader" {
			t.Errorf("%s came before %s", first, second)
		}
	})
}

// What becomes of a clone is not seen in what it was cloned from, and the other
// way round, also through a file that was open.
func TestAMemoryCloneGoesOnByItself(t *testing.T) {
	f := hosttest.Memory()
	ok(t, host.MkdirAll(f, "/a/b", 0o755))
	ok(t, f.SetDevice("/a", 7))
	put(t, f, "/a/b/file", "both")
	open, err := f.Open("/a/b/file", os.O_RDWR, 0)
	ok(t, err)
	held, err := f.Lock(t.Context(), "/a/lock", host.LockExclusive)
	ok(t, err)
	clone := f.Clone()
	_, err = clone.Lock(t.Context(), "/a/lock", host.TryExclusive)
	ok(t, err)
	_, err = open.Write([]byte("this"))
	ok(t, err)
	ok(t, clone.Append("/a/b/file", []byte(" that")))
	ok(t, f.Append("/a/b/file", []byte(" one")))
	put(t, clone, "/a/b/new", "")
	ok(t, f.Chmod("/a/b", 0o700))
	ok(t, held.Unlock())
	for file, want := range map[*hosttest.MemoryFiles]string{f: "this one", clone: "both that"} {
		data, err := host.ReadFile(file, "/a/b/file")
		ok(t, err)
		if string(data) != want {
			t.Errorf("%q, want %q", data, want)
		}
	}
	if _, err := f.Stat("/a/b/new"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file of the clone: %v", err)
	}
	info, err := clone.Stat("/a/b")
	ok(t, err)
	if info.Mode.Perm() != 0o755 || info.Device != 7 {
		t.Errorf("%+v", info)
	}
}
