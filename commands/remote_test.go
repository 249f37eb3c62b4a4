package commands_test

import (
	"strings"
	"testing"
)

// What an agent is asked for by sledctl elsewhere prints the same, and ends with
// the same exit code, as on the sled itself.
func TestAnAgentIsAskedFromElsewhere(t *testing.T) {
	s := newSled(t, small(), "")
	s.run("bootstrap")
	a := s.agent(t, s.Host())
	far := newSled(t, small(), "") // a machine that has nothing to do with it
	remote := func(line string) answer {
		t.Helper()
		return far.try(line + " --agent unix:" + a.socket)
	}
	s.run("instance ensure web1")
	s.run("instance ensure web2 --protect")
	same := func(line string, exit int) {
		t.Helper()
		there, here := remote(line), s.try(line)
		if there.exit != exit || here.exit != exit || there.out != here.out {
			t.Errorf("%s: exit %d here and %d there, want %d\n%s%s\n%s%s", line, here.exit, there.exit, exit, here.out, here.errs, there.out, there.errs)
		}
		if exit != 0 && hint(there.errs) != hint(here.errs) {
			t.Errorf("%s: here: %s\nthere: %s", line, here.errs, there.errs)
		}
	}
	same("instance list -o json", 0)
	same("instance get web1 -o json", 0)
	same("instance get web9", 4)
	same("instance get web9 -o json", 4)
	same("instance start web9", 4)
	same("instance start Web", 2)
	same("instance stop web1 -H --columns name,state", 0)
	same("instance reboot web1", 5)
	same("instance delete web9", 0)
	same("instance delete web9 --must-exist", 4)
	same("instance delete web2", 8)
	if there := remote("instance start web1 -H --columns state"); there.exit != 0 || there.out != "running\n" {
		t.Errorf("start: %+v", there)
	}
	if there := remote("instance reboot web1 -o name"); there.exit != 0 || there.out != "web1\n" {
		t.Errorf("reboot: %+v", there)
	}
	if there := remote("instance delete web1"); there.exit != 0 || s.try("instance get web1").exit != 4 {
		t.Errorf("delete: %+v", there)
	}

	// What an agent cannot be asked for, it is not.
	for _, line := range []string{"instance start web2 -n", "instance stop --all", "instance stop web2 --grace 1s", "instance delete web2 --yes", "instance reboot web2 --explain"} {
		if there := remote(line); there.exit != 2 || !strings.Contains(there.errs, "an agent cannot be asked") {
			t.Errorf("%s: %+v", line, there)
		}
	}
	for address, exit := range map[string]int{"unix:/nowhere": 1, "unix:sock": 2, "tcp:127.0.0.1:1": 2, "http://127.0.0.1": 2, "http://u@127.0.0.1:1": 2} {
		if there := far.try("instance list --agent " + address); there.exit != exit {
			t.Errorf("%s: %+v, want exit %d", address, there, exit)
		}
	}
	if here := far.try("instance list"); here.exit != 8 { // nothing was prepared there
		t.Errorf("the machine that asked: %+v", here)
	}
}

// hint is what an error says, and what to do about it.
func hint(errs string) string {
	var kept []string
	for line := range strings.Lines(errs) {
		if strings.Contains(line, "error:") || strings.Contains(line, "hint:") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}
