package instance

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/operation/operationtest"
)

func TestOneStageDoesNoMore(t *testing.T) {
	c := settings()
	r := half(made(t, c, oneNIC()))
	up := wayUp()
	for _, s := range []struct {
		stage Stage
		point int
		want  []string
	}{
		{StageVNIC, atNothing, up[:2]}, {StageZone, atVNICs, up[2:7]}, {StageBoot, atProfiled, up[7:10]}, {StageAddress, atSettled, up[10:12]},
		{StageStart, atAddress, up[12:15]}, {StageEnsure, atOnline, up[15:16]}, {StageRun, atEnsured, up[16:]},
	} {
		t.Run(string(s.stage), func(t *testing.T) {
			d, next, err := prepared().bring(c, r, s.point).decide(t, c, operationtest.Book(t, kept(t, r)...), EnsureRequest{Wanted: oneNIC(), Only: s.stage})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(s.want, told(t, d, r.Incarnation)); diff != "" {
				t.Error(diff)
			}
			if finished := s.stage == StageEnsure || s.stage == StageRun; next.Incarnation.Ensured != finished {
				t.Errorf("finished: %v", next.Incarnation.Ensured)
			}
			if s.point == atNothing {
				return
			}
			_, _, err = prepared().decide(t, c, operationtest.Book(t, kept(t, r)...), EnsureRequest{Wanted: oneNIC(), Only: s.stage})
			if early, ok := errors.AsType[*PrerequisiteError](err); !ok || early.First != StageVNIC {
				t.Errorf("on nothing: %v", err)
			}
		})
	}
}
