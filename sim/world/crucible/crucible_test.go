package crucible

import (
	"errors"
	"testing"
)

func TestOnlyAHigherGenerationTakesOver(t *testing.T) {
	c := &Crucible{}
	for _, step := range []struct {
		upstairs   string
		generation uint64
		refused    bool
		writes     string // who may write afterwards
	}{
		{"a", 3, false, "a"},
		{"b", 2, true, "a"},
		{"b", 3, true, "a"},
		{"b", 4, false, "b"},
		{"a", 3, true, "b"},
		{"a", 4, true, "b"},
		{"a", 9, false, "a"},
	} {
		err := c.Activate("v", step.upstairs, step.generation)
		if (err != nil) != step.refused || step.refused && !errors.As(err, new(*GenerationError)) {
			t.Errorf("%+v: %v", step, err)
		}
		for _, upstairs := range []string{"a", "b"} {
			if err := c.Write("v", upstairs); (err == nil) != (upstairs == step.writes) {
				t.Errorf("%+v: %s writes: %v", step, upstairs, err)
			}
		}
	}
	if c.Last("v") != 9 || c.Last("other") != 0 {
		t.Errorf("last: %d, %d", c.Last("v"), c.Last("other"))
	}
	clone := c.Clone()
	if err := clone.Activate("v", "b", 10); err != nil || c.Last("v") != 9 || c.Write("v", "a") != nil || clone.Write("v", "a") == nil {
		t.Errorf("a copy is not its own: %v", err)
	}
	c.Lie(true)
	if err := c.Activate("v", "b", 9); err != nil || c.Write("v", "a") != nil || c.Write("v", "b") != nil {
		t.Errorf("downstairs that compare nothing: %v", err)
	}
}
