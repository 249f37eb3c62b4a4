package host_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest/expect"
)

// crashModes are all of them.
var crashModes = map[string]host.CrashMode{"before": host.CrashBefore, "after": host.CrashAfter, "during": host.CrashDuring}

// crashed checks that each operation fails as after a crash.
func crashed(t *testing.T, c *host.Crashing, file host.File) {
	t.Helper()
	f := c.Files()
	_, run := c.Run(t.Context(), host.Command{Program: "look", ReadOnly: true})
	_, act := c.Run(t.Context(), host.Command{Program: "act"})
	_, dial := c.Dial(t.Context(), "tcp", "x")
	_, open := f.Open("/a", os.O_RDONLY, 0)
	_, create := f.Open("/new", os.O_CREATE|os.O_WRONLY, 0o600)
	_, readDir := f.ReadDir("/")
	_, stat := f.Stat("/")
	_, lock := f.Lock(t.Context(), "/lock", host.LockExclusive)
	_, in := f.In("/")
	errs := map[string]error{
		"run": run, "act": act, "dial": dial, "open": open, "create": create, "readdir": readDir, "stat": stat, "lock": lock, "in": in,
		"append": f.Append("/a", nil), "rename": f.Rename("/a", "/b"), "remove": f.Remove("/a"), "mkdir": f.Mkdir("/d", 0),
		"chmod": f.Chmod("/a", 0), "sync": f.Sync("/a"), "syncdir": f.SyncDir("/"), "write": host.WriteFile(f, "/w", nil, 0),
	}
	if file != nil {
		_, errs["file read"] = file.Read(make([]byte, 1))
		_, errs["file read at"] = file.ReadAt(make([]byte, 1), 0)
		_, errs["file write"] = file.Write([]byte("x"))
		_, errs["file stat"] = file.Stat()
		errs["file sync"] = file.Sync()
		errs["file close"] = nil
		expect.OK(t, file.Close())
		delete(errs, "file close")
	}
	for op, err := range errs {
		if !errors.Is(err, host.ErrCrashed) {
			t.Errorf("%s: %v", op, err)
		}
	}
	if !c.Crashed() {
		t.Error("Crashed says no")
	}
}

