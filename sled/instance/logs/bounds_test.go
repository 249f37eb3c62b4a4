package logs

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest"
)

// However many logs there are, what is read of them is bounded, and of each there is a little.
func TestShare(t *testing.T) {
	for _, w := range []struct{ total, logs, want int }{
		{8 << 20, 0, 8 << 20}, {8 << 20, 1, 8 << 20}, {256 << 20, 2, most}, {8 << 20, 4, 2 << 20}, {8 << 20, 1000, least},
	} {
		if got := Share(w.total, w.logs); got != w.want {
			t.Errorf("of %d bytes for %d logs: %d, want %d", w.total, w.logs, got, w.want)
		}
	}
}

// The last lines within a number of bytes; one that is longer alone is not lost.
func TestWithin(t *testing.T) {
	var all []Entry
	for _, text := range []string{"aaaa", "bbbb", "cc"} {
		all = append(all, Entry{Line: Line{Text: text}})
	}
	for limit, want := range map[int]string{100: "aaaa bbbb cc", 10: "aaaa bbbb cc", 9: "bbbb cc", 5: "cc", 1: "cc"} {
		var got []string
		for _, e := range Within(all, limit) {
			got = append(got, e.Text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("within %d bytes: %q, want %q", limit, got, want)
		}
	}
}

// What is read at once of all logs is within the total, it is said that there is more, and a
// line that is longer than that does not stop the rest.
func TestFollowerWithinATotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := hosttest.Files()
		logs := []Log{{Instance: "a", Root: "/a/root", File: "/log"}, {Instance: "b", Root: "/b/root", File: "/log"}}
		for _, l := range logs {
			if err := host.MkdirAll(files, l.Root, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := host.WriteFile(files, l.Root+l.File, bytes.Repeat([]byte("0123456789abcde\n"), least/8), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		f := Follower{Files: files, Total: least, Logs: func(context.Context) []Log { return logs }}
		got, err := f.Next(t.Context())
		if err != nil || len(got) != 2 || len(got[0].Data) != least || !got[0].Cut || !got[1].Cut {
			t.Fatalf("%d parts, %v", len(got), err)
		}
		long := strings.Repeat("x", least+10)
		if err := files.Append(logs[0].Root+logs[0].File, []byte(long+"\nshort\n")); err != nil {
			t.Fatal(err)
		}
		var text []byte
		for !slices.Contains(strings.Split(string(text), "\n"), "short") {
			if got, err = f.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, c := range got {
				text = append(text, c.Data...)
			}
		}
		if string(text) != long+"\nshort\n" {
			t.Errorf("%d bytes came", len(text))
		}
	})
}
