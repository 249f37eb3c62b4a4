package zfs

import (
	"errors"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest"
)

func TestParseAttributes(t *testing.T) {
	const line = "drwxr-xr-x   2 root     root           2 Nov 21 07:00 "
	out := line + "/b\n                {archive,nohidden,noimmutable,nosparse}\n" + line + "/tmp/b\n" +
		line + "/a /b\n                {archive,nohidden,immutable,nosparse}\n"
	got, err := ParseAttributes([]byte(out), []string{"/a /b", "/b", "/tmp/b"})
	want := map[string]string{"/b": "archive,nohidden,noimmutable,nosparse", "/tmp/b": "", "/a /b": "archive,nohidden,immutable,nosparse"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
	for name, out := range map[string]string{
		"nothing":             "",
		"another":             line + "/c\n",
		"twice":               line + "/b\n" + line + "/b\n",
		"cut off":             line + "/b",
		"attributes of none":  "    {archive}\n" + line + "/b\n",
		"attributes twice":    line + "/b\n    {archive}\n    {archive}\n",
		"no braces":           line + "/b\n    archive\n",
		"an entry of another": line + "/b\ntotal 3\n",
	} {
		if got, err := ParseAttributes([]byte(out), []string{"/b"}); !errors.Is(err, ErrSyntax) || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func FuzzParseAttributes(f *testing.F) {
	f.Add([]byte("d /a\n  {immutable}\nd /b\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		got, err := ParseAttributes(out, []string{"/a", "/b"})
		if err != nil && !errors.Is(err, ErrSyntax) || err == nil && len(got) != 2 {
			t.Errorf("%q: %v, %v", out, got, err)
		}
	})
}

func TestProtectFailsOverWhatItDidNotSee(t *testing.T) {
	dirs := func(names ...string) func(*hosttest.MemoryFiles) error {
		return func(f *hosttest.MemoryFiles) (err error) {
			for _, name := range names {
				err = errors.Join(err, f.Mkdir(name, 0o755))
			}
			return err
		}
	}
	moving := Protect{Directory: "/tank/a", Entries: []string{"x"}, Aside: "/tank/old"}
	loosening := moving
	loosening.Loosen = true
	const loosen, fix = "chmod S-ci /tank/a", "chmod S+ci /tank/a"
	for name, c := range map[string]struct {
		step  Protect
		spoil func(*hosttest.MemoryFiles) error
		want  error
		ran   []string
	}{
		"something new lies there": {Protect{Directory: "/tank/a"}, dirs("/tank/a/new"), host.ErrState, nil},
		"more lies there":          {moving, dirs("/tank/a/x", "/tank/a/y"), host.ErrState, []string{fix}},
		"less lies there":          {loosening, dirs(), syscall.ENOENT, []string{loosen, fix}},
		"what is aside is there":   {moving, dirs("/tank/a/x", "/tank/old"), syscall.EEXIST, nil},
		"it is gone":               {Protect{Directory: "/tank/b"}, dirs(), syscall.ENOENT, nil},
		"it is the top":            {Protect{Directory: "/"}, dirs(), nil, nil},
		"something is mounted": {
			Protect{Directory: "/tank/a"}, func(f *hosttest.MemoryFiles) error { return f.SetDevice("/tank/a", 7) }, host.ErrState, nil,
		},
		"a file is in the way": {
			Protect{Directory: "/tank/f"}, func(f *hosttest.MemoryFiles) error { return host.WriteFile(f, "/tank/f", nil, 0o600) }, host.ErrRefused, nil,
		},
	} {
		f := newFake(t)
		if err := c.spoil(f.files); err != nil {
			t.Fatal(err)
		}
		if err := c.step.Do(t.Context(), f); err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if diff := cmp.Diff(c.ran, f.ran); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