// story makes every kind of change, and returns the first error.
func story(ctx context.Context, h host.Host) error {
	f := h.Files()
	put := func(name, text string) error {
		file, err := f.Open(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		_, err = io.WriteString(file, text)
		return errors.Join(err, file.Close())
	}
	for _, step := range []func() error{
		func() error { _, err := h.Run(ctx, host.Command{Program: "look", ReadOnly: true}); return err },
		func() error { return f.Mkdir("/dir", 0o755) },
		func() error { return put("/dir/a", "abcd") },
		func() error { _, err := h.Run(ctx, host.Command{Program: "act"}); return err },
		func() error { return f.Append("/dir/a", []byte("efgh")) },
		func() error { return f.Sync("/dir/a") },
		func() error { return f.Chmod("/dir/a", 0o400) },
		func() error { return f.Rename("/dir/a", "/b") },
		func() error { return f.Remove("/dir") },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// after is what the story has left at each point, in the modes' order.
var after = [][3]string{
	{"", "/dir", "/dir"},
	{"/dir", "/dir a=", "/dir a="},
	{"/dir a=", "/dir a=abcd", "/dir a=ab"},
	{"/dir a=abcd", "/dir a=abcd acted", "/dir a=abcd acted"},
	{"/dir a=abcd acted", "/dir a=abcdefgh acted", "/dir a=abcdef acted"},
	{"/dir a=abcdefgh acted", "/dir a=abcdefgh acted 0400", "/dir a=abcdefgh acted 0400"},
	{"/dir a=abcdefgh acted 0400", "/dir b", "/dir b"},
	{"/dir b", "b", "b"},
}

func left(f *fake, acted bool) string {
	var words []string
	if _, err := f.files.Stat("/dir"); err == nil {
		words = append(words, "/dir")
	}
	if data, err := host.ReadFile(f.files, "/dir/a"); err == nil {
		words = append(words, "a="+string(data))
		if acted {
			words = append(words, "acted")
		}
		if info, err := f.files.Stat("/dir/a"); err == nil && info.Mode == 0o400 {
			words = append(words, "0400")
		}
	}
	if _, err := f.files.Stat("/b"); err == nil {
		words = append(words, "b")
	}
	return strings.Join(words, " ")
}

func TestCrashAtEachPoint(t *testing.T) {
	count := host.Crash(newFake(), 0, host.CrashBefore)
	expect.OK(t, story(t.Context(), count))
	if count.Points() != len(after) || count.Crashed() {
		t.Fatalf("%d points, want %d", count.Points(), len(after))
	}
	for name, mode := range crashModes {
		for n := 1; n <= len(after); n++ {
			f := newFake()
			acted := false
			f.run = func(_ context.Context, c host.Command) (host.Result, error) {
				acted = acted || c.Program == "act"
				return host.Result{}, nil
			}
			c := host.Crash(f, n, mode)
			if err := story(t.Context(), c); !errors.Is(err, host.ErrCrashed) {
				t.Errorf("%s point %d: got %v", name, n, err)
			}
			c.Wait()
			if got, want := left(f, acted), after[n-1][mode]; got != want {
				t.Errorf("%s point %d: left %q, want %q", name, n, got, want)
			}
			if c.Points() != n {
				t.Errorf("%s point %d: counted %d", name, n, c.Points())
			}
			crashed(t, c, nil)
		}
	}
}

func TestCrashReachesOpenFilesViewsAndActions(t *testing.T) {
	f := newFake()
	expect.Put(t, f.files, "/a", "x")
	c := host.Crash(f, 1, host.CrashBefore)
	file, err := c.Files().Open("/a", os.O_RDWR, 0)
	expect.OK(t, err)
	in, err := c.Files().In("/")
	expect.OK(t, err)
	action := host.ForAction(c, "x")
	if err := in.Mkdir("/d", 0o755); !errors.Is(err, host.ErrCrashed) {
		t.Errorf("got %v", err)
	}
	if _, err := action.Run(t.Context(), host.Command{Program: "look", ReadOnly: true}); !errors.Is(err, host.ErrCrashed) {
		t.Errorf("got %v", err)
	}
	crashed(t, c, file)
}

func TestCrashDropsLocks(t *testing.T) {
	f := newFake()
	c := host.Crash(f, 1, host.CrashBefore)
	l, err := c.Files().Lock(t.Context(), "/lock", host.LockExclusive)
	expect.OK(t, err)
	expect.OK(t, l.Write([]byte("me")))
	_, err = f.files.Lock(t.Context(), "/lock", host.TryExclusive)
	expect.Fails(t, err, host.ErrLocked)
	_ = c.Files().Mkdir("/d", 0o755)
	other, err := f.files.Lock(t.Context(), "/lock", host.TryExclusive)
	expect.OK(t, err)
	if err := l.Write(nil); !errors.Is(err, host.ErrCrashed) {
		t.Errorf("got %v", err)
	}
	expect.OK(t, l.Unlock())
	_, err = f.files.Lock(t.Context(), "/lock", host.TryShared)
	expect.Fails(t, err, host.ErrLocked)
	expect.OK(t, other.Unlock())
}

func TestCrashEndsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.run = func(ctx context.Context, c host.Command) (host.Result, error) {
			time.Sleep(time.Hour)
			return host.Result{}, nil
		}
		l, err := f.files.Lock(t.Context(), "/lock", host.LockExclusive)
		expect.OK(t, err)
		c := host.Crash(f, 1, host.CrashBefore)
		errs := make(chan error, 2)
		go func() {
			_, err := c.Files().Lock(t.Context(), "/lock", host.LockExclusive)
			errs <- err
		}()
		go func() {
			_, err := c.Run(t.Context(), host.Command{Program: "look", ReadOnly: true})
			errs <- err
		}()
		synctest.Wait()
		start := time.Now()
		_ = c.Files().Mkdir("/d", 0o755)
		for range 2 {
			if err := <-errs; !errors.Is(err, host.ErrCrashed) {
				t.Errorf("got %v", err)
			}
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("after %v", waited)
		}
		expect.OK(t, l.Unlock())
		c.Wait()
	})
}

