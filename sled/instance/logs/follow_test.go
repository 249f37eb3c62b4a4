package logs

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"

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
		f := Follower{Files: files, Log: func(context.Context) (Log, bool) { return log, there }}
		next := func(text string, another bool) {
			t.Helper()
			data, other, err := f.Next(t.Context())
			if string(data) != text || other != another || err != nil {
				t.Errorf("%q, another %v, %v; want %q, %v", data, other, err, text, another)
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
		if _, _, err := f.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
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
		f := Follower{Files: files, Log: func(context.Context) (Log, bool) { return log, true }}
		if data, _, err := f.Next(t.Context()); len(data) != most || err != nil {
			t.Fatalf("%d bytes, %v", len(data), err)
		}
		if err := files.Append(log.Root+log.File, []byte("new\n")); err != nil {
			t.Fatal(err)
		}
		if data, another, err := f.Next(t.Context()); string(data) != "new\n" || another || err != nil {
			t.Errorf("%d bytes, another %v, %v", len(data), another, err)
		}
	})
}
