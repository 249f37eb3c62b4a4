package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// guess is an assumption about the real system, as the comment at the code that relies on
// it says. The comment, or the end of it, has this form, with the first line alone or
// continued:
//
//	Guess zone-root-mounted: the root of a cloned zone stays mounted until the sled reboots.
//	Check: `mount -p | grep ZONE` after `bootstrap` with `instance.spares = 1`
//	State: settled by usr/src/cmd/zoneadmd/zoneadmd.c
//
// The state is absent as long as the guess is open. A blank line or the next guess ends it.
type guess struct {
	id, assumed, check string
	state              string // what follows State:, or open
	file               string // from the top
	line               int
}

// open is the state of a guess that nothing has settled.
const open = "open"

// The kinds of state, in the order in which they are counted, and how each of them begins.
var states = []struct{ kind, prefix string }{
	{open, open}, {"settled by source", "settled by "}, {"confirmed", "confirmed on "}, {"refuted", "refuted on "},
}

var (
	guessed = regexp.MustCompile(`^Guess ([a-z0-9]+(?:-[a-z0-9]+)+): (.+)$`)
	// meant is what somebody writes who does not know the form.
	meant = regexp.MustCompile(`^Guess\b|\bGuess:`)
	// reasoned is a check that says why there is none.
	reasoned = regexp.MustCompile(`^nothing(: |, until )\S`)
)

// guesses reads the comments of Go files, by their names from the top, and returns the
// guesses in them, sorted by file and line, and what is wrong with any, with file and line.
func guesses(files map[string][]byte) (all []guess, faults []string) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !bytes.Contains(files[name], []byte("Guess")) {
			continue
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, name, files[name], parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			faults = append(faults, err.Error())
			continue
		}
		for _, group := range tree.Comments {
			more, wrong := guessesOf(group, set)
			all, faults = append(all, more...), append(faults, wrong...)
		}
	}
	first := map[string]guess{}
	for _, g := range all {
		if other, ok := first[g.id]; ok {
			faults = append(faults, fmt.Sprintf("%s:%d: guess %s is also at %s:%d: ids are unique", g.file, g.line, g.id, other.file, other.line))
			continue
		}
		first[g.id] = g
		if complaint := g.complaint(); complaint != "" {
			faults = append(faults, fmt.Sprintf("%s:%d: guess %s %s", g.file, g.line, g.id, complaint))
		}
	}
	return all, faults
}

// guessesOf reads one comment.
func guessesOf(group *ast.CommentGroup, set *token.FileSet) (all []guess, faults []string) {
	var field *string // what the next line continues
	for _, comment := range group.List {
		at := set.Position(comment.Pos())
		text, isLine := strings.CutPrefix(comment.Text, "// ")
		parts := guessed.FindStringSubmatch(text)
		switch {
		case !isLine:
			field = nil
		case parts != nil:
			all = append(all, guess{id: parts[1], assumed: parts[2], state: open, file: at.Filename, line: at.Line})
			field = &all[len(all)-1].assumed
		case meant.MatchString(text):
			faults = append(faults, fmt.Sprintf("%s:%d: a guess without an id, or not in the form of docs/contributing.md: %s", at.Filename, at.Line, text))
			field = nil
		case field == nil:
		case strings.HasPrefix(text, "Check: "):
			field = &all[len(all)-1].check
			*field = strings.TrimPrefix(text, "Check: ")
		case strings.HasPrefix(text, "State: "):
			field = &all[len(all)-1].state
			*field = strings.TrimPrefix(text, "State: ")
		default:
			*field += " " + text
		}
	}
	return all, faults
}

// complaint is what is wrong with a guess, or nothing.
func (g guess) complaint() string {
	switch {
	case g.check == "":
		return "has no check: want a line `Check: COMMAND`, or `Check: nothing: REASON`"
	case strings.HasPrefix(g.check, "nothing") && !reasoned.MatchString(g.check):
		return "does not say why nothing can be checked: want `Check: nothing: REASON`"
	case g.kind() == "":
		return fmt.Sprintf("has the unknown state %q: want `settled by SOURCE`, `confirmed on HOST`, `refuted on HOST`, or no line", g.state)
	}
	return ""
}

// kind is the kind of a guess's state; none: the state is unknown.
func (g guess) kind() string {
	for _, s := range states {
		if g.state == s.prefix || strings.HasPrefix(g.state, s.prefix) && strings.HasSuffix(s.prefix, " ") {
			return s.kind
		}
	}
	return ""
}
