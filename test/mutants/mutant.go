// Package mutants plants defects in sledctl, and requires that tests find them: a
// defect that no test finds is in behaviour that is not tested.
//
// The defects are data (All). All are planted side by side in copies of the
// files, which only an overlay of the build puts in their place; each waits
// until the variable of the environment that the overlay declares names it. The
// program itself has no switch.
package mutants

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Mutant is a defect: what is planted, and who is to find it.
type Mutant struct {
	Name  string // says what is wrong then
	Plant []Patch
	Found By
	// Soak leaves it to make soak: what finds it takes longer than a test may.
	Soak bool
	// With is another mutant without which this one is not seen: the code that it
	// disables helps too.
	With string
	// Besides is one more than the forty that are the measure.
	Besides bool
	// Rule is a rule of the ledger left out.
	Rule bool
}

// Patch puts New where Old stands in a file, which must be exactly once.
// In New, OLD stands for Old, and MUTANT is true if the defect is wanted. Several
// may have one place, if all but the first have OLD.
type Patch struct{ File, Old, New string }

// By is the tests that are run: they pass without the defect, and fail with it.
type By struct {
	Package string
	Run     string // as go test -run takes it
	Told    string // part of what a test says then: it fails because of this
	// Stories is how many histories are played; 0: the tests know no histories.
	Stories int
}

// All are the mutants.
func All() []Mutant {
	return slices.Concat(ofChanges(), ofOwnership(), ofInstances(), ofWhatIsTold(), ofRules())
}

// Fit fails unless each mutant has its place in the files of the repository, as read
// gives them.
func Fit(read func(file string) (string, error)) error {
	var wrong []error
	for _, m := range append(All(), Mutant{Plant: together()}) {
		for _, p := range m.Plant {
			source, err := read(p.File)
			if n := strings.Count(source, p.Old); err == nil && n != 1 {
				err = fmt.Errorf("%s has %d times, not once, what test/mutants plants %q in: %s\nput it where that behaviour is now, or, if there is none any more, take it out", p.File, n, m.Name, p.Old)
			}
			wrong = append(wrong, err)
		}
	}
	return errors.Join(wrong...)
}

// script has a story in an operator's words find it.
func script(name, told string) By { return By{"commands", "^TestScripts$/^" + name + "$", told, 0} }

// matrix has a row of the kill matrix find it.
func matrix(row, told string) By {
	return By{"test/matrix", "^TestKillMatrix$/^rows$/^" + row + "$", told, 0}
}

// lattice has the story on each row of the lattice find it.
func lattice(told string) By { return By{"test/lattice", "^TestLattice$", told, 0} }

// histories has so many random histories find it.
func histories(stories int, told string) By {
	return By{"test/histories", "^TestRandomHistories$", told, stories}
}

// unit has a test of a package find it.
func unit(pkg, test, told string) By { return By{pkg, "^" + test + "$", told, 0} }

// next to are patches that plant nothing: they let tests that give the program an
// environment of its own hand on the variable, and are what mutants call.
func together() []Patch {
	return []Patch{{
		"commands/script_test.go",
		`env.Setenv("TZ", "UTC")`,
		`OLD; env.Setenv(mutantVariable, os.Getenv(mutantVariable))`,
	}, overwrite()}
}
