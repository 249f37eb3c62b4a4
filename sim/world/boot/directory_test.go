package boot_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

func TestASledIsMadeOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "sled")
	if _, err := boot.Init(dir, boot.Options{Seed: 5}); err != nil {
		t.Fatal(err)
	}
	if _, err := boot.Init(dir, boot.Options{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("made over another one: %v", err)
	}
	w, err := boot.Ensure(dir, boot.Options{Seed: 6})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.View(t.Context(), func(tx *world.Tx) error {
		if tx.State.Seed != 5 {
			t.Error("Ensure made another sled")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := host.ReadFile(w.Files(), "/etc/zones/index"); err != nil {
		t.Error(err)
	}
}

func TestOfManyWhoMakeASledOneDoes(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			w, err := boot.Ensure(dir, boot.Options{Seed: uint64(i)})
			if err == nil {
				err = w.Update(t.Context(), func(tx *world.Tx) error { tx.Count("openers"); return nil })
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	w, err := boot.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.View(t.Context(), func(tx *world.Tx) error {
		if got := tx.State.Counters["openers"]; got != 8 {
			t.Errorf("%d of 8 worked on the same sled", got)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestAnInitThatWasKilledIsTakenUpAgain(t *testing.T) {
	dir := t.TempDir()
	if _, err := boot.Init(dir, boot.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "world.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := boot.Open(dir); !errors.Is(err, world.ErrNoWorld) {
		t.Errorf("a half-made sled was opened: %v", err)
	}
	if _, err := boot.Init(dir, boot.Options{}); err != nil {
		t.Errorf("not taken up again: %v", err)
	}
}

func TestADirectoryThatIsNoSledIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.tex"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := boot.Init(dir, boot.Options{}); err == nil {
		t.Error("a sled was made among somebody's files")
	}
	if _, err := boot.Open(dir); !errors.Is(err, world.ErrNoWorld) {
		t.Errorf("Open: %v", err)
	}
	if _, err := boot.Open(filepath.Join(dir, "absent")); !errors.Is(err, world.ErrNoWorld) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open of nothing: %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("something was left there: %v %v", entries, err)
	}
}

// line is a line of a sled's file.
func line(key, json string) string { return key + "\t" + json + "\n" }

func TestAStateThatThisProgramDoesNotKnowIsRefused(t *testing.T) {
	first := fmt.Sprintf(`{"format":%d}`+"\n", world.Format)
	newer := fmt.Sprintf(`{"format":%d}`+"\n", world.Format+1)
	for name, c := range map[string]struct {
		edit  func(text string) string
		newer bool
	}{
		"newer format": {edit: func(text string) string { return strings.Replace(text, first, newer, 1) }, newer: true},
		"newer format of another shape": {edit: func(string) string {
			return fmt.Sprintf(`{"format": %d, "quota": 1}`, world.Format+1)
		}, newer: true},
		"unknown member":        {edit: func(text string) string { return text + line("head", `{"format":2,"quota":1}`) + line("commit", "9") }},
		"unknown member behind": {edit: func(text string) string { return text + line("disk/1", `{"name":"c1t0d0"}{}`) + line("commit", "9") }},
		"unknown entry":         {edit: func(text string) string { return text + line("quota", "1") + line("commit", "9") }},
		"entry without a number": {edit: func(text string) string {
			return text + line("disk/one", `{"name":"c1t0d0"}`) + line("commit", "9")
		}},
		"commit of nothing that is known": {edit: func(text string) string { return text + line("commit", `"nine"`) }},
		"nothing committed":               {edit: func(string) string { return first + line("head", `{"format":2}`) }},
		"old format, unknown member":      {edit: func(string) string { return `{"format": 1, "quota": 1}` }},
		"old format, something behind it": {edit: func(string) string { return `{"format": 1}{}` }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := boot.Init(dir, boot.Options{}); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "world.json")
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(c.edit(string(data))), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := boot.Open(dir); err == nil || errors.Is(err, world.ErrNewer) != c.newer {
				t.Errorf("Open: %v", err)
			}
		})
	}
}

// Two Worlds on one directory share nothing but its files, as two processes.
func TestAnotherProcessSeesAndWakes(t *testing.T) {
	dir := t.TempDir()
	one, err := boot.Init(dir, boot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	two, err := boot.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 1000)
	woken := make(chan error)
	go func() {
		woken <- two.Wait(t.Context(), func(tx *world.Tx) bool {
			asked <- struct{}{}
			return tx.State.Counters["x"] == 2
		})
	}()
	<-asked
	for range 2 {
		if err := one.Update(t.Context(), func(tx *world.Tx) error { tx.Count("x"); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-woken; err != nil {
		t.Fatal(err)
	}
	if err := two.Update(t.Context(), func(tx *world.Tx) error { tx.Count("x"); return nil }); err != nil {
		t.Fatal(err)
	}
	if err := one.View(t.Context(), func(tx *world.Tx) error {
		if got := tx.State.Counters["x"]; got != 3 {
			t.Errorf("x is %d after three transactions", got)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestAWaiterEndsWhenTheSledIsGone(t *testing.T) {
	dir := t.TempDir()
	w, err := boot.Init(dir, boot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 1000)
	woken := make(chan error)
	go func() {
		woken <- w.Wait(t.Context(), func(*world.Tx) bool { asked <- struct{}{}; return false })
	}()
	<-asked
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := <-woken; !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Wait: %v", err)
	}
}

func TestATransactionThatChangesNothingWritesNothing(t *testing.T) {
	dir := t.TempDir()
	w, err := boot.Init(dir, boot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(filepath.Join(dir, "world.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Update(t.Context(), func(*world.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(filepath.Join(dir, "world.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, after) || before.Size() != after.Size() || !before.ModTime().Equal(after.ModTime()) {
		t.Error("the state was written although nothing had changed")
	}
}

func TestTheStateSurvivesItsFile(t *testing.T) {
	dir := t.TempDir()
	w, err := boot.Init(dir, boot.Options{Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	read := func(w *world.World) (s *world.State) {
		t.Helper()
		if err := w.View(t.Context(), func(tx *world.Tx) error { s = tx.State; s.DecodeAll(); return nil }); err != nil {
			t.Fatal(err)
		}
		return s
	}
	err = w.Update(t.Context(), func(tx *world.Tx) error {
		tx.State.Due = []*world.Event{{At: tx.Now.Add(time.Hour), Kind: "k"}}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	again, err := boot.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(read(w), read(again), cmpopts.IgnoreUnexported(world.State{})); diff != "" {
		t.Error(diff)
	}
}

// What was thrown away goes behind the transaction, and what a process that was killed had not
// yet removed, when the sled is opened.
func TestWhatIsThrownAwayGoes(t *testing.T) {
	dir := t.TempDir()
	w, err := boot.Init(dir, boot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	change := func(do func(tx *world.Tx) error) {
		t.Helper()
		if err := w.Update(t.Context(), do); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"rpool/one", "rpool/two"} {
		change(func(tx *world.Tx) error {
			return errors.Join(zfs.CreateFilesystem(tx, name, map[string]string{"mountpoint": "/" + name}), zfs.MountAuto(tx, name))
		})
		change(func(tx *world.Tx) error {
			return world.Put(tx.Files, "/"+name+"/deep/file", []byte("x"), 0o644)
		})
		change(func(tx *world.Tx) error { return zfs.Destroy(tx, name, zfs.DestroyOptions{}) })
	}
	left := func() (names []string) {
		entries, err := w.Files().ReadDir(zfs.Trash)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name)
		}
		return names
	}
	w.Close()
	if names := left(); names != nil {
		t.Errorf("left: %v", names)
	}
	if err := world.Put(w.Files(), zfs.Trash+"/77.gone/deep/file", []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := boot.Open(dir); err != nil {
		t.Fatal(err)
	}
	if names := left(); names != nil {
		t.Errorf("left by a process that was killed: %v", names)
	}
}
