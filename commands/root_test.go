package commands

import (
	"os"
	"testing"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/instance"
	"github.com/sledctl/sledctl/commands/terminal"
)

// If a command line names a command, only that one is made, and of its subcommands
// only the one that is named. The name of each in the table is its own.
func TestNounsAreMadeByTheirNames(t *testing.T) {
	env := cli.NewEnv(terminal.System(os.Stdin, os.Stdout, os.Stderr, nil), nil, "")
	for _, n := range topLevel() {
		cmd := n.Make(env)
		if cmd.Name() != n.Name || len(cmd.Aliases) > 0 {
			t.Errorf("%q makes %q, also called %q", n.Name, cmd.Name(), cmd.Aliases)
		}
		if alone := newRoot(env, n.Name, "list").Commands(); len(alone) != 1 || alone[0].Name() != n.Name {
			t.Errorf("sledctl %s: %d commands were made", n.Name, len(alone))
		}
	}
	for _, verb := range instance.New(env).Commands() {
		made := newRoot(env, "instance", verb.Name(), "--help").Commands()[0].Commands()
		if len(made) != 1 || made[0].Name() != verb.Name() {
			t.Errorf("sledctl instance %s: %d verbs were made", verb.Name(), len(made))
		}
	}
	for _, words := range [][]string{{"instance"}, {"instance", "--help"}, {"instance", "ensur"}, {"--host", "sim", "instance", "list"}, {"--config", "list", "instance", "get", "web1"}} {
		root := newRoot(env, words...)
		cmd, _, _ := root.Find([]string{"instance"})
		if n := len(cmd.Commands()); n < 10 {
			t.Errorf("sledctl %q: %d verbs were made, want all", words, n)
		}
	}
	for _, words := range [][]string{nil, {"--host", "sim", "instance"}, {"instnace"}, {"__complete", "instance", ""}, {"help", "instance"}} {
		if all := newRoot(env, words...).Commands(); len(all) != len(topLevel()) {
			t.Errorf("sledctl %q: %d commands were made, want all", words, len(all))
		}
	}
}
