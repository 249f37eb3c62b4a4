package instance

import (
	"testing"

	"github.com/sledctl/sledctl/commands/cli"
)

func TestWhatAVerbOnManyIntends(t *testing.T) {
	up := func(name string) cli.Instance { return cli.Instance{Name: name, State: "running"} }
	down := func(name string) cli.Instance { return cli.Instance{Name: name, State: "failed"} }
	for want, picked := range map[string][]cli.Instance{
		"stop 2 VMs that run: web1 web2":                       {up("web1"), up("web2")},
		"stop 1 VM that runs: web1":                            {up("web1")},
		"stop 2 VMs: web1 web2":                                {down("web1"), down("web2")},
		"stop 1 VM: web1":                                      {down("web1")},
		"stop 1 VM that runs: web2, and 1 that does not: web1": {down("web1"), up("web2")},
		"stop 2 VMs that run: a c, and 2 that do not: b d":     {up("a"), down("b"), up("c"), down("d")},
	} {
		if got := intended("stop", picked); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
