package histories

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/lattice"
)

// preamble comes before the creation of the sled on which a history begins. The script
// prints the exit codes of sledctl and, at the end, its list of the instances.
const preamble = `#!/bin/sh
# A history of a simulated sled. It wants sledctl on PATH, and makes its sled in
# the directory that it is given, which must not be there.
SLEDCTL_HOST=sim:${1:-$(mktemp -d)/sled}; export SLEDCTL_HOST
host() { sledctl sim shell -- "$@"; }
run() { sledctl "$@" >/dev/null; echo "$? sledctl $*"; }
of() { sledctl instance get "$2" -H --columns "$1" 2>/dev/null || eval "echo \$was_$2"; }
last() { of vnics "$1" | tr , '\n' | tail -n 1; }
pool() { sledctl sim disk list -H --columns name,pool | awk -v d="$1" '$1 == d { print $2 }'; }
`

// script is a history as a shell script.
func script(acts []act, row lattice.Row) string {
	var b strings.Builder
	b.WriteString(preamble)
	for _, line := range row.Script() {
		b.WriteString(line + "\n")
	}
	for _, line := range foreign(row, "db1") {
		b.WriteString(hosts(line) + "\n")
	}
	b.WriteString("sledctl bootstrap >/dev/null || exit\n\n")
	if row.Is(lattice.Agent) == lattice.Running {
		b.WriteString("# next to it, from each bootstrap to the next reboot of the sled: sledctl agent\n")
	}
	aliens := 0
	for _, a := range acts {
		for _, line := range a.shell(row, aliens) {
			b.WriteString(line + "\n")
		}
		if a.hand == "alien" {
			aliens++
		}
	}
	b.WriteString("\nsledctl instance list -H --columns " + listed + "\n")
	return b.String()
}

// listed are the columns in which two runs of one history may be compared.
const listed = "name,state,wanted,cpus,protected"

// zonesBelow is the dataset in which the zone of an instance lies.
func zonesBelow(row lattice.Row, name string) string {
	if row.Has(lattice.Disks, lattice.LoneM2, lattice.RpoolOnly) {
		return zoneParent("rpool")
	}
	return zoneParent("$(of pool " + name + ")")
}

// ledgers are the copies of the ledger, as a shell finds them.
func ledgers(row lattice.Row) string {
	if dir := row.Ledger(); dir != "" {
		return dir + "/ledger.jsonl"
	}
	return "/pool/int/*/config/sledctl/ledger.jsonl"
}

// hosts is a command of the host's, each word quoted.
func hosts(line string) string {
	words := strings.Fields(line)
	for i, w := range words {
		if strings.ContainsAny(w, ";$'\"*") {
			words[i] = "'" + w + "'"
		}
	}
	return "host " + strings.Join(words, " ")
}

// shell are the lines that do what an act does.
func (a act) shell(row lattice.Row, aliens int) []string {
	zone := fmt.Sprintf(`"$(of zone %s)"`, a.name)
	switch a.hand {
	case "":
		pool := row.PoolName()
		line := "run " + a.verb.on(row, pool)
		if _, input := row.Extras(a.verb.name, pool); a.verb.extra && input != "" {
			line = "printf '%s' " + host.Quote(input) + " | " + line
		}
		if a.verb.how == host.CrashDuring {
			line += " # in the middle of it: what a process of the simulated sled does ends with it, so this is the nearest"
		}
		return []string{line}
	case "power":
		lines := append([]string{"sledctl sim reboot"}, row.BootScript()...)
		if row.Is(lattice.Mode) == lattice.RAMDisk {
			names := []string{"db1"}
			for n := range aliens {
				names = append(names, alien(n))
			}
			for _, name := range names {
				for _, line := range foreign(row, name) {
					lines = append(lines, hosts(line))
				}
			}
		}
		return lines
	case "pull":
		return []string{"sledctl sim disk remove " + m2}
	case "insert":
		return []string{"sledctl sim disk insert " + m2, `host zpool clear "$(pool ` + m2 + `)"`}
	case "lose":
		return []string{
			`for i in ` + strings.Join(names(), " ") + `; do eval "was_$i=\$(of zone $i)"; done`,
			`rm "${SLEDCTL_HOST#sim:}"/root` + ledgers(row), begunAnew + " >/dev/null",
		}
	case "alien":
		var lines []string
		for _, line := range foreign(row, alien(aliens)) {
			lines = append(lines, hosts(line))
		}
		return lines
	case "halt":
		return []string{"host zoneadm -z " + zone + " halt"}
	case "remove":
		return []string{"zone=" + zone, `host zoneadm -z "$zone" halt`, `host zoneadm -z "$zone" uninstall -F`, `host zonecfg -z "$zone" delete -F`}
	case "tamper":
		return []string{"host zonecfg -z " + zone + " set bootargs=-v"}
	case "unlink":
		return []string{`host dladm delete-vnic "$(last ` + a.name + `)"`}
	case "destroy":
		return []string{`host zfs destroy -r "` + zonesBelow(row, a.name) + `/$(of zone ` + a.name + `)"`}
	case "restart":
		return []string{"host svcadm -z " + zone + " restart " + propolisService(row), "sleep 1"}
	}
	panic("no hand " + a.hand)
}

