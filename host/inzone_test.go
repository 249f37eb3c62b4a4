package host

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplitStatus(t *testing.T) {
	for name, c := range map[string]struct {
		stdout, out string
		status      int
		found       bool
	}{
		"output with a line end":    {"a\n\nsledctl-status 0\n", "a\n", 0, true},
		"output without":            {"a\nsledctl-status 3\n", "a", 3, true},
		"no output":                 {"\nsledctl-status 255\n", "", 255, true},
		"the last of two":           {"\nsledctl-status 1\n\nsledctl-status 2\n", "\nsledctl-status 1\n", 2, true},
		"nothing":                   {"", "", 0, false},
		"only output":               {"a\nb\n", "a\nb\n", 0, false},
		"cut off":                   {"a\nsledctl-status 0", "a\nsledctl-status 0", 0, false},
		"something after it":        {"\nsledctl-status 0\nb\n", "\nsledctl-status 0\nb\n", 0, false},
		"in the middle of a line":   {"a sledctl-status 0\n", "a sledctl-status 0\n", 0, false},
		"no number":                 {"\nsledctl-status x\n", "\nsledctl-status x\n", 0, false},
		"a number that nobody exit": {"\nsledctl-status 256\n", "\nsledctl-status 256\n", 0, false},
		"a number in other words":   {"\nsledctl-status 007\n", "\nsledctl-status 007\n", 0, false},
	} {
		out, status, found := splitStatus([]byte(c.stdout))
		if string(out) != c.out || status != c.status || found != c.found {
			t.Errorf("%s: got %q, %d, %v", name, out, status, found)
		}
	}
}

func TestFinishZoneResultLeavesOtherCommandsAlone(t *testing.T) {
	r := Result{Exit: 2, Stdout: []byte("a\nsledctl-status 0\n"), Stderr: []byte("b")}
	if diff := cmp.Diff(r, FinishZoneResult(Command{Program: "x"}, r)); diff != "" {
		t.Error(diff)
	}
	got := FinishZoneResult(Command{Program: "x", Zone: "z"}, Result{Exit: 1, Stderr: []byte("b")})
	if diff := cmp.Diff(Result{Exit: 1, Stderr: []byte("b"), Unknown: true}, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzSplitStatus(f *testing.F) {
	f.Add([]byte("a\n"), 3)
	f.Add([]byte("\nsledctl-status 1\n"), 0)
	f.Fuzz(func(t *testing.T, output []byte, status int) {
		status = int(uint8(status))
		printed := append(append([]byte{}, output...), []byte("\nsledctl-status "+strconv.Itoa(status)+"\n")...)
		out, got, found := splitStatus(printed)
		if !found || got != status || string(out) != string(output) {
			t.Errorf("%q: got %q, %d, %v", printed, out, got, found)
		}
	})
}
