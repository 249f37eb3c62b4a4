package lattice

import (
	"testing"
	"testing/synctest"
)

// Every value has something that is laid out for it.
func TestEveryRowIsLaidOut(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	table := Sleds()
	for _, r := range table.Cover(2) {
		synctest.Test(t, func(t *testing.T) {
			s, err := Lay(t.Context(), r)
			if err != nil {
				t.Fatalf("%v: %v", r, err)
			}
			defer s.Close()
			for _, name := range r.Machines() {
				if _, err := r.Input(t.Context(), s, name); err != nil {
					t.Errorf("%v: %v", r, err)
				}
			}
			if _, err := r.Foreign(t.Context(), s); err != nil {
				t.Errorf("%v: %v", r, err)
			}
		})
	}
}
