package reservoir

import (
	"testing"

	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/test/steptest"
)

func TestSteps(t *testing.T) {
	steptest.Conform(t, steptest.Case{Step: Set{Size: 64 << 30}, Sled: func(t *testing.T) steptest.Sled {
		sled := sim.New(sim.Options{}, hosttest.Files)
		t.Cleanup(sled.Close)
		return steptest.Sled{Host: sled.Host(), State: func() any {
			s, err := Query(t.Context(), sled.Host())
			if err != nil {
				t.Fatal(err)
			}
			return s.Size()
		}}
	}})
}
