package key

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest"
)

// printer is a machine whose every command ends like this.
type printer struct {
	machine
	result host.Result
	err    error
	asked  []string
}

// Run is part of host.Host.
func (p *printer) Run(_ context.Context, c host.Command) (host.Result, error) {
	if !c.ReadOnly {
		return host.Result{}, errors.New("its output would go through a file")
	}
	p.asked = append(p.asked, c.Shell())
	return p.result, p.err
}

func TestDevelopment(t *testing.T) {
	d := Development{}
	s, err := d.Secret(t.Context(), nil, 0)
	if err != nil || secretOf(s)[31] != 0x1d || saltOf(s) != [Size]byte{} {
		t.Error(err)
	}
	if _, err := d.Secret(t.Context(), nil, 1); !errors.Is(err, ErrNoEpoch) || !errors.Is(err, host.ErrNotFound) {
		t.Error(err)
	}
	if latest, err := d.Latest(t.Context(), nil); latest != 0 || err != nil {
		t.Error(latest, err)
	}
	if w := d.Warning(); !strings.Contains(w, "public development key") || !strings.Contains(w, "anyone who has a disk") {
		t.Errorf("it says too little: %q", w)
	}
	if (File{}).Warning()+(Command{}).Warning() != "" {
		t.Error("others warn")
	}
}

