package commands_test

import (
	"sync"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
)

// helios is a small sled on which zones are installed from images.
func helios() sim.Options {
	o := sledtest.Small()
	o.Mode = world.Helios
	return o
}

// repeatable is a source of ids that gives the same ones for the same name.
func repeatable(name string) func() string {
	var mu sync.Mutex
	n := uint64(0)
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return uuid.NewSHA1(uuid.NameSpaceOID, []byte(name+" "+string(rune('0'+n)))).String()
	}
}
