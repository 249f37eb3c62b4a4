package commands_test

import (
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/sledtest"
)

var uuidText = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// An operator who meets another operation at a VM reads the VM's name, never its UUID: whatever she
// has typed, and whether or not the other says who it is.
func TestABusyVMIsNamed(t *testing.T) {
	t.Parallel()
	for says, holder := range map[string]string{
		"nothing": "",
		"no name": `{"pid":4711,"verb":"instance migrate","since":"2026-01-01T00:00:00Z"}`,
		"all":     `{"pid":4711,"verb":"instance ensure","name":"web1","user":"anna","step":"zone.boot","at":7,"steps":16,"since":"2026-01-01T00:00:00Z"}`,
	} {
		t.Run("the other says "+says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := running(t)
				id := s.Value("instance get web1 -H --columns id")
				l, err := s.Host().Files().Lock(t.Context(), operation.LockName(sledtest.RunDir, "instance/"+id), host.TryExclusive)
				if err == nil {
					err = l.Write([]byte(holder))
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, line := range []string{
					"instance ensure web1 --cpus 4", "instance stop web1", "instance stop " + id, "instance stop web* --yes",
					"instance reboot web1", "instance delete web1", "instance delete " + id, "vnic create --instance web1",
					"zone create --instance web1", "zone boot --instance web1", "zone address --instance web1",
				} {
					a := s.Try(line)
					if a.Exit != 6 || !strings.Contains(a.Errs, "web1 is being worked on by ") || uuidText.MatchString(a.Errs) {
						t.Errorf("%s: exit %d: %s", line, a.Exit, a.Errs)
					}
				}
			})
		})
	}
}

// A command on a zone that meets an operation at work on its VM ends as a command on the VM does:
// it names the VM, by whichever name the zone was typed, and can wait.
func TestAZoneThatIsWorkedOnIsNamedByItsVM(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := running(t)
		zone := s.Value("instance get web1 -H --columns zone")
		h := &halting{Host: s.Host(), word: "halt", at: make(chan struct{}), let: make(chan struct{})}
		stopped := make(chan sledtest.Answer, 1)
		go func() { stopped <- s.On(t.Context(), h, "instance stop web1") }()
		<-h.at
		for _, line := range []string{"zone halt web1", "zone halt web1 -n", "zone halt " + zone, "zone delete " + zone} {
			a := s.Try(line)
			if a.Exit != 6 || !strings.Contains(a.Errs, "web1 is being worked on by ") || !strings.Contains(a.Errs, "instance stop") || uuidText.MatchString(a.Errs) {
				t.Errorf("%s: exit %d: %s", line, a.Exit, a.Errs)
			}
		}
		waited := make(chan sledtest.Answer, 1)
		go func() { waited <- s.On(t.Context(), s.Host(), "zone delete "+zone+" --wait") }()
		synctest.Wait()
		close(h.let)
		for line, ended := range map[string]chan sledtest.Answer{"instance stop": stopped, "zone delete --wait": waited} {
			if a := <-ended; a.Exit != 0 || uuidText.MatchString(a.Errs) {
				t.Errorf("%s: exit %d: %s", line, a.Exit, a.Errs)
			}
		}
	})
}