func write(t *testing.T, f host.Files, name, text string, mode fs.FileMode) {
	t.Helper()
	if err := host.WriteFile(f, name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func TestSecretsOfAFile(t *testing.T) {
	for _, mode := range []fs.FileMode{0o600, 0o400} {
		h := machine{hosttest.Memory()}
		write(t, h.files, "/keys", "3 "+digits+"\n12 "+ones+"\n4 "+ones+"\n", mode)
		f := File{"/keys"}
		s, err := f.Secret(t.Context(), h, 3)
		if err != nil || [Size]byte(secretOf(s)) != counting() {
			t.Error(err)
		}
		if latest, err := f.Latest(t.Context(), h); latest != 12 || err != nil {
			t.Error(latest, err)
		}
		if _, err := f.Secret(t.Context(), h, 5); !errors.Is(err, ErrNoEpoch) || !strings.Contains(err.Error(), "/keys") {
			t.Error(err)
		}
	}
}

func TestAFileThatIsNotTaken(t *testing.T) {
	memory := hosttest.Memory()
	h := machine{memory}
	if err := memory.Mkdir("/dir", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := memory.Symlink("/good", "/link"); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]fs.FileMode{"/good": 0o600, "/group": 0o640, "/all": 0o604, "/run": 0o601} {
		write(t, memory, name, "1 "+digits+"\n", mode)
	}
	write(t, memory, "/bad", "1 "+digits[1:]+"\n", 0o600)
	write(t, memory, "/huge", strings.Repeat("#\n", maxFile), 0o600)
	memory.Fail(func(op, name string) error {
		if op == "open" && name == "/broken" {
			return syscall.EIO
		}
		return nil
	})
	for name, want := range map[string]error{
		"/no": fs.ErrNotExist, "/dir": host.ErrRefused, "/link": host.ErrRefused, "/group": host.ErrRefused, "/all": host.ErrRefused,
		"/run": host.ErrRefused, "/bad": ErrSyntax, "/huge": ErrSyntax,
	} {
		_, err := File{name}.Secret(t.Context(), h, 1)
		_, lerr := File{name}.Latest(t.Context(), h)
		for _, err := range []error{err, lerr} {
			if !errors.Is(err, want) || errors.Is(err, ErrNoEpoch) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
		}
	}
}

func TestSecretsOfACommand(t *testing.T) {
	salt := [Size]byte{9}
	c := Command{Argv: []string{"sled-keys", "--rack", "a b"}, Salt: salt}
	p := &printer{result: host.Result{Stdout: []byte(digits + "\n")}}
	s, err := c.Secret(t.Context(), p, 3)
	if err != nil || [Size]byte(secretOf(s)) != counting() || saltOf(s) != salt {
		t.Error(err)
	}
	p.result.Stdout = []byte("7\n")
	if latest, err := c.Latest(t.Context(), p); latest != 7 || err != nil {
		t.Error(latest, err)
	}
	if diff := cmp.Diff([]string{"sled-keys --rack 'a b' 3", "sled-keys --rack 'a b' latest"}, p.asked); diff != "" {
		t.Error(diff)
	}
}

func TestACommandThatFailsTellsNoSecret(t *testing.T) {
	c := Command{Argv: []string{"sled-keys"}}
	for name, p := range map[string]*printer{
		"exit 1, the secret printed": {result: host.Result{Exit: 1, Stdout: []byte(digits)}},
		"too long":                   {result: host.Result{Stdout: []byte(digits + digits)}},
		"two lines":                  {result: host.Result{Stdout: []byte(digits + "\n" + digits + "\n")}},
		"too short":                  {result: host.Result{Stdout: []byte(digits[2:])}},
		"nothing":                    {},
		"words":                      {result: host.Result{Exit: 2, Stderr: []byte("no trust quorum\n")}},
		"not there":                  {err: host.ErrNoCommand},
	} {
		_, err := c.Secret(t.Context(), p, 3)
		_, lerr := c.Latest(t.Context(), p)
		for _, err := range []error{err, lerr} {
			if err == nil || strings.Contains(err.Error(), digits[4:12]) || !strings.Contains(err.Error(), "sled-keys") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if p.result.Stderr != nil && !strings.Contains(err.Error(), "no trust quorum") {
			t.Errorf("%s: the command's words are lost: %v", name, err)
		}
		if p.err != nil && !errors.Is(err, p.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (Command{}).Secret(t.Context(), &printer{}, 1); err == nil {
		t.Error("no command at all")
	}
}

func TestARingAsksOnceForAnEpoch(t *testing.T) {
	c := Command{Argv: []string{"sled-keys"}}
	p := &printer{err: host.ErrNoCommand}
	r := NewRing(c, "")
	if _, err := r.Key(t.Context(), p, 3, "a"); !errors.Is(err, host.ErrNoCommand) {
		t.Error(err)
	}
	p.err, p.asked, p.result.Stdout = nil, nil, []byte(digits)
	seen := map[string]bool{}
	for _, identity := range []string{"a", "b", "a"} {
		k, err := r.Key(t.Context(), p, 3, identity)
		if err != nil || k.Epoch != 3 || k.Identity() != identity || !strings.HasPrefix(k.Location(), "file://"+DefaultDir+"/") {
			t.Errorf("%v, %v", k, err)
		}
		seen[string(bytesOf(k))] = true
	}
	if len(p.asked) != 1 || len(seen) != 2 {
		t.Errorf("asked %q, %d keys", p.asked, len(seen))
	}
	p.result.Stdout = []byte("3\n")
	for range 3 {
		if latest, err := r.Latest(t.Context(), p); latest != 3 || err != nil {
			t.Error(latest, err)
		}
	}
	if len(p.asked) != 2 {
		t.Errorf("asked %q", p.asked)
	}
	if r.Source().String() != "key command sled-keys" || r.Dir() != DefaultDir {
		t.Error(r.Source(), r.Dir())
	}
}

// TestTheOutputOfARealKeyCommandTouchesNoFile runs one through real processes.
func TestTheOutputOfARealKeyCommandTouchesNoFile(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\n[ $1 = 3 ] && echo " + digits + " || { echo no epoch $1 >&2; exit 1; }\n"
	if err := os.WriteFile(dir+"/sled-keys", []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	run := t.TempDir()
	h := host.NewIllumos(host.IllumosOptions{CommandPath: []string{dir, "/usr/bin", "/bin"}, RunDir: run})
	var events []host.Event
	traced := host.Trace(h, func(e host.Event) { events = append(events, e) })
	s, err := Command{Argv: []string{"sled-keys"}}.Secret(t.Context(), traced, 3)
	if err != nil || [Size]byte(secretOf(s)) != counting() {
		t.Error(err)
	}
	if _, err := (Command{Argv: []string{"sled-keys"}}).Secret(t.Context(), traced, 4); err == nil || !strings.Contains(err.Error(), "no epoch 4") {
		t.Error(err)
	}
	if len(events) != 2 {
		t.Errorf("%d events", len(events))
	}
	for _, e := range events {
		if strings.Contains(e.Line.Text+e.Stderr+e.Error, digits[4:12]) {
			t.Errorf("the trace shows it: %+v", e)
		}
	}
	if list, err := os.ReadDir(run); err != nil || len(list) > 0 {
		t.Errorf("files: %v, %v", list, err)
	}
}
