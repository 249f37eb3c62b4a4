package layers

import (
	"os"
	"testing"

	"github.com/sledctl/sledctl/test/mutants"
)

// TestMutantsFit fails after a change of a line in which a defect is planted: the
// mutants themselves take minutes, and are left out of a short run.
func TestMutantsFit(t *testing.T) {
	err := mutants.Fit(func(file string) (string, error) {
		data, err := os.ReadFile("../../" + file)
		return string(data), err
	})
	if err != nil {
		t.Error(err)
	}
}