func TestMain(m *testing.M) {
	if name := filepath.Base(os.Args[0]); name == "sledctl" || sim.IsStandIn(name) {
		os.Exit(commands.Main(os.Args, os.Stdin, os.Stdout, os.Stderr, os.Environ(), "v0.0.0-test"))
	}
	os.Exit(m.Run())
}

// What a script says is what was played: the same exit codes, and the same
// instances in the end.
func TestAScriptPlaysTheHistoryThatItIsPrintedFrom(t *testing.T) {
	if testing.Short() {
		t.Skip(unraced)
	}
	verbs := func(words ...string) []act {
		var acts []act
		for _, w := range words {
			word, name, _ := strings.Cut(w, " ")
			acts = append(acts, act{verb: verb{word: word, name: name}})
		}
		return acts
	}
	oneByOne := func(name string) (acts []act) {
		for _, word := range steps() {
			acts = append(acts, act{verb: verb{word: word, name: name}})
		}
		return acts
	}
	killed := func(n int, how host.CrashMode, a act) act { a.verb.crash, a.verb.how = n, how; return a }
	up, nic := verbs("ensure a")[0], act{verb: verb{word: "ensure", name: "a", nics: 1, cpus: 4, recreate: true, protect: "--protect"}}
	hand := func(hand string) act { return act{hand: hand, name: "a"} }
	for name, acts := range map[string][]act{
		"verbs":  append(verbs("ensure a", "ensure a", "stop a", "start a", "ensure b", "delete b", "reboot a", "reap", "start c"), nic, verbs("delete a")[0]),
		"hands":  {up, hand("halt"), hand("unlink"), hand("destroy"), nic, hand("alien"), hand("restart"), verbs("reap")[0], hand("remove")},
		"kills":  {killed(3, host.CrashBefore, up), killed(9, host.CrashAfter, up), verbs("reap")[0], up, killed(7, host.CrashAfter, verbs("stop a")[0]), verbs("ensure b")[0], up},
		"steps":  append(oneByOne("a"), act{verb: verb{word: "propolis stop", name: "a"}}, act{verb: verb{word: "zone boot", name: "b"}}, up, verbs("reap")[0]),
		"loss":   {up, verbs("ensure b")[0], hand("lose"), verbs("start a")[0], hand("halt"), {verb: verb{word: "adopt --all"}}, verbs("ensure a")[0], verbs("stop b")[0]},
		"reboot": {up, hand("power"), verbs("start a")[0], verbs("bootstrap")[0], hand("pull"), verbs("stop a")[0], hand("insert"), act{verb: verb{word: "ensure --all"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want []string
			prepareOnce(t, plain()).inBubble(t, func(p *player) {
				for _, a := range acts {
					if err := p.play(a); err != nil {
						t.Error(err)
						return
					}
				}
				for _, line := range p.log {
					if line, exit, ok := strings.Cut(line, " # exit "); ok && strings.HasPrefix(line, "sledctl") {
						want = append(want, exit+" "+line)
					} else if line, ok := strings.CutSuffix(line, " # killed"); ok {
						want = append(want, "137 "+line)
					}
				}
				_, out, _, err := p.run(p.sled.Host(), "sledctl instance list -H --columns "+listed)
				if err != nil {
					t.Error(err)
				}
				want = append(want, strings.Split(strings.TrimSpace(out), "\n")...)
			})
			got, err := runScript(t, script(acts, plain()))
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%v (-played +script):\n%s\n%s", err, diff, script(acts, plain()))
			}
		})
	}
}

// runScript runs a script with this test binary as sledctl, and gives the
// lines that it prints.
func runScript(t *testing.T, text string) ([]string, error) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(dir, "sledctl"))
	}
	file := filepath.Join(dir, "history.sh")
	if err == nil {
		err = os.WriteFile(file, []byte(text), 0o600)
	}
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", file, filepath.Join(dir, "sled"))
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "SLEDCTL_CONFIG=", "GORACE=atexit_sleep_ms=0")
	out, err := cmd.Output()
	return strings.Split(strings.TrimSpace(string(out)), "\n"), err
}
