package matrix

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/sledtest"
)

// A crash while the sled recovers from a crash: the verb is killed at each of its
// points, then the second run at each of its own, and the third must lead where
// one would have led. It takes many minutes: make soak.
func TestKillPairs(t *testing.T) {
	if !sledtest.Soak() {
		t.Skip("takes many minutes: SLEDCTL_SOAK=1 runs it")
	}
	var pairs atomic.Int64
	t.Run("rows", func(t *testing.T) {
		for _, r := range dealt() {
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				r.sleds[0].pairs(t, &pairs)
			})
		}
	})
	if t.Failed() {
		t.Logf("%d pairs, and what is told above", pairs.Load())
		return
	}
	fmt.Printf("kill matrix: %d pairs, 0 leaks\n", pairs.Load())
}

// pairs kills at each point of one verb, and then about 24 times in the second
// run: at points that lie evenly apart, the first of which shifts by one from each
// first kill to the next. The ways of being killed take turns, so that each follows
// each.
func (r row) pairs(t *testing.T, count *atomic.Int64) {
	var g *stage
	files := t.TempDir()
	synctest.Test(t, func(t *testing.T) { g = r.stage(t, files) })
	apart := 1 + g.points[sledtest.AtChange]/24
	ways := []host.CrashMode{host.CrashBefore, host.CrashAfter, host.CrashDuring}
	for n := 1; n <= g.points[sledtest.AtChange]; n++ {
		half := *g
		first := ""
		synctest.Test(t, func(t *testing.T) {
			s := g.open(t)
			first, _ = s.kill(n, ways[n%len(ways)])
			half.saved, half.at = s.Clone(), time.Now()
			if s.There != nil { // the machine may be on either by now
				half.other = s.There.Clone()
			}
		})
		for m, more := 1+n%apart, !t.Failed(); more; m += apart {
			synctest.Test(t, func(t *testing.T) { more = half.open(t).again(first, m, ways[(n/len(ways)+m/apart)%len(ways)]) })
			if more {
				count.Add(1)
			}
			more = more && !t.Failed()
		}
	}
}

// again kills the second run, and holds what the third does against the laws. It
// is false if the second has fewer points.
func (s *scene) again(first string, m int, how host.CrashMode) bool {
	s.T.Helper()
	witness := s.witness(s.Host())
	dying := host.Crash(witness, m, how)
	s.On(s.T.Context(), dying, s.line)
	dying.Wait()
	if !dying.Crashed() {
		return false
	}
	at := fmt.Sprintf("%s, then killed %s", first, dying.Where())
	witness.law(s.T, at)
	s.laws(at)
	return true
}

// sent has what zfs send prints of a volume in a file that is called by the GUID of the snapshot.
func (s *scene) sent() {
	s.Run("volume create away --size 1M")
	at := s.Value("volume list -H --columns dataset") + "@s"
	s.Command("zfs snapshot " + at)
	s.plan = fmt.Sprint(s.files, "/", strings.TrimSpace(s.Command("zfs get -Hp -o value guid "+at)))
	if err := os.WriteFile(s.plan, []byte(s.Command("zfs send "+at)), 0o600); err != nil {
		s.T.Fatal(err)
	}
	s.Command("zfs destroy " + at)
	s.Run("volume delete away")
}

// aWebServer has an image.
func (s *scene) aWebServer() {
	if err := s.Sled.InitWeb(s.T.Context(), "images.example:80", "../../image/testdata"); err != nil {
		s.T.Fatal(err)
	}
}
