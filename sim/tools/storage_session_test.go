package tools

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/tools/storage"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/test/hosttest"
)

// zfsTx is a transaction on a sled with the pool tank and a blank disk c12t0d0.
func zfsTx(t testing.TB) *world.Tx {
	t.Helper()
	o := boot.Options{M2: -1, U2: 2, Links: -1, Blank: true}
	files := hosttest.Memory()
	if err := boot.LayRoot(files, o); err != nil {
		t.Fatal(err)
	}
	tx := world.NewTx(boot.Fresh(o), time.Date(2026, 11, 21, 3, 4, 5, 0, time.UTC), files)
	if r := storage.Zpool(tx, cli.Call{Tool: "zpool", Args: []string{"create", "tank", "c11t0d0"}, Zone: world.GlobalZone}); r.Exit != 0 {
		t.Fatal(r.Stderr)
	}
	return tx
}

// zfsLine runs a command.
func zfsLine(tx *world.Tx, line string) cli.Reply {
	words := strings.Fields(line)
	for i, w := range words {
		words[i] = strings.ReplaceAll(w, "␠", " ")
	}
	c := cli.Call{Tool: words[0], Args: words[1:], Zone: world.GlobalZone}
	tool, ok := Lookup(c.Tool)
	if !ok {
		panic("there is no " + c.Tool)
	}
	return tool(tx, c)
}

// session runs a transcript: "$ command", then what it prints: on standard
// error after "! ", the exit code after "= " if it is not 0. "usage" on standard
// error stands for the whole message. Tabs are written as "→".
func session(t *testing.T, tx *world.Tx, transcript string) {
	t.Helper()
	var command string
	var want cli.Reply
	number := regexp.MustCompile(`id: [0-9]+`)
	check := func() {
		if command == "" {
			return
		}
		got := zfsLine(tx, command)
		got.Stdout = number.ReplaceAllString(got.Stdout, "id: GUID")
		if i := strings.Index(got.Stderr, "usage:"); i >= 0 {
			got.Stderr = got.Stderr[:i] + "usage\n"
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", command, diff)
		}
		want = cli.Reply{}
	}
	for line := range strings.Lines(transcript) {
		line = strings.ReplaceAll(strings.TrimRight(line, "\n"), "→", "\t")
		switch {
		case strings.HasPrefix(line, "$ "):
			check()
			command = line[2:]
		case strings.HasPrefix(line, "! "):
			want.Stderr += line[2:] + "\n"
		case strings.HasPrefix(line, "= "):
			want.Exit, _ = strconv.Atoi(line[2:])
		default:
			want.Stdout += line + "\n"
		}
	}
	check()
}
