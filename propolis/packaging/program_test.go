package packaging

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/hosttest"
)

func TestParseLibraries(t *testing.T) {
	const out = "\tlibdlpi.so.1 =>\t (file not found)\n\tlibc.so.1 =>\t /lib/libc.so.1\n\tlibm.so.2 =>\t /lib/libm.so.2\n\t/lib/ld.so.1\n"
	want := Libraries{Count: 3, Absent: []string{"libdlpi.so.1"}}
	if diff := cmp.Diff(want, parseLibraries(out)); diff != "" {
		t.Error(diff)
	}
}

func TestReadBuild(t *testing.T) {
	filler := strings.Repeat("x", 1<<20-5)
	for text, want := range map[string]Build{
		"":                               UnknownBuild,
		"Starting":                       UnknownBuild,
		filler + inEachBuild + filler:    OmicronBuild,
		filler + inDevelopments:          DevelopmentBuild,
		inEachBuild + inDevelopments:     DevelopmentBuild,
		filler + inEachBuild + "\x00end": OmicronBuild,
	} {
		if got, err := readBuild(t.Context(), strings.NewReader(text)); got != want || err != nil {
			t.Errorf("%.20q: %s, %v", text, got, err)
		}
	}
	if got, err := readBuild(t.Context(), iotest.OneByteReader(strings.NewReader("a"+inDevelopments))); got != DevelopmentBuild || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := readBuild(t.Context(), iotest.ErrReader(errors.New("no"))); got != UnknownBuild || err == nil {
		t.Errorf("%s, %v", got, err)
	}
}

// A simulated sled's server answers, on a host that changes nothing.
func TestProgram(t *testing.T) {
	for build, want := range map[string]Build{"": DevelopmentBuild, world.OmicronBuild: OmicronBuild} {
		sled := sim.New(sim.Options{Build: build}, hosttest.Files)
		t.Cleanup(sled.Close)
		h := host.ReadOnly(sled.Host())
		p := Program{File: "/opt/oxide/propolis-server/bin/propolis-server", LibraryPath: "/opt/lib"}
		if got, err := p.Version(t.Context(), h); got != "propolis-server 0.1.0" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if got, err := p.Libraries(t.Context(), h); got.Count == 0 || got.Absent != nil || err != nil {
			t.Errorf("%+v, %v", got, err)
		}
		if got, err := p.Build(t.Context(), h.Files()); got != want || err != nil {
			t.Errorf("%s, %v", got, err)
		}
		none := Program{File: "/opt/none/propolis-server"}
		var failed *host.CommandError
		if _, err := none.Version(t.Context(), h); !errors.As(err, &failed) || failed.Result.Exit != 127 {
			t.Errorf("%v", err)
		}
		if _, err := none.Libraries(t.Context(), h); !errors.As(err, &failed) {
			t.Errorf("%v", err)
		}
		if _, err := none.Build(t.Context(), h.Files()); err == nil {
			t.Error("a file that does not exist was read")
		}
	}
}
