package logs

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest"
)

// What is followed is printed once, in whole lines, over a rotation and a new zone.
func TestFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := hosttest.Files()
		first, second := Log{Zone: "a", Root: "/a/root", File: "/log"}, Log{Zone: "b", Root: "/b/root", File: "/log"}
		for _, l := range []Log{first, second} {
			if err := host.MkdirAll(files, l.Root, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		write := func(l Log, text string) {
			t.Helper()
			if err := host.WriteFile(files, l.Root+l.File, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		log, there := first, true
		f := Follower{Files: files, Logs: func(context.Context) []Log {
			if !there {
				return nil
			}
			return []Log{log}
		}}
		next := func(text string, another bool) {
			t.Helper()
			got, err := f.Next(t.Context())
			if diff := cmp.Diff([]Chunk{{Log: log, Data: []byte(text), Another: another}}, got); diff != "" || err != nil {
				t.Error(err, diff)
			}
		}
		write(first, "one\n")
		next("one\n", false)
		if err := files.Append(first.Root+first.File, []byte("two\nhal")); err != nil {
			t.Fatal(err)
		}
		next("two\n", false)
		if err := files.Append(first.Root+first.File, []byte("f\n")); err != nil {
			t.Fatal(err)
		}
		next("half\n", false)
		if err := files.Remove(first.Root + first.File); err != nil {
			t.Fatal(err)
		}
		write(first, "rotated\n")
		next("rotated\n", true)
		write(second, "of the new zone\n")
		log = second
		next("of the new zone\n", true)

		there = false
		ctx, cancel := context.WithTimeout(t.Context(), 2*pause)
		defer cancel()
		if _, err := f.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without a zone: %v", err)
		}
	})
}

// A log that is longer than what is read of it at once is read from near its end, and on.
func TestFollowerOfALongLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := hosttest.Files()
		log := Log{Zone: "a", Root: "/a/root", File: "/log"}
		if err := host.MkdirAll(files, log.Root, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := host.WriteFile(files, log.Root+log.File, bytes.Repeat([]byte("0123456789abcde\n"), most/16+100), 0o644); err != nil {
			t.Fatal(err)
		}
		f := Follower{Files: files, Logs: func(context.Context) []Log { return []Log{log} }}
		if got, err := f.Next(t.Context()); err != nil || len(got) != 1 || len(got[0].Data) != most {
			t.Fatalf("%d parts, %v", len(got), err)
		}
		if err := files.Append(log.Root+log.File, []byte("new\n")); err != nil {
			t.Fatal(err)
		}
		if got, err := f.Next(t.Context()); err != nil || len(got) != 1 || string(got[0].Data) != "new\n" || got[0].Another {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// Several logs are followed at once, also one that comes later.
func TestFollowerOfSeveralLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := hosttest.Files()
		logs := []Log{{Instance: "a", Root: "/a/root", File: "/log"}, {Instance: "b", Root: "/b/root", File: "/log"}, {Instance: "b", Service: "other", Root: "/b/root", File: "/other"}}
		write := func(l Log, text string) {
			t.Helper()
			if err := host.MkdirAll(files, l.Root, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := host.WriteFile(files, l.Root+l.File, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		write(logs[0], "a\n")
		write(logs[1], "b\n")
		there := 2
		f := Follower{Files: files, Logs: func(context.Context) []Log { return logs[:there] }}
		next := func(want ...Chunk) {
			t.Helper()
			got, err := f.Next(t.Context())
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Error(err, diff)
			}
		}
		next(Chunk{Log: logs[0], Data: []byte("a\n")}, Chunk{Log: logs[1], Data: []byte("b\n")})
		write(logs[2], "new\n")
		there = 3
		next(Chunk{Log: logs[2], Data: []byte("new\n")})
		if err := files.Append("/a/root/log", []byte("more\n")); err != nil {
			t.Fatal(err)
		}
		next(Chunk{Log: logs[0], Data: []byte("more\n")})
	})
}
