package sim

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/hosttest"
)

// newSledFor makes a sled in memory that ends with the test.
func newSledFor(t *testing.T, o Options) *Sled {
	t.Helper()
	s := New(o, hosttest.Files)
	s.World().Checked(func(what string) { t.Error("not noted: ", what) })
	t.Cleanup(s.Close)
	return s
}

func arm(t *testing.T, s *Sled, f world.Fault) {
	t.Helper()
	if err := s.World().Update(t.Context(), func(tx *world.Tx) error { tx.Arm(f); return nil }); err != nil {
		t.Fatal(err)
	}
}

func TestACommandIsRunAndCanBeAbsent(t *testing.T) {
	h := newSledFor(t, Options{}).Host()
	got, err := h.Run(t.Context(), host.Command{Program: "zonename", ReadOnly: true})
	if err != nil || string(got.Stdout) != "global\n" {
		t.Errorf("%q, %v", got.Stdout, err)
	}
	if _, err := h.Run(t.Context(), host.Command{Program: "rm", Args: []string{"-rf", "/"}}); !errors.Is(err, host.ErrNoCommand) {
		t.Errorf("rm: %v", err)
	}
	if _, err := h.Run(t.Context(), host.Command{Program: "/usr/bin/zonename"}); err == nil {
		t.Error("a path was taken for a bare name")
	}
}

// A script that somebody puts where commands lie is one; after a boot from a RAM
// disk it is there if it came with the image.
func TestAScriptIsACommand(t *testing.T) {
	s := newSledFor(t, Options{Seed: 1, Mode: world.Helios, Image: []string{"/usr/bin/sled-secrets"}})
	files := s.Host().Files()
	for _, name := range []string{"/usr/bin/sled-secrets", "/usr/bin/other"} {
		if err := host.WriteFile(files, name, []byte("#!/bin/sh\necho \"[$1]\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		r, err := s.Host().Run(t.Context(), host.Command{Program: "sled-secrets", Args: []string{"a b"}, ReadOnly: true})
		if err != nil || string(r.Stdout) != "[a b]\n" {
			t.Errorf("%+v %v", r, err)
		}
		if err := s.Reboot(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Host().Run(t.Context(), host.Command{Program: "other", ReadOnly: true}); !errors.Is(err, host.ErrNoCommand) {
		t.Errorf("a script that is not of the image outlived a boot: %v", err)
	}
}

func TestAQueryEndsWithItsContextAndAChangeDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{}, hosttest.Files)
		defer s.Close()
		arm(t, s, world.Fault{Name: world.FaultHang, Match: "zfs", Delay: time.Hour})
		run := func(readOnly bool, args ...string) error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := s.Host().Run(ctx, host.Command{Program: "zfs", Args: args, ReadOnly: readOnly})
			return err
		}
		if err := run(true, "list"); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, host.ErrStillRunning) {
			t.Errorf("query: %v", err)
		}
		if err := run(false, "create", "rpool/late"); !errors.Is(err, host.ErrStillRunning) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("change: %v", err)
		}
		exists := func(tx *world.Tx) bool { return tx.State.Datasets["rpool/late"] != nil }
		start := time.Now()
		if err := s.World().Wait(t.Context(), exists); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != time.Hour-time.Second {
			t.Errorf("it was done after %s more", took)
		}
	})
}

