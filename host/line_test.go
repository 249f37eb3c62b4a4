package host_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sledctl/sledctl/host"
)

// shell runs a script in a directory, as an operator who pastes it would.
func shell(t interface{ Fatalf(string, ...any) }, dir, script string) string {
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return string(out)
}

func TestQuoteGivesAShellTheSameWords(t *testing.T) {
	word := rapid.StringMatching(`[ -~\n\téä"'$\\*]{0,12}`)
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(word, 1, 40).Draw(t, "words")
		var quoted []string
		for _, w := range words {
			quoted = append(quoted, host.Quote(w))
		}
		got := shell(t, "/", `printf '%s\0' `+strings.Join(quoted, " "))
		if diff := cmp.Diff(strings.Join(words, "\x00")+"\x00", got); diff != "" {
			t.Fatalf("%s", diff)
		}
	})
}

func TestQuoteLeavesPlainWordsAlone(t *testing.T) {
	for word, want := range map[string]string{
		"zoneadm": "zoneadm", "-z": "-z", "rpool/zone@a": "rpool/zone@a", "k=v,w:1+2%": "k=v,w:1+2%",
		"": "''", "a b": "'a b'", "it's": `'it'\''s'`, "~": "'~'", "<x>": "'<x>'",
	} {
		if got := host.Quote(word); got != want {
			t.Errorf("%q: got %s, want %s", word, got, want)
		}
	}
}

func TestLinesOfFilesDoWhatTheySay(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a file")
	for _, text := range []string{"", "one\n", "$HOME `id` \\ 'x'\n", "EOF\nEOF_\n", "\n\n"} {
		shell(t, dir, host.FileLine(name, []byte(text)).Text)
		if got, err := os.ReadFile(name); err != nil || string(got) != text {
			t.Errorf("%q became %q, %v", text, got, err)
		}
	}
	shell(t, dir, host.AppendLine(name, []byte("more\n")).Text)
	if got, _ := os.ReadFile(name); string(got) != "\n\nmore\n" {
		t.Errorf("after an append: %q", got)
	}
	shell(t, dir, host.CopyLine(name, name+" copy").Text)
	if got, _ := os.ReadFile(name + " copy"); string(got) != "\n\nmore\n" {
		t.Errorf("the copy: %q", got)
	}
	shell(t, dir, host.ChmodLine(name, 0o400).Text)
	shell(t, dir, host.MkdirLine(filepath.Join(dir, "x/y"), 0o700).Text)
	shell(t, dir, host.RenameLine(name, filepath.Join(dir, "x/b")).Text)
	if info, err := os.Stat(filepath.Join(dir, "x/b")); err != nil || info.Mode() != 0o400 {
		t.Errorf("%v, %v", info, err)
	}
	shell(t, dir, host.RemoveLine(filepath.Join(dir, "x/b")).Text)
	shell(t, dir, host.RemoveLine(filepath.Join(dir, "x/y")).Text)
	if entries, _ := os.ReadDir(filepath.Join(dir, "x")); len(entries) != 0 {
		t.Errorf("left: %v", entries)
	}
}

func TestShellIsTheCommand(t *testing.T) {
	got := shell(t, "/", host.Command{
		Program: "sh", Args: []string{"-c", `printf '%s|' "$X" "$1"; cat`, "sh", "a 'b'"},
		Env: []string{"X=$HOME"}, Stdin: []byte("in\nEOF\n"),
	}.Shell())
	if got != "$HOME|a 'b'|in\nEOF\n" {
		t.Errorf("got %q", got)
	}
}

func TestArgv(t *testing.T) {
	for name, c := range map[string]struct {
		command host.Command
		want    []string
	}{
		"where we are": {host.Command{Program: "zfs", Args: []string{"list", "a b"}}, []string{"zfs", "list", "a b"}},
		"in a zone": {
			host.Command{Program: "svcadm", Args: []string{"enable", "a b"}, Zone: "z1", Env: []string{"A=b c"}},
			[]string{"zlogin", "-n", "z1", `A='b c' svcadm enable 'a b'; printf '\nsledctl-status %d\n' "$?"`},
		},
	} {
		if diff := cmp.Diff(c.want, c.command.Argv()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestLineKinds(t *testing.T) {
	for _, c := range []struct {
		line    host.Line
		mutates bool
	}{
		{host.CommandLine(host.Command{Program: "x"}), true},
		{host.CommandLine(host.Command{Program: "x", ReadOnly: true}), false},
		{host.FileLine("/a", nil), true},
		{host.RequestLine("PUT", "http://x/", nil, nil), true},
		{host.WaitLine("it is there"), false},
	} {
		if c.line.Mutates() != c.mutates {
			t.Errorf("%+v mutates: %v", c.line, !c.mutates)
		}
	}
}

func TestRequestLineIsCurl(t *testing.T) {
	got := host.RequestLine("PUT", "http://<address of web1>:12400/instance", []string{"api-version: 5.0.0"}, []byte(`{"a":"it's"}`)).Text
	want := `curl -sS -X PUT -H 'api-version: 5.0.0' --data '{"a":"it'\''s"}' 'http://<address of web1>:12400/instance'`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestCommandErrorIsOneLineOfTheProgramsWords(t *testing.T) {
	zlogin := host.Command{Program: "svcs", Zone: "z1"}
	for _, c := range []struct {
		err  host.CommandError
		want string
	}{
		{host.CommandError{Command: host.Command{Program: "zfs"}, Result: host.Result{Exit: 2}}, "zfs: exit 2"},
		{host.CommandError{Command: host.Command{Program: "zfs"}, Result: host.Result{Stderr: []byte("cannot a\ncannot b\n")}}, "zfs: cannot a; cannot b"},
		{host.CommandError{Command: host.Command{Program: "dladm"}, Result: host.Result{Stderr: []byte("dladm: no")}}, "dladm: no"},
		{host.CommandError{Command: host.Command{Program: "zfs"}, Result: host.Result{Stdout: []byte("out")}}, "zfs: out"},
		{host.CommandError{Command: zlogin, Result: host.Result{Unknown: true}}, `svcs: ended without a status in zone "z1"`},
		{
			host.CommandError{Command: zlogin, Result: host.Result{Unknown: true, Stderr: []byte("zlogin: x\n")}},
			`svcs: ended without a status in zone "z1": zlogin: x`,
		},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	err := error(&host.CommandError{Means: host.ErrBusy})
	if !errors.Is(err, host.ErrBusy) || errors.Is(err, host.ErrExists) {
		t.Error("the kind is lost")
	}
}

func TestTheProgramOfALine(t *testing.T) {
	for _, c := range []struct {
		line host.Line
		want string
	}{
		{host.CommandLine(host.Command{Program: "zoneadm", Args: []string{"-z", "a=b", "boot"}}), "zoneadm"},
		{host.CommandLine(host.Command{Program: "svccfg", Args: []string{"import", "x"}, Env: []string{"A=it's a=b", "B_1="}}), "svccfg"},
		{host.CommandLine(host.Command{Program: "ipadm", Args: []string{"show-addr"}, Zone: "z1", Env: []string{"A=b"}, ReadOnly: true}), "zlogin"},
		{host.CommandLine(host.Command{Program: "zonename"}), "zonename"},
		{host.FileLine("/etc/zonecfg", []byte("zoneadm list")), ""},
		{host.WaitLine("zoneadm is done"), ""},
		{host.RequestLine("GET", "http://h/", nil, nil), ""},
	} {
		if got := c.line.Program(); got != c.want {
			t.Errorf("%s: %q, want %q", c.line.Text, got, c.want)
		}
	}
}
