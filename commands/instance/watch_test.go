package instance

import (
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
)

// What changes is bold for a while; at first nothing is, and a colour stays what it is.
func TestWhatHasChangedIsBoldForAWhile(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(1000+s), 0) }
	vm := func(id, state, reason string) cli.Instance {
		i := cli.Instance{}
		i.ID, i.State, i.Reason = id, state, reason
		return i
	}
	var c changes
	c.note([]cli.Instance{vm("a", "running", ""), vm("b", "stopped", "")}, at(0))
	c.note([]cli.Instance{vm("a", "running", ""), vm("b", "running", ""), vm("c", "creating", "")}, at(2))
	c.note([]cli.Instance{vm("a", "running", "its pool is full"), vm("b", "running", ""), vm("c", "creating", "")}, at(4))
	list := terminal.List[cli.Instance]{Columns: []terminal.Column[cli.Instance]{{Name: "name"}, {Name: "state", Style: cli.StateStyle}}}
	for _, w := range []struct {
		vm   cli.Instance
		at   time.Time
		bold bool
	}{
		{vm("b", "running", ""), at(4), true}, {vm("b", "running", ""), at(5), false}, {vm("c", "creating", ""), at(4), true}, {vm("a", "running", ""), at(5), true}, {vm("a", "running", ""), at(7), false},
	} {
		columns := c.bold(terminal.List[cli.Instance]{Columns: append([]terminal.Column[cli.Instance]{}, list.Columns...)}, w.at).Columns
		if got := columns[0].Style(w.vm) == terminal.Strong; got != w.bold {
			t.Errorf("%s at %d s: bold is %v", w.vm.ID, w.at.Unix()-1000, got)
		}
		if got := columns[1].Style(w.vm); got != cli.StateStyle(w.vm) {
			t.Errorf("%s: the colour of its state is %v", w.vm.ID, got)
		}
	}
}

// The first VM of a sled that had none is new, and so is one that was away.
func TestTheFirstVMOfASledIsBold(t *testing.T) {
	at := time.Unix(1000, 0)
	vm := cli.Instance{}
	vm.ID = "a"
	bold := func(c *changes) bool {
		return c.bold(terminal.List[cli.Instance]{Columns: []terminal.Column[cli.Instance]{{Name: "name"}}}, at).Columns[0].Style(vm) == terminal.Strong
	}
	var c changes
	c.note(nil, at)
	if c.note([]cli.Instance{vm}, at); !bold(&c) {
		t.Error("the first VM is not bold")
	}
	var again changes
	again.note([]cli.Instance{vm}, at)
	again.note(nil, at)
	if again.note([]cli.Instance{vm}, at); !bold(&again) {
		t.Error("a VM that was deleted and made again is not bold")
	}
}

// A view that is longer than the screen says how much more there is.
func TestAViewFitsItsScreen(t *testing.T) {
	if text := "1\n2\n3\n"; topOf(text, 3, "sledctl top moves") != text {
		t.Error("what fits is cut")
	}
	long := topOf(strings.Repeat("line\n", 40), 24, "sledctl top moves")
	if strings.Count(long, "\n") != 24 || !strings.Contains(long, "(17 more lines;") {
		t.Errorf("%q", long)
	}
}
