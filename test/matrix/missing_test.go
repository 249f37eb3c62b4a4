package matrix

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/sledtest"
)

// lacking is a host without one program.
type lacking struct {
	host.Host
	program string
	wanted  *atomic.Bool // whether anybody asked for it
}

func (l lacking) Run(ctx context.Context, c host.Command) (host.Result, error) {
	if err := l.Lookup(c.Argv()[0]); err != nil {
		return host.Result{}, err
	}
	return l.Host.Run(ctx, c)
}

func (l lacking) Lookup(programs ...string) error {
	for _, p := range programs {
		if p == l.program {
			l.wanted.Store(true)
			return fmt.Errorf("%s: %w (/usr/sbin:/usr/bin)", p, host.ErrNoCommand)
		}
	}
	return nil
}

// prepared is a sled on which some command lines were run.
func prepared(t *testing.T, lines []string) *sledtest.Operator {
	t.Helper()
	s := sledtest.New(t, sledtest.Small(), "")
	for _, line := range lines {
		if line != "REBOOT" {
			s.Run(line)
		} else if err := s.Reboot(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// keptOf is what the ledger holds.
func keptOf(s *sledtest.Operator) string {
	s.T.Helper()
	files := s.Host().Files()
	disks, err := files.ReadDir("/pool/int")
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil || len(disks) != 1 {
		s.T.Fatalf("%d M.2 disks, %v", len(disks), err)
	}
	data, err := host.ReadFile(files, path.Join("/pool/int", disks[0].Name, "config/sledctl/ledger.jsonl"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.T.Fatal(err)
	}
	return string(data)
}

// A command that needs a program which is missing refuses and names it before it
// changes anything, also if it would need that program last.
func TestAMissingProgramIsRefusedBeforeAnythingIsChanged(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of sleds, one after another")
	}
	refused := map[string]int{}
	for _, stage := range []struct{ prepare, lines []string }{
		{nil, []string{"bootstrap"}},
		{[]string{"bootstrap"}, []string{
			"instance ensure web1", "vnic create --instance web1", "vnic create --over net0",
		}},
		{[]string{"bootstrap", "vnic create --instance web1"}, []string{"zone create --instance web1"}},
		{[]string{"bootstrap", "vnic create --instance web1", "zone create --instance web1"}, []string{"zone boot --instance web1"}},
		{[]string{"bootstrap", "instance ensure web1"}, []string{
			"instance ensure web1 --cpus 4 --recreate", "instance stop web1", "instance delete web1", "instance reboot web1",
		}},
		{[]string{"bootstrap", "instance ensure web1", "instance stop web1"}, []string{"instance start web1", "base ensure"}},
		{[]string{"bootstrap", "instance ensure web1", "REBOOT"}, []string{"bootstrap", "reap", "instance ensure web1", "instance delete web1"}},
	} {
		for _, line := range stage.lines {
			s := prepared(t, stage.prepare)
			before, kept := s.Comparable(), keptOf(s)
			for _, program := range []string{
				"zoneadm", "zonecfg", "zlogin", "dladm", "ipadm", "route", "netstat", "zfs", "zpool", "svcs", "svcprop", "svcadm", "svccfg", "uname",
			} {
				var wanted atomic.Bool
				a := s.On(t.Context(), lacking{s.Host(), program, &wanted}, line)
				if !wanted.Load() || a.Exit == 0 { // It was done without.
					s = prepared(t, stage.prepare)
					before, kept = s.Comparable(), keptOf(s)
					continue
				}
				refused[program]++
				if a.Exit != 8 || !strings.Contains(a.Errs, program+": command not found on the command path (/usr/sbin:/usr/bin)") {
					t.Errorf("sledctl %s without %s: exit %d: %s", line, program, a.Exit, a.Errs)
				}
				if diff := cmp.Diff(before, s.Comparable()); diff != "" {
					t.Errorf("sledctl %s without %s changed the sled:\n%s", line, program, diff)
					s = prepared(t, stage.prepare)
				}
				if keptOf(s) != kept {
					t.Errorf("sledctl %s without %s wrote into the ledger", line, program)
				}
			}
		}
	}
	t.Log(refused)
}
