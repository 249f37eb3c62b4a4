package system

import (
	"errors"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/hosttest"
)

func TestParseKernel(t *testing.T) {
	for version, want := range map[string]Kernel{
		"omnios-r151046-7b3f3d5b6d": {Distribution: OmniOS, Release: 151046},
		"omnios-master-7b3f3d5b6d":  {Distribution: OmniOS},
		"helios-2.0.23000":          {Distribution: Helios},
		"joyent_20240111T000000Z":   {Distribution: SmartOS},
		"illumos-5a1b2c":            {},
		"":                          {},
	} {
		want.Version = version
		if got := ParseKernel(version + "\n"); got != want {
			t.Errorf("%s: %+v, want %+v", version, got, want)
		}
	}
}

// The form is that of the examples of ppriv(1).
func TestParsePrivileges(t *testing.T) {
	got, err := ParsePrivileges("387:   -sh\nflags = <none>\n        E: basic\n        I: basic\n        P: basic\n        L: all\n")
	if err != nil || got != (Privileges{Effective: "basic", Permitted: "basic"}) || got.All() {
		t.Errorf("%+v, %v", got, err)
	}
	for _, out := range []string{"", "387:   -sh\n", "ppriv: cannot examine 387: no such process\n", "E: all\n"} {
		if got, err := ParsePrivileges(out); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %+v, %v", out, got, err)
		}
	}
}

func FuzzParsePrivileges(f *testing.F) {
	f.Add("387:   -sh\nflags = <none>\n\tE: all\n\tP: all\n")
	f.Fuzz(func(t *testing.T, out string) {
		if p, err := ParsePrivileges(out); err == nil && p.Effective == "" {
			t.Errorf("%q: %+v", out, p)
		}
	})
}

func TestCommandLines(t *testing.T) {
	for want, c := range map[string]host.Command{"uname -v": kernelCommand(), "zonename": zoneCommand(), "ppriv 77": privilegesCommand(77)} {
		if got := c.Shell(); got != want || !c.ReadOnly {
			t.Errorf("%s, want %s, read-only %v", got, want, c.ReadOnly)
		}
	}
}

func TestASledSaysWhatItIs(t *testing.T) {
	for mode, want := range map[world.Mode]Distribution{world.OmniOS: OmniOS, world.Helios: Helios, world.SmartOS: SmartOS} {
		sled := sim.New(sim.Options{Mode: mode}, hosttest.Files)
		t.Cleanup(sled.Close)
		h := host.ReadOnly(sled.Host())
		kernel, err := QueryKernel(t.Context(), h)
		zone, zerr := QueryZone(t.Context(), h)
		privileges, perr := QueryPrivileges(t.Context(), h)
		release, rerr := Release(h.Files())
		if err := errors.Join(err, zerr, perr, rerr); err != nil || kernel.Distribution != want || zone != "global" || !privileges.All() || release == "" {
			t.Errorf("%s: %+v, %q, %+v, %q, %v", mode, kernel, zone, privileges, release, err)
		}
	}
}
