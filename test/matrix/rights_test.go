package matrix

import (
	"testing"
	"testing/synctest"

	"github.com/sledctl/sledctl/test/sledtest"
)

// What a verb changes, it changes with the programs that the table of rights names: an
// operator is told by it which verbs a process may run.
func TestVerbsRunTheProgramsOfTheirRights(t *testing.T) {
	if sledtest.Quick() {
		t.Skip("each row of the matrix")
	}
	for _, r := range rows() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			files := t.TempDir()
			synctest.Test(t, func(t *testing.T) { r.stage(t, files) })
		})
	}
}
