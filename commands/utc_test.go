package commands_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
)

// A terminal shows the clock of the sled's time zone, and with --utc that of UTC.
func TestClockTimesAreLocalOrInUTC(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("+14", 14*60*60)
	environ := []string{"SLEDCTL_HOST=sim:" + filepath.Join(t.TempDir(), "sled"), "TERM=dumb", "HOME=" + t.TempDir()}
	run := func(line string) string {
		streams, out, errs := terminal.Buffers(terminal.Pretended{Terminal: true, Width: 140, Environ: environ})
		env := cli.NewEnv(streams, environ, "")
		env.Now = func() time.Time { return time.Now().In(zone) }
		if exit := commands.Run(t.Context(), env, strings.Fields(line)); exit != 0 {
			t.Fatalf("%s: exit %d: %s", line, exit, errs)
		}
		return out.String()
	}
	run("bootstrap")
	run("instance ensure web1")
	clock := regexp.MustCompile(`\d\d:\d\d:\d\d`)
	for _, line := range []string{"events --last 1", "status", "instance logs web1 --tail 1"} {
		var at [2]time.Time
		for i, flag := range []string{" --utc", ""} {
			shown := clock.FindString(run(line + flag))
			var err error
			if at[i], err = time.Parse(time.TimeOnly, shown); err != nil {
				t.Fatalf("%s%s: no clock time: %v", line, flag, err)
			}
		}
		apart := (at[1].Sub(at[0]) + 24*time.Hour) % (24 * time.Hour)
		if apart < 14*time.Hour || apart > 14*time.Hour+time.Minute {
			t.Errorf("%s: the sled's clock is %v ahead of UTC, not 14h", line, apart)
		}
	}
}