func TestAFaultKillsTheCaller(t *testing.T) {
	for name, done := range map[string]bool{world.FaultKill: false, world.FaultKillAfter: true, world.FaultKillDuring: true} {
		t.Run(name, func(t *testing.T) {
			s := newSledFor(t, Options{})
			arm(t, s, world.Fault{Name: name, Match: "zfs create", Times: 1})
			_, err := s.Host().Run(t.Context(), host.Command{Program: "zfs", Args: []string{"create", "rpool/x"}})
			if !errors.Is(err, ErrKilled) {
				t.Errorf("Run: %v", err)
			}
			s.left.Wait()
			if err := s.World().View(t.Context(), func(tx *world.Tx) error {
				if got := tx.State.Datasets["rpool/x"] != nil; got != done {
					t.Errorf("done: %t, want %t", got, done)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// serverAt has a propolis-server listen in zone z1, which has addr.
func serverAt(t *testing.T, s *Sled, listen string, addresses ...*world.Address) {
	t.Helper()
	err := s.World().Update(t.Context(), func(tx *world.Tx) error {
		for _, a := range addresses {
			if a.Timeline == nil {
				a.Timeline = []world.Timepoint{{State: "ok", From: tx.Now}}
			}
		}
		tx.TouchStack("z1")
		tx.State.Stacks["z1"] = &world.Stack{Addresses: addresses}
		tx.State.Processes = append(tx.State.Processes, &world.Process{PID: 1001, Zone: "z1", Listen: listen, Started: tx.Now})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestDialReachesWhatListens(t *testing.T) {
	ok := &world.Address{Object: "net9/v4", Type: "static", Address: "10.0.0.5/24"}
	late := &world.Address{Object: "net9/v4", Type: "dhcp", Address: "10.0.0.5/24", Timeline: []world.Timepoint{{State: "tentative"}}}
	for _, c := range []struct {
		name, listen, dial string
		address            *world.Address
		want               error
	}{
		{"its own address", "10.0.0.5:12400", "10.0.0.5:12400", ok, nil},
		{"any address", "0.0.0.0:12400", "10.0.0.5:12400", ok, nil},
		{"any address, IPv6", "[::]:12400", "10.0.0.5:12400", ok, nil},
		{"another port", "10.0.0.5:12400", "10.0.0.5:12401", ok, syscall.ECONNREFUSED},
		{"an address that is nobody's", "0.0.0.0:12400", "10.0.0.6:12400", ok, syscall.EHOSTUNREACH},
		{"an address that is not ok yet", "0.0.0.0:12400", "10.0.0.5:12400", late, syscall.EHOSTUNREACH},
		{"the global zone, where nothing listens", "0.0.0.0:12400", "127.0.0.1:12400", ok, syscall.ECONNREFUSED},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSledFor(t, Options{})
			serverAt(t, s, c.listen, c.address)
			conn, err := s.Host().Dial(t.Context(), "tcp", c.dial)
			if !errors.Is(err, c.want) {
				t.Fatalf("Dial: %v, want %v", err, c.want)
			}
			if err != nil {
				if _, ok := errors.AsType[*net.OpError](err); !ok {
					t.Errorf("%T is no *net.OpError", err)
				}
				return
			}
			if got := conn.RemoteAddr().String(); got != c.dial {
				t.Errorf("connected to %s", got)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := newSledFor(t, Options{}).Host().Dial(t.Context(), "tcp", "example.org:80"); err == nil {
		t.Error("a name was resolved")
	}
}

func TestAMountedDatasetIsADeviceOfItsOwn(t *testing.T) {
	s := newSledFor(t, Options{})
	files := s.Host().Files()
	must(t, s, "zfs", "create", "-o", "mountpoint=/data/a", "rpool/a")
	for _, dir := range []string{"/data/b", "/data/a/in"} {
		if err := files.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	device := func(name string) uint64 {
		info, err := files.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return info.Device
	}
	if device("/data/a") == device("/data") || device("/data/a/in") != device("/data/a") || device("/data/b") != device("/data") {
		t.Error("the devices do not follow the mounts")
	}
	in, err := files.In("/data")
	if err != nil {
		t.Fatal(err)
	}
	infos, err := in.ReadDir("/")
	if err != nil {
		t.Fatal(err)
	}
	if len(infos) != 2 || infos[0].Device != device("/data/a") || infos[1].Device != device("/data") {
		t.Errorf("in a view: %+v", infos)
	}
	for _, c := range []struct {
		what string
		got  error
		want error
	}{
		{"rename across devices", files.Rename("/data/a/in", "/data/b/in"), syscall.EXDEV},
		{"rename of a mountpoint", files.Rename("/data/a", "/data/c"), syscall.EBUSY},
		{"removal of a mountpoint", files.Remove("/data/a"), syscall.EBUSY},
		{"rename within a device", files.Rename("/data/a/in", "/data/a/on"), nil},
	} {
		if !errors.Is(c.got, c.want) || (c.got == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
	must(t, s, "zfs", "unmount", "rpool/a")
	if device("/data/a") != device("/data") {
		t.Error("an unmounted dataset is still a device")
	}
	if _, err := files.Stat("/.datasets"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is not mounted can be seen: %v", err)
	}
}

// must runs a command that succeeds silently.
func must(t *testing.T, s *Sled, words ...string) {
	t.Helper()
	got, err := s.Host().Run(t.Context(), host.Command{Program: words[0], Args: words[1:]})
	if err != nil || got.Exit != 0 {
		t.Fatalf("%q: exit %d, %s%s %v", words, got.Exit, got.Stdout, got.Stderr, err)
	}
}

// output runs a command that succeeds and gives what it printed.
func output(t *testing.T, s *Sled, words ...string) string {
	t.Helper()
	got, err := s.Host().Run(t.Context(), host.Command{Program: words[0], Args: words[1:], ReadOnly: true})
	if err != nil || got.Exit != 0 {
		t.Fatalf("%q: exit %d, %s%s %v", words, got.Exit, got.Stdout, got.Stderr, err)
	}
	return string(got.Stdout)
}

func TestComparableSeesThingsAndNotTheirHistory(t *testing.T) {
	s := newSledFor(t, Options{})
	look := func() []byte {
		data, err := Comparable(t.Context(), s.World())
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	before := look()
	must(t, s, "zfs", "create", "rpool/x")
	with := look()
	if bytes.Equal(before, with) {
		t.Error("a dataset is not seen")
	}
	must(t, s, "zfs", "destroy", "rpool/x")
	if diff := cmp.Diff(string(before), string(look())); diff != "" {
		t.Error(diff)
	}
	must(t, s, "zfs", "create", "rpool/x")
	if diff := cmp.Diff(string(with), string(look())); diff != "" {
		t.Error(diff)
	}
}

func TestACloneGoesOnByItself(t *testing.T) {
	s := newSledFor(t, Options{})
	must(t, s, "zfs", "create", "-o", "mountpoint=/data", "rpool/data")
	must(t, s, "dladm", "create-vnic", "-l", "net0", "a0")
	seen := func(s *Sled) string {
		data, err := Comparable(t.Context(), s.World())
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	before := seen(s)
	clone := s.Clone()
	defer clone.Close()
	if diff := cmp.Diff(before, seen(clone)); diff != "" {
		t.Error("the clone differs at once: ", diff)
	}
	must(t, clone, "zfs", "set", "quota=1G", "rpool/data")
	must(t, clone, "dladm", "delete-vnic", "a0")
	if err := host.WriteFile(clone.Host().Files(), "/data/file", []byte("x"), 0o600); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(before, seen(s)); diff != "" {
		t.Error("the original has changed with its clone: ", diff)
	}
	if _, err := s.Host().Files().Stat("/data/file"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a file of the clone: ", err)
	}
	changed := seen(clone)
	must(t, s, "dladm", "create-vnic", "-l", "net0", "a1")
	must(t, s, "zfs", "destroy", "rpool/data")
	if diff := cmp.Diff(changed, seen(clone)); diff != "" {
		t.Error("the clone has changed with its original: ", diff)
	}
}

func TestToolsAreLinked(t *testing.T) {
	dir := t.TempDir()
	if _, err := Init(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // again, over those that are there
		bin, err := LinkTools(dir, "/some/where")
		if err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(bin)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == "zoneadm" }) || len(entries) < 10 {
			t.Errorf("links: %v", entries)
		}
	}
	if _, err := Open(dir); err != nil {
		t.Errorf("the sled is no longer recognised: %v", err)
	}
}

func TestCloseEndsWhatIsLeft(t *testing.T) {
	s := New(Options{}, hosttest.Files)
	serverAt(t, s, "0.0.0.0:12400", &world.Address{Object: "net9/v4", Type: "static", Address: "10.0.0.5/24"})
	conn, err := s.Host().Dial(t.Context(), "tcp", "10.0.0.5:12400")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	arm(t, s, world.Fault{Name: world.FaultHang, Match: "zfs create", Times: 1})
	ended := make(chan error, 1)
	go func() {
		_, err := s.Host().Run(t.Context(), host.Command{Program: "zfs", Args: []string{"create", "rpool/x"}})
		ended <- err
	}()
	if err := s.World().Wait(t.Context(), func(tx *world.Tx) bool { return tx.State.Faults[0].Times != 1 }); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the command ended with %v", err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is still open")
	}
}

func TestManyAtOnce(t *testing.T) {
	dir, err := Init(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*Sled{"memory": New(Options{}, hosttest.Files), "directory": dir} {
		t.Run(name, func(t *testing.T) {
			defer s.Close()
			var wg sync.WaitGroup
			for i := range 64 {
				wg.Go(func() {
					args := []string{"create-vnic", "-t", "-l", "net0", "vnic" + strconv.Itoa(i)}
					got, err := s.Host().Run(t.Context(), host.Command{Program: "dladm", Args: args})
					if err != nil || got.Exit != 0 {
						t.Errorf("%q: exit %d, %s, %v", args, got.Exit, got.Stderr, err)
					}
				})
			}
			wg.Wait()
			shown, err := s.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			macs := map[string]bool{}
			for _, l := range shown.Links {
				macs[l.MAC] = true
			}
			if len(shown.Links) != 66 || len(macs) != 66 {
				t.Errorf("%d links with %d addresses, want 66", len(shown.Links), len(macs))
			}
		})
	}
}

// A process that is killed while it writes the sled down leaves half a file under
// another name: the sled is as it was, the next change is whole, and nothing stays.
func TestASledIsWrittenWholeOrNotAtAll(t *testing.T) {
	const half = `{"format": 1, "zones": [{"na`
	dir := t.TempDir()
	torn := filepath.Join(dir, "world.json.new")
	if err := os.WriteFile(torn, []byte(half), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Init(dir, Options{})
	if err != nil {
		t.Fatal("where the first write was torn: ", err)
	}
	s.Close()
	if err := os.WriteFile(torn, []byte(half), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err = Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Host().Run(t.Context(), host.Command{Program: "zfs", Args: []string{"create", "rpool/one"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(torn); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the half file stays: %v", err)
	}
}
