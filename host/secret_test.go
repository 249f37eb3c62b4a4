package host_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/test/hosttest/expect"
)

const secret = "thirty-two bytes that nobody sees"

func TestSecretsAreWrittenAndWiped(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		expect.OK(t, host.WriteSecret(f, "/key", []byte(secret), "a key"))
		expect.Holds(t, f, "/key", secret)
		info, err := f.Stat("/key")
		expect.OK(t, err)
		if info.Mode.Perm() != 0o600 {
			t.Errorf("mode %v", info.Mode)
		}
		expect.Fails(t, host.WriteSecret(f, "/key", []byte("other"), "a key"), fs.ErrExist)
		expect.Holds(t, f, "/key", secret)

		late, err := f.Open("/key", 0, 0)
		expect.OK(t, err)
		defer late.Close()
		expect.OK(t, host.WipeSecret(f, "/key"))
		seen := make([]byte, 2*len(secret))
		n, _ := late.ReadAt(seen, 0)
		if got := string(seen[:n]); got != strings.Repeat("\x00", len(secret)+1) {
			t.Errorf("a process that has it open reads %q", got)
		}
		_, err = f.Stat("/key")
		expect.Fails(t, err, fs.ErrNotExist)
		if err := host.WipeSecret(f, "/key"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a missing file: %v", err)
		}
	})
}

func TestALinkInASecretsPlaceIsRemovedAndNotFollowed(t *testing.T) {
	f := hosttest.Memory()
	expect.Put(t, f, "/victim", "data")
	expect.OK(t, f.Symlink("/victim", "/key"))
	expect.Fails(t, host.WriteSecret(f, "/key", []byte(secret), "a key"), fs.ErrExist)
	expect.OK(t, host.WipeSecret(f, "/key"))
	expect.Holds(t, f, "/victim", "data")
	_, err := f.Stat("/key")
	expect.Fails(t, err, fs.ErrNotExist)
}

func TestASecretThatCannotBeWrittenLeavesNothing(t *testing.T) {
	for _, op := range []string{"write", "sync"} {
		f := hosttest.Memory()
		once := false
		f.Fail(func(o, _ string) error {
			if o != op || once {
				return nil
			}
			once = true
			return &hosttest.ShortWrite{Written: 5, Err: syscall.ENOSPC}
		})
		if err := host.WriteSecret(f, "/key", []byte(secret), "a key"); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: %v", op, err)
		}
		if list, err := f.ReadDir("/"); err != nil || len(list) > 0 {
			t.Errorf("%s: left %v, %v", op, list, err)
		}
	}
}

// TestTracesDoNotShowSecrets puts the trace in every place that it can have.
func TestTracesDoNotShowSecrets(t *testing.T) {
	for name, decorate := range map[string]func(host.Host) host.Host{
		"the trace":                  func(h host.Host) host.Host { return h },
		"an action's":                func(h host.Host) host.Host { return host.ForAction(h, "a") },
		"under a crash":              func(h host.Host) host.Host { return host.Crash(h, 0, host.CrashBefore) },
		"a trace of a trace":         func(h host.Host) host.Host { return host.Trace(h, func(host.Event) {}) },
		"under a crash in an action": func(h host.Host) host.Host { return host.ForAction(host.Crash(h, 0, host.CrashBefore), "a") },
	} {
		f := newFake()
		expect.OK(t, f.files.Mkdir("/run", 0o700))
		h, events := record(f)
		outer := decorate(h)
		expect.OK(t, host.WriteSecret(outer.Files(), "/run/a key", []byte(secret), "the key of 3"))
		expect.Holds(t, f.files, "/run/a key", secret)
		expect.OK(t, host.WipeSecret(outer.Files(), "/run/a key"))

		want := append([]host.Line{host.SecretLine("/run/a key", "the key of 3")}, host.WipeLines("/run/a key")...)
		if diff := cmp.Diff(want, lines(events())); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		text, err := json.Marshal(events())
		expect.OK(t, err)
		if strings.Contains(string(text), secret[:8]) || strings.Contains(string(text), `\u0000`) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestATraceOfAViewNamesSecretsFromTheTop(t *testing.T) {
	f := newFake()
	expect.OK(t, f.files.Mkdir("/run", 0o700))
	h, events := record(f)
	in, err := h.Files().In("/run")
	expect.OK(t, err)
	expect.OK(t, host.WriteSecret(in, "/key", []byte(secret), "the key of 3"))
	if diff := cmp.Diff([]host.Line{host.SecretLine("/run/key", "the key of 3")}, lines(events())); diff != "" {
		t.Error(diff)
	}
}

func TestSecretsAreNotWrittenWhereNothingIsChanged(t *testing.T) {
	f := newFake()
	expect.Put(t, f.files, "/old", "x")
	files := host.ReadOnly(f).Files()
	if err := host.WriteSecret(files, "/key", []byte(secret), "a key"); !errors.Is(err, host.ErrReadOnly) {
		t.Error(err)
	}
	if err := host.WipeSecret(files, "/old"); !errors.Is(err, host.ErrReadOnly) {
		t.Error(err)
	}
	expect.Holds(t, f.files, "/old", "x")
}

// TestACrashAnywhereLeavesASecretThatCanBeWiped kills the writer at each point:
// what is left is wiped by the next, and holds no more than the secret.
func TestACrashAnywhereLeavesASecretThatCanBeWiped(t *testing.T) {
	for _, mode := range []host.CrashMode{host.CrashBefore, host.CrashAfter, host.CrashDuring} {
		for point := 1; ; point++ {
			f := newFake()
			h := host.Crash(f, point, mode)
			err := host.WriteSecret(h.Files(), "/key", []byte(secret), "a key")
			if err == nil {
				err = host.WipeSecret(h.Files(), "/key")
			}
			if !h.Crashed() {
				expect.OK(t, err)
				if point != 5 { // open, write, write, remove
					t.Errorf("%d points", point-1)
				}
				break
			}
			if err := host.WipeSecret(f.files, "/key"); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("after crash %d at %d: %v", mode, point, err)
			}
			if list, err := f.files.ReadDir("/"); err != nil || len(list) > 0 {
				t.Errorf("after crash %d at %d: left %v, %v", mode, point, list, err)
			}
		}
	}
}
