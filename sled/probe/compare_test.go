package probe

import (
	"os"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/layout"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/hosttest"
)

// laid is a sled laid out from an archive.
func laid(t *testing.T, a Archive) (*sim.Sled, []string) {
	t.Helper()
	sled := sim.New(layout.Options(given(a)), hosttest.Files)
	t.Cleanup(sled.Close)
	var notes []string
	err := sled.World().Update(t.Context(), func(tx *world.Tx) (err error) {
		notes, err = layout.Lay(tx, given(a))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sled, notes
}

func compared(t *testing.T, a Archive) []Compared {
	t.Helper()
	sled, _ := laid(t, a)
	all, err := Compare(t.Context(), a, sled.Host())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// What a sled of each mode answers, one that is laid out from it answers, to the byte.
func TestLaidOutSledAnswersTheSame(t *testing.T) {
	for _, mode := range modes() {
		t.Run(string(mode), func(t *testing.T) {
			for _, c := range compared(t, recorded(t, named(t, mode).Host(), "salt")) {
				if c.Verdict != ByteEqual {
					t.Errorf("%s: %s at %s\nrecorded  %s\nsimulated %s", c.Command, c.Verdict, c.Where, c.Recorded, c.Simulated)
				}
			}
		})
	}
}

// Each guess that a difference names is in the manual.
func TestGuessesAreInTheManual(t *testing.T) {
	page, err := os.ReadFile("../../docs/unverified.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range Questions() {
		if _, ok := subjectOf(append([]string{q.Command.Program}, q.Command.Args...)); !ok {
			t.Errorf("%s is no subject", q.Command.Shell())
		}
	}
	for _, s := range subjects() {
		for id := range strings.FieldsSeq(s.guesses) {
			if !strings.Contains(string(page), "| `"+id+"` |") {
				t.Errorf("%s: no guess %s", s.words, id)
			}
		}
	}
}

func given(a Archive) (all []layout.Answer) {
	for _, one := range a.Answers {
		if one.Exit == 0 && one.Failed == "" {
			all = append(all, layout.Answer{Argv: one.Argv, Stdout: string(one.Stdout)})
		}
	}
	return all
}

// An altered output is different, with the guess that it touches; one of which sledctl
// reads the same is parse-equal.
func TestAlteredOutputIsNamed(t *testing.T) {
	a := recorded(t, named(t, world.OmniOS).Host(), "salt")
	altered := map[string][2]string{
		"zoneadm list -cp": {":configured:", ":mislaid:"},
		"swap -s":          {" available", " left over"},
		"netstat -rn":      {"Interface \n", "Interface\n"},
		"rsrvrctl -q":      {"Size limit MiB:\t", "Size limit MiB: "},
	}
	for i, one := range a.Answers {
		if change, ok := altered[joined(one.Argv)]; ok {
			a.Answers[i].Stdout = []byte(strings.Replace(string(one.Stdout), change[0], change[1], 1))
		}
	}
	found := map[string]Compared{}
	for _, c := range compared(t, a) {
		if c.Verdict != ByteEqual {
			found[c.Command] = c
		}
	}
	if len(found) != len(altered)-1 { // the state is laid out, whatever it is
		t.Errorf("%+v", found)
	}
	if c := found["swap -s"]; c.Verdict != Different || c.Where != "stdout 1" || !strings.Contains(strings.Join(c.Guesses, " "), "reservoir-counts-as-used") {
		t.Errorf("%+v", c)
	}
	if c := found["netstat -rn"]; c.Verdict != ParseEqual || c.Where != "stdout 3" {
		t.Errorf("%+v", c)
	}
}
