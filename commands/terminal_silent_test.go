package commands_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/sledctl/sledctl/test/sledtest"
)

// words are a text without what breaks its lines.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }

// within waits until the words are on the screen, at most for so long, and returns all since the
// last time that was asked.
func (p *ptyTop) within(limit time.Duration, want string) string {
	p.t.Helper()
	all := ""
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		all += ansi.Strip(p.written())
		if strings.Contains(words(all), want) {
			return all
		}
		if time.Since(start) > limit {
			p.t.Fatalf("%q is not on the screen after %s:\n%s", want, limit, all)
		}
	}
}

// A terminal that answers to no query, as one over a slow line, delays no command: nothing is
// asked, and not one byte more than in a pipe is printed.
func TestATerminalThatNeverAnswers(t *testing.T) {
	if sledtest.Quick() {
		t.Skip("programs are run on terminals")
	}
	dir := t.TempDir()
	piped, err := program(t, dir, "version").Output()
	if err != nil {
		t.Fatal(err)
	}
	took := time.Hour
	for range 5 { // the machine may be busy with something else
		start := time.Now()
		p := startPtyTop(t, program(t, dir, "version"))
		if err := p.cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		took = min(took, time.Since(start))
		p.within(5*time.Second, strings.TrimSpace(string(piped)))
		time.Sleep(20 * time.Millisecond)
		if more := p.written(); strings.TrimSpace(more) != "" {
			t.Errorf("besides its line it prints %q", more)
		}
	}
	if took > 300*time.Millisecond {
		t.Errorf("on a terminal that never answers it takes %s", took)
	}
}

// An operator who presses ^C sees at once what ends first and what is taken back, and that
// a second one stops it; also of a migration that cannot be cancelled any more.
func TestTheFirstSignAfterAnInterrupt(t *testing.T) {
	if sledtest.Quick() {
		t.Skip("slow steps are waited for")
	}
	const generous = 500 * time.Millisecond // 100 ms are meant
	dir := t.TempDir()
	run := func(words ...string) {
		t.Helper()
		if out, err := program(t, dir, words...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", words, err, out)
		}
	}
	run("sim", "init", "--m2", "1", "--u2", "1")
	run("bootstrap")
	t.Run("ensure", func(t *testing.T) {
		run("sim", "fault", "add", "hang", "--match", "zoneadm boot", "--delay", "2s")
		p := startPtyTop(t, program(t, dir, "instance", "ensure", "web1"))
		p.within(10*time.Second, "boot the zone")
		p.types("\x03")
		text := p.within(generous, "again stops at once and leaves it all")
		if want := `web1: "boot the zone" ends first (it cannot be stopped), then 3 things are taken back; ^C again`; !strings.Contains(words(text), want) {
			t.Errorf("after ^C it says:\n%s", text)
		}
		p.ends(130)
		p.within(time.Second, "left nothing")
	})
	t.Run("migrate", func(t *testing.T) {
		run("instance", "ensure", "web2")
		other := "--host=sim:" + filepath.Join(dir, "other")
		run(other, "sim", "init", "--m2", "1", "--u2", "1")
		const config = `[network]
etherstub = "propolis_stub0"
gz_vnic = "propolis_gz0"
guest_link = "net0"
gz_address = "10.78.0.1/16"
underlay = "10.78.0.0/16"
[storage]
slots = "gimlet"
key = "development"
`
		if err := os.WriteFile(filepath.Join(dir, "other/root/etc/sledctl/config.toml"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		run(other, "bootstrap")
		run("sim", "connect", filepath.Join(dir, "other"))
		run(other, "sim", "fault", "add", "slow-migrate", "--match", "propolis * migrate RamPush", "--delay", "4s")
		p := startPtyTop(t, program(t, dir, "instance", "migrate", "web2", "--to-command", "sledctl --host sim:"+filepath.Join(dir, "other")))
		p.within(10*time.Second, "memory is sent, the VM runs on")
		p.types("\x03")
		text := p.within(generous, "again stops at once and leaves it all")
		if want := "web2: its memory moves on (RamPush), which cannot be cancelled now; ^C again"; !strings.Contains(words(text), want) {
			t.Errorf("after ^C it says:\n%s", text)
		}
		p.ends(3)
		p.within(time.Second, "sledctl instance migrate web2 to finish it")
	})
}

// ends waits until the program has ended with this exit code.
func (p *ptyTop) ends(code int) {
	p.t.Helper()
	_ = p.cmd.Wait()
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Errorf("exit %d, want %d: %s", got, code, p.written())
	}
}
