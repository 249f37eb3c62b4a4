// Pictures draws what an operator sees on a terminal, as SVG files for the manual.
//
// usage: go run ./docs/pictures PATH-TO-SLEDCTL DIR
//
// The sleds are simulated ones, made for this in a folder that is removed again. The
// program runs on a pseudo-terminal; what it writes there is drawn as the terminal
// would show it, and a sequence that this package does not know is an error.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sync/errgroup"

	"github.com/sledctl/sledctl/docs/pictures/emulator"
)

// shot is one picture.
type shot struct {
	file          string
	width, height int
	args          string // of sledctl, as an operator types them
	// until is what the screen must show when it is taken; nil: what is left at the end.
	until *regexp.Regexp
	keys  []string // typed before, each as soon as the screen stands still
}

// ofTheDrill are taken on the sled of docs/drill.md, ofTheMorning where forty VMs are
// brought up after a reboot, with the latencies of a published sled.
var (
	ofTheDrill = []shot{
		{file: "status.svg", width: 80, height: 24, args: "status"},
		{file: "instance-list.svg", width: 100, height: 54, args: "instance list"},
		{file: "storage-list.svg", width: 100, height: 40, args: "storage list"},
		{
			file: "top.svg", width: 90, height: 20, args: "top", keys: []string{"", "/", "state!=running", "\r", "", "j", "j", "e"},
			until: regexp.MustCompile(`sled TROUBLE(?s:.*)>mail01(?s:.*)sledctl instance ensure mail01`),
		},
	}
	ofTheMorning = []shot{
		{file: "ensure-all.svg", width: 80, height: 16, args: "instance ensure --all --parallel 8", until: regexp.MustCompile(`(?s)[1-9] of 40 done.*boot the zone.*the VM|[1-9] of 40 done.*the VM.*boot the zone`)},
	}
)

// patience is how long a shot may take.
const patience = 2 * time.Minute

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: pictures PATH-TO-SLEDCTL DIR")
		os.Exit(2)
	}
	if err := draw(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func draw(ctx context.Context, program, dir string) error {
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	sleds, err := os.MkdirTemp("", "sledctl-pictures.")
	if err != nil {
		return err
	}
	defer os.RemoveAll(sleds)
	drill := filepath.Join(sleds, "drill")
	if err := quietly(ctx, program, drill, "sim", "drill", drill); err != nil {
		return err
	}
	if err := take(ctx, program, drill, dir, ofTheDrill); err != nil {
		return err
	}
	morning := filepath.Join(sleds, "morning")
	if err := dawn(ctx, program, morning); err != nil {
		return err
	}
	return take(ctx, program, morning, dir, ofTheMorning)
}

// dawn makes a sled with forty VMs that are to run, and do not.
func dawn(ctx context.Context, program, sled string) error {
	for _, step := range []string{"sim init --latency helios2021", "bootstrap"} {
		if err := quietly(ctx, program, sled, strings.Fields(step)...); err != nil {
			return err
		}
	}
	var made errgroup.Group
	for i := range 40 {
		name := fmt.Sprintf("web%02d", i+1)
		made.Go(func() error {
			return quietly(ctx, program, sled, "instance", "ensure", name, "--cpus", "4", "--memory", "8G", "--nic", "over=net0")
		})
	}
	if err := made.Wait(); err != nil {
		return err
	}
	for _, step := range []string{"sim reboot", "bootstrap"} {
		if err := quietly(ctx, program, sled, strings.Fields(step)...); err != nil {
			return err
		}
	}
	return nil
}

// quietly runs a command whose screen nobody sees.
func quietly(ctx context.Context, program, sled string, args ...string) error {
	cmd := command(ctx, program, sled, args...)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("sledctl %s: %w: %s", strings.Join(args, " "), err, said)
	}
	return nil
}

func command(ctx context.Context, program, sled string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = []string{"SLEDCTL_HOST=sim:" + sled, "TERM=xterm-256color", "PATH=" + os.Getenv("PATH"), "HOME=" + sled, "TZ=UTC", "LANG=C.UTF-8"}
	cmd.WaitDelay = time.Second
	return cmd
}

func take(ctx context.Context, program, sled, dir string, shots []shot) error {
	for _, s := range shots {
		seen, err := s.take(ctx, program, sled)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, s.file), []byte(svg("sledctl "+s.args, seen)), 0o666)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.file, err)
		}
		fmt.Println(filepath.Join(dir, s.file))
	}
	return nil
}

// take runs the command on a terminal until it shows what is wanted.
func (s shot) take(ctx context.Context, program, sled string) (*emulator.Screen, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := command(ctx, program, sled, strings.Fields(s.args)...)
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: uint16(s.height), Cols: uint16(s.width)})
	if err != nil {
		return nil, err
	}
	defer func() {
		cancel()
		_ = terminal.Close()
		_ = cmd.Wait() // it may have been stopped in the middle
	}()
	seen, keys := emulator.New(s.width, s.height), s.keys
	for said := range chunks(terminal) {
		switch {
		case said == "" && len(keys) > 0: // it waits for somebody
			if _, err := io.WriteString(terminal, keys[0]); err != nil {
				return nil, err
			}
			keys = keys[1:]
		default:
			if err := seen.Write(said); err != nil {
				return nil, err
			}
		}
		if s.until != nil && len(keys) == 0 && s.until.MatchString(seen.Text()) {
			return seen, nil
		}
	}
	if s.until != nil {
		return nil, fmt.Errorf("the screen has never shown %q, and at the end:\n%s", s.until, seen.Text())
	}
	return seen, nil
}

// stands is how long a screen is still when its program waits for a key.
const stands = 400 * time.Millisecond

// chunks gives what is written, and "" whenever nothing is for a while.
func chunks(in io.Reader) <-chan string {
	raw, out := make(chan string), make(chan string)
	go func() {
		defer close(raw)
		buffer := make([]byte, 32<<10)
		for {
			n, err := in.Read(buffer)
			if n > 0 {
				raw <- string(buffer[:n])
			}
			if err != nil { // EIO: its last writer has ended
				return
			}
		}
	}()
	go func() {
		defer close(out)
		for {
			select {
			case said, more := <-raw:
				if !more {
					return
				}
				out <- said
			case <-time.After(stands):
				out <- ""
			}
		}
	}()
	return out
}