// A command that lives on keeps the lock that it runs under, and no other.
func TestCrashDuringACommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		finished := false
		f.run = func(ctx context.Context, c host.Command) (host.Result, error) {
			select {
			case <-time.After(time.Hour):
				finished = true
				return host.Result{}, nil
			case <-ctx.Done():
				return host.Result{}, ctx.Err()
			}
		}
		c := host.Crash(f, 1, host.CrashDuring)
		subject, err := c.Files().Lock(t.Context(), "/subject", host.LockExclusive)
		expect.OK(t, err)
		_, err = c.Files().Lock(t.Context(), "/other", host.LockExclusive)
		expect.OK(t, err)
		ctx, cancel := context.WithCancel(host.WithLock(t.Context(), subject))
		start := time.Now()
		if _, err := c.Run(ctx, host.Command{Program: "act"}); !errors.Is(err, host.ErrCrashed) {
			t.Errorf("got %v", err)
		}
		cancel()
		if waited := time.Since(start); waited != 0 {
			t.Errorf("the caller died after %v", waited)
		}
		_, err = f.files.Lock(t.Context(), "/other", host.TryExclusive)
		expect.OK(t, err)
		_, err = f.files.Lock(t.Context(), "/subject", host.TryExclusive)
		expect.Fails(t, err, host.ErrLocked)
		_, err = f.files.Lock(t.Context(), "/subject", host.LockExclusive)
		expect.OK(t, err)
		if time.Since(start) != time.Hour || !finished {
			t.Errorf("the lock was free after %v, the command finished: %v", time.Since(start), finished)
		}
		c.Wait()
	})
}

// A command that runs when another one is the last goes on too, whatever the
// dying program cancels.
func TestCrashBesideACommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		finished := 0
		f.run = func(ctx context.Context, c host.Command) (host.Result, error) {
			select {
			case <-time.After(time.Hour):
				finished++
				return host.Result{}, nil
			case <-ctx.Done():
				return host.Result{}, ctx.Err()
			}
		}
		c := host.Crash(f, 2, host.CrashBefore)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		ended := make(chan error, 1)
		go func() {
			_, err := c.Run(ctx, host.Command{Program: "slow"})
			cancel()
			ended <- err
		}()
		synctest.Wait()
		if _, err := c.Run(ctx, host.Command{Program: "act"}); !errors.Is(err, host.ErrCrashed) {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, host.ErrCrashed) {
			t.Error(err)
		}
		if c.Wait(); finished != 1 {
			t.Error("the slow command was ended")
		}
	})
}

func TestCrashAtARequest(t *testing.T) {
	for name, mode := range crashModes {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			served := make(chan string, 10)
			f.serve = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				served <- r.Method
				fmt.Fprint(w, "fine")
			})
			c := host.Crash(f, 2, mode)
			web := client(t, c)
			ask := func(method string) error {
				r, err := http.NewRequest(method, "http://propolis/instance", strings.NewReader("{}"))
				expect.OK(t, err)
				a, err := web.Do(r)
				if err == nil {
					a.Body.Close()
				}
				return err
			}
			expect.OK(t, ask("GET"))
			expect.OK(t, ask("PUT"))
			if err := ask("PUT"); err == nil {
				t.Error("the second PUT came back")
			}
			crashed(t, c, nil)
			f.done.Wait()
			close(served)
			var methods []string
			for m := range served {
				methods = append(methods, m)
			}
			want := map[host.CrashMode][]int{host.CrashBefore: {2}, host.CrashAfter: {3}, host.CrashDuring: {2, 3}}[mode]
			if !slices.Contains(want, len(methods)) {
				t.Errorf("served %v", methods)
			}
		})
	}
}

// A crash that kills does so at its point, with what comes before done and the
// locks still held.
func TestCrashCanKill(t *testing.T) {
	for name, want := range map[string]string{"before": "", "after": "x"} {
		below := newFake()
		expect.Put(t, below.files, "/a", "")
		killed := 0
		c := host.Crash(below, 2, crashModes[name]).Kill(func() {
			killed++
			_, err := below.files.Lock(t.Context(), "/lock", host.TryExclusive)
			expect.Fails(t, err, host.ErrLocked)
			data, err := host.ReadFile(below.files, "/a")
			if err != nil || string(data) != want {
				t.Errorf("%s: at the kill the file says %q, %v", name, data, err)
			}
		})
		_, err := c.Files().Lock(t.Context(), "/lock", host.LockExclusive)
		expect.OK(t, err)
		expect.OK(t, c.Files().Mkdir("/d", 0o700))
		if killed != 0 {
			t.Errorf("%s: killed at the first point", name)
		}
		_ = c.Files().Append("/a", []byte("x"))
		if killed != 1 {
			t.Errorf("%s: killed %d times", name, killed)
		}
	}
}
