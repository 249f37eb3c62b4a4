package instance

import (
	"testing"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/sled/instance/record"
)

func TestTheIDOfANameIsTheSledsOwn(t *testing.T) {
	one, other := Settings{Namespace: uuid.MustParse("8c4a2b1e-6a57-4a5c-9d3e-0a1b2c3d4e5f")}, Settings{Namespace: uuid.MustParse("8c4a2b1e-6a57-4a5c-9d3e-0a1b2c3d4e60")}
	ids := map[string]bool{}
	for _, id := range []string{one.ID("web1"), one.ID("web1"), one.ID("web2"), other.ID("web1")} {
		ids[id] = true
	}
	if len(ids) != 3 {
		t.Errorf("one name twice, another, and the same on another sled gave %d ids", len(ids))
	}
	if id := uuid.MustParse(one.ID("web1")); id.Version() != 5 {
		t.Errorf("version %d", id.Version())
	}
}

func TestTheUserOfAVNICIsTheInstanceWhoseIncarnationHasIt(t *testing.T) {
	c := settings()
	one := made(t, c, oneNIC())
	view := operationtest.Book(t, kept(t, one)...)
	for _, v := range one.Incarnation.VNICs() {
		if user, used, err := record.UserOfVNIC(view, v.Name); err != nil || !used || user.ID != one.ID {
			t.Errorf("%s: %v, %v, %v", v.Name, user.Name, used, err)
		}
	}
	if _, used, err := record.UserOfVNIC(view, "vnic_propolis9"); err != nil || used {
		t.Errorf("a VNIC of nobody: %v, %v", used, err)
	}
}
