package key

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/test/steptest"
)

func testKey(t *testing.T) Key {
	t.Helper()
	k, err := newSecret(3, counting(), [Size]byte{}).Derive("disk 1/a", "/var/run/sledctl/key")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// lent is what package zfs asks of a key.
type lent interface {
	Location() string
	Lend(ctx context.Context, files host.Files, use func() error) error
	Around() (before, after []host.Line)
}

var _ lent = Key{}

// clean fails if a key is left anywhere.
func clean(t *testing.T, f host.Files, what string) {
	t.Helper()
	left, err := Left(f, "/var/run/sledctl/key")
	if err != nil || len(left) > 0 {
		t.Errorf("%s: left %v, %v", what, left, err)
	}
}

func TestAKeyIsLentInAFile(t *testing.T) {
	f, k := hosttest.Memory(), testKey(t)
	file, found := strings.CutPrefix(k.Location(), "file://")
	if !found || file != "/var/run/sledctl/key/disk_1_a-"+file[len(file)-len("01234567-3.key"):] {
		t.Fatal(k.Location())
	}
	used := false
	err := k.Lend(t.Context(), f, func() error {
		used = true
		data, err := host.ReadFile(f, file)
		if err != nil || string(data) != string(bytesOf(k)) {
			t.Errorf("%d bytes, %v", len(data), err)
		}
		for name, mode := range map[string]fs.FileMode{file: 0o600, "/var/run/sledctl/key": fs.ModeDir | 0o700} {
			if info, err := f.Stat(name); err != nil || info.Mode != mode {
				t.Errorf("%s: %v, %v", name, info.Mode, err)
			}
		}
		return nil
	})
	if err != nil || !used {
		t.Error(err)
	}
	clean(t, f, "after use")
}

func TestKeysOfDifferentDisksHaveDifferentFiles(t *testing.T) {
	seen := map[string]string{}
	s := newSecret(3, counting(), [Size]byte{})
	for _, identity := range []string{"a b", "a_b", "a/b", "a", "-a", "..", "", strings.Repeat("x", 300), strings.Repeat("x", 301), "ä", "\n"} {
		k, err := s.Derive(identity, "/run")
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(k.Location(), "file:///run/")
		if strings.ContainsAny(name, "/ \n") || len(name) > 128 || name[0] == '.' || name[0] == '-' {
			t.Errorf("%q: %q", identity, name)
		}
		if other, twice := seen[name]; twice {
			t.Errorf("%q and %q share %s", identity, other, name)
		}
		seen[name] = identity
	}
}

func TestAKeyIsWipedOnEveryWayOut(t *testing.T) {
	failed := errors.New("zfs failed")
	for name, c := range map[string]struct {
		use  func(cancel func(), f *hosttest.MemoryFiles) error
		want error
	}{
		"success":   {func(func(), *hosttest.MemoryFiles) error { return nil }, nil},
		"a failure": {func(func(), *hosttest.MemoryFiles) error { return failed }, failed},
		"the end of the context": {func(cancel func(), _ *hosttest.MemoryFiles) error {
			cancel()
			return context.Canceled
		}, context.Canceled},
		"a command that goes on": {func(func(), *hosttest.MemoryFiles) error { return host.ErrStillRunning }, host.ErrStillRunning},
	} {
		f := hosttest.Memory()
		ctx, cancel := context.WithCancel(t.Context())
		if err := testKey(t).Lend(ctx, f, func() error { return c.use(cancel, f) }); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
		clean(t, f, name)
	}

	f := hosttest.Memory()
	func() {
		defer func() { _ = recover() }()
		_ = testKey(t).Lend(t.Context(), f, func() error { panic("a bug") })
	}()
	clean(t, f, "a panic")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := testKey(t).Lend(ctx, f, func() error { t.Error("used"); return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	clean(t, f, "too late")
}

func TestAKeyFileThatCannotBeWiped(t *testing.T) {
	f, k := hosttest.Memory(), testKey(t)
	err := k.Lend(t.Context(), f, func() error {
		f.Fail(func(op, _ string) error {
			if op == "remove" {
				return syscall.EIO
			}
			return nil
		})
		return nil
	})
	if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "lies in /var/run/sledctl/key/") {
		t.Error(err)
	}
	f.Fail(nil)
	left, err := Left(f, "/var/run/sledctl/key")
	if err != nil || len(left) != 1 {
		t.Fatal(left, err)
	}
	if data, err := host.ReadFile(f, left[0]); err != nil || strings.Trim(string(data), "\x00") != "" {
		t.Errorf("it is not overwritten: %v", err)
	}
}

func TestWhatAKilledRunLeftDoesNotStopTheNext(t *testing.T) {
	f, k := hosttest.Memory(), testKey(t)
	if err := host.MkdirAll(f, k.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := host.WriteSecret(f, k.file(), []byte("half a k"), "x"); err != nil {
		t.Fatal(err)
	}
	err := k.Lend(t.Context(), f, func() error {
		data, err := host.ReadFile(f, k.file())
		if string(data) != string(bytesOf(k)) {
			t.Error("not the key")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	clean(t, f, "after use")
}

func TestADirectoryThatOthersCanLookInto(t *testing.T) {
	f, k := hosttest.Memory(), testKey(t)
	if err := host.MkdirAll(f, k.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := k.Lend(t.Context(), f, func() error { t.Error("used"); return nil }); !errors.Is(err, host.ErrRefused) {
		t.Error(err)
	}
	clean(t, f, "refused")
	for _, k := range []Key{{}, {dir: "/run"}, {reveal: zeros}, {reveal: zeros, dir: "run"}} {
		if err := k.Lend(t.Context(), f, func() error { t.Error("used"); return nil }); err == nil {
			t.Errorf("%v is in %q", k, k.dir)
		}
	}
}

// machine has files and nothing else.
type machine struct{ files host.Files }

// Run is part of host.Host.
func (machine) Run(context.Context, host.Command) (host.Result, error) { panic("runs nothing") }

// Dial is part of host.Host.
func (machine) Dial(context.Context, string, string) (net.Conn, error) { panic("dials nobody") }

// DeviceVersion is part of host.Host.
func (machine) DeviceVersion(context.Context, host.Device) (int, error) { return 0, fs.ErrNotExist }

// Files is part of host.Host.
func (m machine) Files() host.Files { return m.files }

func TestTheTraceIsWhatIsExplained(t *testing.T) {
	k := testKey(t)
	var got []host.Line
	h := host.Trace(machine{hosttest.Memory()}, func(e host.Event) { got = append(got, e.Line) })
	if err := k.Lend(t.Context(), h.Files(), func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	before, after := k.Around()
	if diff := cmp.Diff(append(before, after...), got); diff != "" {
		t.Error(diff)
	}
	if text := fmt.Sprint(got); strings.Contains(text, string(bytesOf(k)[:4])) {
		t.Errorf("the trace shows the key: %q", text)
	}
}

// TestAKillAnywhereLeavesWhatLeftFinds kills a run at each point: once what Left
// finds is wiped there is no key, and what is foreign is untouched.
func TestAKillAnywhereLeavesWhatLeftFinds(t *testing.T) {
	k := testKey(t)
	cases := 0
	for _, mode := range []host.CrashMode{host.CrashBefore, host.CrashAfter, host.CrashDuring} {
		for point := 1; ; point++ {
			f := hosttest.Memory()
			if err := host.MkdirAll(f, k.dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := host.WriteFile(f, k.dir+"/notes", []byte("foreign"), 0o600); err != nil {
				t.Fatal(err)
			}
			crashing := host.Crash(machine{f}, point, mode)
			err := k.Lend(t.Context(), crashing.Files(), func() error { return nil })
			if !crashing.Crashed() {
				if err != nil {
					t.Error(err)
				}
				break
			}
			cases++
			left, err := Left(f, k.dir)
			if err != nil || len(left) > 1 {
				t.Errorf("kill %d at %d: %v, %v", mode, point, left, err)
			}
			for _, name := range left {
				if err := (Wipe{File: name}).Do(t.Context(), machine{f}); err != nil {
					t.Errorf("kill %d at %d: %v", mode, point, err)
				}
			}
			clean(t, f, "after Wipe")
			if data, err := host.ReadFile(f, k.dir+"/notes"); err != nil || string(data) != "foreign" {
				t.Errorf("kill %d at %d: the foreign file: %q, %v", mode, point, data, err)
			}
		}
	}
	if cases < 12 {
		t.Errorf("only %d kills", cases)
	}
}

func TestLeft(t *testing.T) {
	f := hosttest.Memory()
	if left, err := Left(f, "/no"); left != nil || err != nil {
		t.Errorf("no directory: %v, %v", left, err)
	}
	for _, name := range []string{"/a.key", "/b.key", "/c", "/.d.key"} {
		file, err := f.Open(name, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		file.Close()
	}
	if err := f.Mkdir("/dir.key", 0o700); err != nil {
		t.Fatal(err)
	}
	left, err := Left(f, "/")
	if diff := cmp.Diff([]string{"/.d.key", "/a.key", "/b.key"}, left); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
	f.Fail(func(op, _ string) error { return syscall.EIO })
	if left, err := Left(f, "/"); left != nil || !errors.Is(err, syscall.EIO) {
		t.Errorf("what cannot be read: %v, %v", left, err)
	}
}

func TestSteps(t *testing.T) {
	steptest.Conform(t, steptest.Case{Step: Wipe{"/a.key"}, Again: fs.ErrNotExist, Sled: func(t *testing.T) steptest.Sled {
		f := hosttest.Memory()
		if err := host.WriteSecret(f, "/a.key", []byte("x"), "x"); err != nil {
			t.Fatal(err)
		}
		return steptest.Sled{Host: machine{f}, State: func() any {
			left, err := Left(f, "/")
			return []any{left, err}
		}}
	}})
}
