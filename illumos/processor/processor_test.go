package processor

import (
	"errors"
	"testing"

	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/hosttest"
)

func TestOnlineProcessorsAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		said string
		want int
	}{
		"two, and one that is not": {"0\ton-line   since 11/26/2026 09:00:00\n1\toff-line  since 11/26/2026 09:00:00\n2\ton-line   since 11/26/2026 09:00:00\n", 2},
		"one without interrupts":   {"0\ton-line   since 11/26/2026 09:00:00\n1\tno-intr   since 11/26/2026 09:00:00\n", 1},
		"none":                     {"0\tfaulted   since 11/26/2026 09:00:00\n", 0},
		"nothing":                  {"", 0},
		"something else":           {"The physical processor has 8 virtual processors (0-7)\n", 0},
	} {
		got, err := parse(c.said)
		if got != c.want || (err == nil) != (c.want > 0) || err != nil && !errors.Is(err, ErrSyntax) {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
}

func TestASimulatedSledTellsItsProcessors(t *testing.T) {
	sled := sim.New(sim.Options{}, hosttest.Files)
	defer sled.Close()
	if n, err := Online(t.Context(), sled.Host()); err != nil || n != 128 {
		t.Errorf("%d, %v", n, err)
	}
}
