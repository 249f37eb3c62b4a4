package commands_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/test/sledtest"
)

// edited runs instance edit with a shell script as the editor, for an operator who types
// this. Temp is where documents are kept.
func edited(t *testing.T, s *sledtest.Operator, name, script, typed string) (a sledtest.Answer, kept []string) {
	t.Helper()
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	file := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(file, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	env, _, _ := commands.On(s.Host(), nil)
	streams, out, errs := terminal.Buffers(terminal.Pretended{Terminal: true, Width: 100, In: typed})
	*env.Streams = *streams
	env.Environ = append(env.Environ, "VISUAL=sh "+file, "PATH="+os.Getenv("PATH"))
	exit := commands.Run(t.Context(), env, []string{"instance", "edit", name})
	kept, _ = filepath.Glob(filepath.Join(temp, "*"))
	return sledtest.Answer{Exit: exit, Out: out.String(), Errs: errs.String()}, kept
}

// What is edited is shown, asked for and applied; what is not applied is kept.
func TestEditAppliesADocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sledtest.New(t, sledtest.Small(), "")
		s.Run("bootstrap")
		s.Run("instance ensure web1 --memory 2G --nic over=net0,vlan=7")
		s.Run("instance ensure 6dee3e34-3723-4e73-a96e-7ab1bbc63fae --name web2")
		mac := s.Value("instance get web1 -H --columns vnics,nics")
		const toMemory = `sed -i 's/memory = .*/memory = "4G"/' "$1"`
		for _, x := range []struct {
			name, script, typed string
			exit                int
			says                string
			row                 string // then
			kept                int
		}{
			{"web1", "true", "", 0, "nothing to do", "running\t2\t2147483648\tnet0:7", 0},
			{"web1", `echo "# a note" >>"$1"`, "", 0, "nothing to do", "running\t2\t2147483648\tnet0:7", 0},
			{"web1", toMemory, "n\n", 1, "memory: 2G -> 4G\nRebuild web1, which powers the VM off? [y/N]", "running\t2\t2147483648\tnet0:7", 1},
			{"web1", toMemory, "y\n", 0, "memory: 2G -> 4G", "running\t2\t4294967296\tnet0:7", 0},
			{"web1", `sed -i 's/name = .*/name = "web3"/' "$1"`, "", 1, "the name of an instance stays", "running\t2\t4294967296\tnet0:7", 1},
			{"web1", `if grep '^# error: .*memory' "$1"; then sed -i 's/memory = .*/memory = "3G"/' "$1"; else sed -i 's/memory = .*/memory = "3X"/' "$1"; fi`, "y\n", 0, "memory: 4G -> 3G", "running\t2\t3221225472\tnet0:7", 0},
			{"web1", `sed -i 's/memory = .*/memry = "3G"/' "$1"`, "", 1, "memry", "running\t2\t3221225472\tnet0:7", 1},
			{"web1", "false", "", 1, "exit status 1", "running\t2\t3221225472\tnet0:7", 1},
			{"web1", `sed -i 's/^pool = .*/&\nstart_order = 10/' "$1"`, "y\n", 0, "start-order: none -> 10\nApply this to web1? [y/N]", "running\t2\t3221225472\tnet0:7", 0},
			{"web1", `sed -i '/start_order/d' "$1"`, "y\n", 0, "start-order: 10 -> none", "running\t2\t3221225472\tnet0:7", 0},
			{"web1", `sed -i '/start_order/d' "$1"`, "", 0, "nothing to do", "running\t2\t3221225472\tnet0:7", 0},
			{"web2", `sed -i 's/cpus = .*/cpus = 3/' "$1"`, "y\n", 0, "cpus: 2 -> 3", "running\t3\t2147483648\t-", 0},
			{"web1", `sed -i '/nics/,$d' "$1"`, "y\n", 0, "nics: ", "running\t2\t3221225472\t-", 0},
		} {
			a, kept := edited(t, s, x.name, x.script, x.typed)
			if a.Exit != x.exit || !strings.Contains(a.Errs, x.says) || len(kept) != x.kept {
				t.Errorf("%s: exit %d, kept %v, %s", x.script, a.Exit, kept, a.Errs)
			}
			if len(kept) > 0 && !strings.Contains(a.Errs, "sledctl instance ensure -f "+kept[0]) {
				t.Errorf("%s: %s is not named: %s", x.script, kept[0], a.Errs)
			}
			if row := s.Value("instance get " + x.name + " -H --columns state,cpus,memory,nics"); row != x.row {
				t.Errorf("%s: then %q, want %q\n%s", x.script, row, x.row, a.Errs)
			}
		}
		if !strings.HasSuffix(mac, "\tnet0:7") {
			t.Error(mac)
		}

		// A stopped instance is started with what was edited.
		s.Run("instance stop web2")
		a, kept := edited(t, s, "web2", `sed -i 's/cpus = .*/cpus = 1/' "$1"`, "y\n")
		if row := s.Value("instance get web2 -H --columns state,cpus"); a.Exit != 0 || len(kept) > 0 || row != "running\t1" || !strings.Contains(a.Errs, "Apply this to web2? [y/N]") {
			t.Errorf("exit %d, %s, %s", a.Exit, row, a.Errs)
		}
		if a := s.Try("instance edit web1"); a.Exit != 2 || !strings.Contains(a.Errs, "get NAME -o toml") {
			t.Errorf("without a terminal: exit %d, %s", a.Exit, a.Errs)
		}
		if a, _ := edited(t, s, "wbe1", "true", ""); a.Exit != 4 || !strings.Contains(a.Errs, "did you mean web1?") {
			t.Errorf("exit %d, %s", a.Exit, a.Errs)
		}
	})
}
