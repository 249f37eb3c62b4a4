package commands_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/commands/terminal/screen"
	"github.com/sledctl/sledctl/commands/top"
	"github.com/sledctl/sledctl/docs/pictures/emulator"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/test/sledtest"
)

// topScreen is a top on a terminal that is none.
type topScreen struct {
	t    *testing.T
	desk *desk
	ran  chan string // the commands that were started
	ends chan error  // it has ended
}

// desk is a terminal: somebody types, and sees the screen.
type desk struct {
	mu      sync.Mutex
	typed   []string
	escaped bool // ESC was the last key
	screen  *emulator.Screen
}

// Read gives the keys one by one: behind an ESC nothing comes for a while.
func (d *desk) Read(p []byte) (int, error) {
	time.Sleep(time.Millisecond)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.typed) == 0 || d.escaped {
		d.escaped = false
		return 0, nil
	}
	n := copy(p, d.typed[0])
	d.escaped, d.typed = d.typed[0] == "\x1b", d.typed[1:]
	return n, nil
}

func (d *desk) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(p), d.screen.Write(string(p))
}

func (d *desk) size() (width, height int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.screen.Width, d.screen.Height
}

func (d *desk) resize(width, height int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.screen = emulator.New(width, height)
}

func (d *desk) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.screen.Text()
}

// startTop starts one on the sled of a directory.
func startTop(t *testing.T, sled string) *topScreen {
	t.Helper()
	s := &topScreen{t: t, desk: &desk{screen: emulator.New(100, 30)}, ran: make(chan string, 10), ends: make(chan error, 1)}
	environ := []string{"SLEDCTL_HOST=sim:" + sled, "TERM=xterm", "HOME=" + t.TempDir()}
	streams, _, _ := terminal.Buffers(terminal.Pretended{Terminal: true, Size: s.desk.size, Environ: environ})
	streams.In.Reader, streams.Out.Writer = s.desk, s.desk
	taken, err := screen.Open(streams.In, streams.Out)
	if err != nil {
		t.Fatal(err)
	}
	env := cli.NewEnv(streams, environ, "")
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() {
		s.ends <- top.Run(ctx, top.Top{
			Env: env, Screen: taken,
			Run: func(ctx context.Context, streams *terminal.Streams, environ, words []string) int {
				return commands.Run(ctx, cli.NewEnv(streams, environ, ""), words)
			},
			Start: func(_, words []string, lends bool) (<-chan top.Ended, error) {
				s.ran <- strings.Join(words, " ")
				ended := make(chan top.Ended, 1)
				ended <- top.Ended{Printed: "printed by " + words[1]}
				return ended, nil
			},
		})
	}()
	return s
}

// shows waits until the screen shows something.
func (s *topScreen) shows(want string) {
	s.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(s.desk.text(), want); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%q is not on the screen:\n%s", want, s.desk.text())
		}
	}
}

func (s *topScreen) types(keys string) {
	s.desk.mu.Lock()
	defer s.desk.mu.Unlock()
	s.desk.typed = append(s.desk.typed, strings.Split(strings.ReplaceAll(keys, "\n", "\r"), "")...)
}

// On the drill sled top shows what is wrong, filters as a list does, opens what other commands
// print, shows each command before it asks for it, and gives the terminal back.
func TestTopOnTheDrill(t *testing.T) {
	if sledtest.Quick() {
		t.Skip("making the drill sled takes seconds")
	}
	sled := filepath.Join(t.TempDir(), "drill")
	streams, _, errs := terminal.Buffers(terminal.Pretended{})
	if exit := commands.Run(t.Context(), cli.NewEnv(streams, []string{"SLEDCTL_HOST=sim:" + sled, "HOME=" + t.TempDir()}, ""), []string{"sim", "drill", "--ram-push", "1h", sled}); exit != 0 {
		t.Fatal(errs)
	}
	s := startTop(t, sled)
	s.shows("40 VMs: 34 running, 1 migrating, 3 failed, 2 stopped")
	s.shows("sled TROUBLE 8 problems")
	s.shows("as ci3")

	s.types("/memroy>4G\n")
	s.shows(`did you mean "memory"?`)
	s.types("/")
	s.types("\x15") // ^U
	s.types("state!=running\n")
	s.shows("6 of 40 VMs: 1 migrating, 3 failed, 2 stopped   /filter: state!=running")
	s.types("jj")
	s.shows(">mail01")
	s.types("e")
	s.shows("sledctl instance ensure mail01   run it? [y/N]")
	s.types("n")
	s.shows("not run: sledctl instance ensure mail01")
	if len(s.ran) > 0 {
		t.Errorf("%q was run without y", <-s.ran)
	}
	s.types("ey")
	s.shows("sledctl instance ensure mail01: done")
	if ran := <-s.ran; ran != "instance ensure mail01" {
		t.Errorf("%q was run", ran)
	}

	for _, view := range []struct{ keys, shows string }{
		{"\n", "sledctl instance get mail01"}, {"\x1bd", "sledctl instance get mail01 --diff"}, {"\x1bl", "sledctl instance logs mail01"},
		{"2", "u2:3     oxp_6eb758c7  ABSENT"}, {"3", "no operation is at work"}, {"4", "stop               dev-6"}, {"\n", "sledctl trace "}, {"q", "stop               dev-6"}, {"5", "printed by ensure"},
		{"?", "e s r x m"}, {"q1", ">mail01"},
	} {
		s.types(view.keys)
		s.shows(view.shows)
	}
	s.desk.resize(60, 20)
	s.shows("NET in/out  SINCE")
	s.types("ooo")
	s.shows("sorted by -net")
	s.types("L")
	if ran := <-s.ran; ran != "instance logs mail01 --follow" {
		t.Errorf("%q was run", ran)
	}
	s.types("q")
	select {
	case err := <-s.ends:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("q does not end it")
	}
}

// A panic while top looks ends it as an error, with the terminal given back.
func TestTopGivesTheTerminalBackAfterAPanic(t *testing.T) {
	streams, out, _ := terminal.Buffers(terminal.Pretended{Terminal: true, Environ: []string{"TERM=xterm"}})
	streams.In.Reader = &desk{}
	taken, err := screen.Open(streams.In, streams.Out)
	if err != nil {
		t.Fatal(err)
	}
	err = top.Run(t.Context(), top.Top{
		Env: cli.NewEnv(streams, nil, ""), Screen: taken,
		Run: func(context.Context, *terminal.Streams, []string, []string) int { panic("a defect") },
	})
	if !errors.Is(err, plan.ErrPanic) {
		t.Errorf("ends with %v", err)
	}
	if !strings.HasSuffix(out.String(), "\x1b[?1049l") {
		t.Error("the screen is not closed")
	}
}
