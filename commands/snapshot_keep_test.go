package commands_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/test/sledtest"
)

// A schedule of cron's: each hour a snapshot, of which the last two stay, and the last of each of two days. What has a name
// of its own stays, and so does one that a volume is a clone of.
func TestAScheduleKeepsWhatItsRuleSays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := sledtest.New(t, sledtest.Small(), "")
		s.Run("bootstrap")
		s.Run("instance ensure web1 --disk size=1G --disk size=1G,thin")
		names := func() string {
			return strings.Join(strings.Fields(s.Run("instance snapshot list web1 -H --columns name")), " ")
		}
		s.Run("instance snapshot create web1 by-hand")
		const take = "instance snapshot create web1 --keep hourly=2,daily=2"
		for range 3 {
			s.Run(take)
			time.Sleep(time.Hour)
		}
		first := strings.Fields(names())
		if len(first) != 3 || first[0] != "by-hand" {
			t.Fatalf("%q", first)
		}
		s.Run("volume create scratch --image web1@" + first[1] + ":1 --thin")
		if dry := s.Run(take + " -n"); strings.Count(dry, "zfs.destroy") != 0 || strings.Count(dry, "zfs.snapshot-all") != 1 {
			t.Errorf("with a clone of the oldest: %s", dry)
		}
		s.Run(take)
		again := names()
		s.Run(take) // in the same minute
		if got := names(); got != again || !strings.HasPrefix(got, strings.Join(first, " ")) || strings.Count(got, "Z") != 3 {
			t.Errorf("%s, then %s", again, got)
		}
		s.Run("volume delete scratch")
		time.Sleep(time.Hour)
		if dry := s.Run(take + " -n"); strings.Count(dry, "zfs.destroy") != 4 {
			t.Errorf("two of two disks are to go: %s", dry)
		}
		s.Run(take)
		if got := names(); strings.Count(got, "Z") != 2 || !strings.HasPrefix(got, "by-hand ") {
			t.Errorf("%s", got)
		}
		time.Sleep(24 * time.Hour)
		s.Run(take)
		time.Sleep(time.Hour)
		s.Run(take)
		if got := names(); strings.Count(got, "Z") != 3 {
			t.Errorf("of two days: %s", got)
		}
		if out := s.Run("reap -n -H --columns verdict"); strings.Contains(out, "orphan") || strings.Contains(out, "unknown") {
			t.Errorf("reap: %s", out)
		}
		for line, want := range map[string]string{
			"instance snapshot create web1":                        "a name for the snapshot is missing",
			"instance snapshot create web1 one --keep daily=1":     "want no name",
			"instance snapshot create web1 --keep hourly=1,yearly": `--keep "hourly=1,yearly": want hourly=N, daily=N`,
		} {
			if a := s.Try(line); a.Exit != 2 || !strings.Contains(a.Errs, want) {
				t.Errorf("%s: exit %d: %s", line, a.Exit, a.Errs)
			}
		}
	})
}
