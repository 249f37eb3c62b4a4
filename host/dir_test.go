package host_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/test/hosttest/expect"
)

// A guest may plant links and pipes in its own file system.
func TestInIsNotLedOutByLinks(t *testing.T) {
	dir := t.TempDir()
	expect.OK(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("x"), 0o600))
	memory := hosttest.Memory()
	expect.Put(t, memory, "/secret", "x")

	for name, c := range map[string]struct {
		files host.Files
		link  func(target, name string) error
	}{
		"dir":    {host.Dir(dir), func(target, name string) error { return os.Symlink(target, filepath.Join(dir, name)) }},
		"memory": {memory, memory.Symlink},
	} {
		t.Run(name, func(t *testing.T) {
			expect.OK(t, host.MkdirAll(c.files, "/zone/etc", 0o755))
			root, err := c.files.In("/zone")
			expect.OK(t, err)
			expect.Put(t, root, "/etc/plain", "inside")
			for link, target := range map[string]string{
				"/zone/up":       "../secret",
				"/zone/absolute": "/secret",
				"/zone/updir":    "..",
				"/zone/loop":     "loop",
			} {
				expect.OK(t, c.link(target, link))
			}
			for _, name := range []string{"/up", "/absolute", "/updir/secret", "/loop"} {
				if _, err := root.Open(name, os.O_RDONLY, 0); err == nil {
					t.Errorf("%s leads out", name)
				}
				if _, err := root.Open(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err == nil {
					t.Errorf("%s leads out for writing", name)
				}
			}
			expect.Holds(t, c.files, "/secret", "x")

			expect.OK(t, c.link("etc/../etc", "/zone/inner"))
			expect.Holds(t, root, "/inner/plain", "inside")
			info, err := root.Stat("/inner")
			expect.OK(t, err)
			if info.Mode.Type() != fs.ModeSymlink || info.Size != int64(len("etc/../etc")) {
				t.Errorf("Stat followed the link: %+v", info)
			}
			expect.OK(t, root.Remove("/inner"))
			expect.Holds(t, root, "/etc/plain", "inside")
		})
	}
}

func TestInDoesNotWaitForAPipe(t *testing.T) {
	dir := t.TempDir()
	expect.OK(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	root, err := host.Dir("/").In(dir)
	expect.OK(t, err)
	_, err = root.Open("/pipe", os.O_RDONLY, 0)
	expect.Fails(t, err, syscall.EINVAL)
	_, err = root.Open("/pipe", os.O_RDWR, 0)
	expect.Fails(t, err, syscall.EINVAL)
	expect.Fails(t, root.Append("/pipe", []byte("x")), syscall.ENXIO)
}

// An open directory would keep a zone's file system from being unmounted.
func TestInKeepsNothingOpen(t *testing.T) {
	dir := t.TempDir()
	root, err := host.Dir("/").In(dir)
	expect.OK(t, err)
	expect.Put(t, root, "/a", "x")
	expect.OK(t, host.WriteFile(root, "/b", nil, 0o600))
	_, err = root.ReadDir("/")
	expect.OK(t, err)
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc/self/fd here")
	}
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(to, dir) {
			t.Errorf("descriptor %s is still open on %s", fd.Name(), to)
		}
	}
}

func TestDirErrorsNameTheFileAsTheCallerDid(t *testing.T) {
	_, err := host.Dir(t.TempDir()).Stat("/etc/nothing")
	if err == nil || err.Error() != "stat /etc/nothing: no such file or directory" {
		t.Errorf("got %v", err)
	}
}

// Two processes have a lock table each, and only flock(2) in common. One that
// waits for a lock whose file another removes and makes again waits for the new.
func TestLocksOfTwoProcessesAreOfTheFileThatHasTheName(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	take := func() (host.Lock, error) { return host.Dir("/").Lock(t.Context(), name, host.LockExclusive) }
	first, err := take()
	expect.OK(t, err)

	var held atomic.Bool // by the second
	granted := make(chan struct{})
	go func() {
		defer close(granted)
		waited, err := take()
		if err != nil {
			t.Error(err)
			return
		}
		if held.Load() {
			t.Error("two processes hold the lock")
		}
		expect.OK(t, waited.Unlock())
	}()
	isOpenTwice(t, name, granted)

	expect.OK(t, os.Remove(name))
	second, err := take()
	expect.OK(t, err)
	held.Store(true)
	expect.OK(t, first.Unlock())
	isOpenTwice(t, name, granted)
	held.Store(false)
	expect.OK(t, second.Unlock())
	<-granted
}

// isOpenTwice waits until this process has the file open twice, or for the end.
func isOpenTwice(t *testing.T, name string, end <-chan struct{}) {
	t.Helper()
	for named, err := os.Stat(name); ; time.Sleep(time.Millisecond) {
		expect.OK(t, err)
		fds, err := os.ReadDir("/proc/self/fd")
		expect.OK(t, err)
		open := 0
		for _, fd := range fds {
			if file, err := os.Stat("/proc/self/fd/" + fd.Name()); err == nil && os.SameFile(file, named) {
				open++
			}
		}
		select {
		case <-end:
			return
		default:
			if open == 2 {
				return
			}
		}
	}
}
