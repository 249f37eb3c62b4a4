package hardware

import (
	"testing"

	"github.com/sledctl/sledctl/illumos/kstat"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/hosttest"
)

func TestFamilies(t *testing.T) {
	for cpu, want := range map[kstat.Processor]Family{
		{Vendor: "AuthenticAMD", Family: 25, Model: 1}:   Milan,
		{Vendor: "AuthenticAMD", Family: 25, Model: 17}:  Milan,
		{Vendor: "AuthenticAMD", Family: 26, Model: 2}:   Turin,
		{Vendor: "AuthenticAMD", Family: 26, Model: 17}:  TurinDense,
		{Vendor: "AuthenticAMD", Family: 26, Model: 68}:  Turin,
		{Vendor: "AuthenticAMD", Family: 23, Model: 49}:  Unknown,
		{Vendor: "GenuineIntel", Family: 6, Model: 106}:  Unknown,
		{Vendor: "GenuineIntel", Family: 25, Model: 106}: Unknown,
	} {
		if got := familyOf(cpu); got != want {
			t.Errorf("%+v: %s, want %s", cpu, got, want)
		}
	}
}

// An Oxide sled is called by its board, any other machine by its host name.
func TestTheSimulatedSled(t *testing.T) {
	for mode, want := range map[world.Mode]Board{
		world.Helios: {Part: "913-0000019", Serial: "BRM42220018", Revision: 6},
		world.OmniOS: {Part: "i86pc", Serial: "sled5"},
	} {
		sled := sim.New(sim.Options{Mode: mode, Seed: 5, M2: 1, U2: 1}, hosttest.Files)
		got, err := Look(t.Context(), sled.Host())
		if err != nil || got.Board != want || got.Family != Milan || got.Threads < 2 || got.RAM < 1<<30 {
			t.Errorf("%v: %+v, %v", mode, got, err)
		}
	}
}
