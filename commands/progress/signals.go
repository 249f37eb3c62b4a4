package progress

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/plan"
)

// Interrupted is what happens now that a signal has come: what ends first, what is taken
// back then, and how many instances are not begun. Moves are the migrations that are on their way.
func (b *Board) Interrupted(signal string, moves []*Move) string {
	at := b.AtWork()
	text := signal + ": "
	switch len(at) {
	case 0:
		return text + "nothing more is begun"
	case 1:
		text += at[0].interrupted(moves)
	default:
		text += fmt.Sprintf("%d operations end their steps", len(at))
		if slices.ContainsFunc(at, func(w *Work) bool { return w.Undoes }) {
			text += " and are taken back"
		}
	}
	if b.many != nil {
		switch waiting := b.many.waiting(b.begun()); waiting {
		case 0:
		case 1:
			text += ", 1 is not begun"
		default:
			text += fmt.Sprintf(", %d are not begun", waiting)
		}
	}
	return fmt.Sprintf("%s; %s again stops at once and leaves it all", text, signal)
}

// interrupted is what the operation still does.
func (w *Work) interrupted(moves []*Move) string {
	running := w.Running[len(w.Running)-1].Action
	text := w.Called() + ": "
	if w.Undoing {
		return text + "what was made is taken back already"
	}
	if running.Step.Verb() == "instance.send" { // it ends at once; what it asked for may not
		for _, m := range moves {
			if m.Name == w.Name && len(m.phases) > 0 && m.phase() != "Error" {
				return text + "its memory moves on (" + terminal.Printable(m.phase()) + "), which cannot be cancelled now"
			}
		}
		return text + "the target removes what it has made, if no memory moves yet"
	}
	if running.Change == plan.Wait {
		text += "it stops waiting"
	} else {
		text += fmt.Sprintf("%q ends first (it cannot be stopped)", Words(running))
	}
	made := 0
	for _, a := range w.Stands {
		if a.Change == plan.Create {
			made++
		}
	}
	switch {
	case running.Irrevocable:
		return text + ", and what it has begun goes on"
	case made == 0 || !w.Undoes:
		return text
	case made == 1:
		return text + ", then 1 thing is taken back"
	}
	return fmt.Sprintf("%s, then %d things are taken back", text, made)
}

// Abandoned is what a second signal, which ends everything at once, leaves on the host, and
// what is typed then. Left is false if that is nothing.
func Abandoned(signal string, all []*Work) (lines []string, left bool) {
	var kinds []string
	var again, names []string
	for _, w := range all {
		is := w.leaves()
		if len(is) == 0 {
			continue
		}
		kinds = append(kinds, is...)
		if w.Name != "" {
			names = append(names, w.Name)
			again = append(again, "sledctl "+w.Verb+" "+w.Name)
		} else {
			again = append(again, "sledctl "+w.Verb)
		}
	}
	if len(kinds) == 0 {
		return []string{fmt.Sprintf("%s again: stopped. Nothing was changed", signal)}, false
	}
	of := ""
	if len(names) > 0 {
		of = " of " + strings.Join(names, ", ")
	}
	next := again[0] + " goes on from here"
	if len(again) > 1 {
		next = "the same command goes on from here"
	}
	return []string{
		fmt.Sprintf("%s again: stopped. Left: %s%s (incomplete)", signal, counted(kinds), of),
		next + "; sledctl reap removes what no instance needs",
	}, true
}

// leaves are the kinds of what it has changed, or is changing.
func (w *Work) leaves() (kinds []string) {
	if w.Done {
		return nil
	}
	var objects []string
	note := func(a plan.Action) {
		if a.Change == plan.Wait || slices.Contains(objects, a.Object) {
			return
		}
		objects = append(objects, a.Object)
		kind, _, _ := strings.Cut(a.Object, " ")
		if kind == "vnic" {
			kind = "VNIC"
		}
		kinds = append(kinds, kind)
	}
	for _, a := range w.Running {
		note(a.Action)
	}
	for _, a := range w.Stands {
		note(a)
	}
	return kinds
}

// counted lists kinds once each, with their number: "zone, 2 vnics".
func counted(kinds []string) string {
	slices.Sort(kinds)
	var said []string
	for len(kinds) > 0 {
		kind, n := kinds[0], 1
		for n < len(kinds) && kinds[n] == kind {
			n++
		}
		if kinds = kinds[n:]; n > 1 {
			kind = fmt.Sprintf("%d %ss", n, strings.TrimSuffix(kind, "s"))
		}
		said = append(said, kind)
	}
	return strings.Join(said, ", ")
}
