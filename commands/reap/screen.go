package reap

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/reap"
)

// screen prints the removals for people, and the objects that need a look; the rest is counted. Dry says
// that nothing was removed: it was asked what would be.
func screen(s *terminal.Stream, objects []shownObject, foreign int, dry bool) error {
	short := terminal.ShortPools(pools(objects))
	var b bytes.Buffer
	for _, line := range terminal.Wrapped(summary(objects, foreign, dry), s.Width()) {
		b.WriteString(s.Style(terminal.Strong, line) + "\n")
	}
	before := ""
	for i, g := range grouped(changes(objects)) {
		if i == 0 {
			b.WriteString("\n")
		}
		said := g.said()
		again := said == before
		before = said
		if len(g.names) == 1 && len(short(g.names[0])) <= s.Width()-labelWidth {
			writeLabelled(&b, s, g.kind, []string{short(g.names[0])}, terminal.Strong)
			writeLabelled(&b, s, "", terminal.Wrapped(short(said), s.Width()-labelWidth), g.style)
			continue
		}
		if again {
			said = "for the same reason"
		}
		if len(g.names) > 1 {
			said = fmt.Sprintf("%d, %s", len(g.names), said)
		}
		writeLabelled(&b, s, g.kind, terminal.Wrapped(short(said), s.Width()-labelWidth), g.style)
		writeNames(&b, s, short(strings.Join(g.names, " ")))
	}
	if len(objects) > 0 {
		b.WriteString("\n")
		for _, line := range terminal.Wrapped(closing(objects, dry), s.Width()) {
			b.WriteString(s.Style(terminal.Faint, line) + "\n")
		}
	}
	_, err := s.Write(b.Bytes())
	return err
}

// labelWidth is the column in which what stands behind a kind begins.
const labelWidth = 12

func writeLabelled(b *bytes.Buffer, s *terminal.Stream, label string, lines []string, style terminal.Style) {
	for _, line := range lines {
		fmt.Fprintf(b, "%-*s%s\n", labelWidth, label, s.Style(style, line))
		label = ""
	}
}

// writeNames puts as many names on a line as fit behind the labels. Names are copied: one that does
// not fit there has a line of its own further left, and is not broken if that is enough.
func writeNames(b *bytes.Buffer, s *terminal.Stream, names string) {
	const further = 2
	short := []string{}
	write := func() {
		if len(short) > 0 {
			writeLabelled(b, s, "", terminal.Wrapped(strings.Join(short, " "), s.Width()-labelWidth), terminal.Plain)
		}
		short = nil
	}
	for name := range strings.FieldsSeq(names) {
		if len(name) <= s.Width()-labelWidth {
			short = append(short, name)
			continue
		}
		write()
		for _, line := range terminal.Wrapped(name, s.Width()-further) {
			fmt.Fprintf(b, "%*s%s\n", further, "", line)
		}
	}
	write()
}

// summary counts all objects: by what is done with them, else by what they are.
func summary(objects []shownObject, foreign int, dry bool) string {
	counts := map[string]int{}
	for _, o := range objects {
		switch {
		case o.Result != "":
			counts[o.Result]++
		case o.Verdict.NeedsALook():
			counts["to look at"]++
		case o.Verdict == reap.InUse:
			counts["in use"]++
		default:
			counts[string(o.Verdict)]++
		}
	}
	var parts []string
	switch {
	case dry && counts[resultToRemove] == 0:
		parts = append(parts, "nothing to remove")
	case !dry && counts[resultRemoved] == 0:
		parts = append(parts, "nothing removed")
	}
	for _, word := range []string{
		resultToRemove, resultRemoved, resultLeft, resultLeftOut, "to look at",
		string(reap.InUse), string(reap.InProgress), string(reap.Held), string(reap.Spare),
	} {
		if counts[word] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[word], word))
		}
	}
	if foreign > 0 {
		parts = append(parts, fmt.Sprintf("%d of others", foreign))
	}
	return strings.Join(parts, ", ")
}

// closing says what to type next.
func closing(objects []shownObject, dry bool) string {
	all := fmt.Sprintf("--all-objects lists all %d", len(objects))
	for _, o := range objects {
		if dry && o.Result == resultToRemove {
			return "sledctl reap removes what is to be removed; " + all
		}
	}
	return all
}

// changes are the removals, and the objects that need a look.
func changes(objects []shownObject) []shownObject {
	some := []shownObject{}
	for _, o := range objects {
		if o.Result != "" || o.Verdict.NeedsALook() {
			some = append(some, o)
		}
	}
	return some
}

// group are objects of a kind that one reason holds for, but for the instance in it.
type group struct {
	kind      string
	first     shownObject
	names     []string
	instances []string // in the reason, each once
	style     terminal.Style
}

// said is the verdict and the reason. What killed operations left is said in fewer words than in
// a list, with all instances, so that three of them fit on a screen.
func (g group) said() string {
	o := g.first
	if verb, _, killed := reap.LeftBy(o.Reason); killed {
		o.Reason = "left by unfinished " + verb + " of " + strings.Join(slices.Sorted(slices.Values(g.instances)), " ")
	}
	return objectList().Tall.Detail(o)
}

// grouped is in the order of the first ones.
func grouped(objects []shownObject) []*group {
	var all []*group
	found := map[string]*group{}
	for _, o := range objects {
		reason := o.Reason
		verb, instance, killed := reap.LeftBy(reason)
		if killed {
			reason = "left by " + verb
		}
		key := strings.Join([]string{o.Kind, string(o.Verdict), o.Result, reason}, "\x00")
		g := found[key]
		if g == nil {
			g = &group{kind: o.Kind, first: o, style: objectList().Tall.Style(o)}
			found[key] = g
			all = append(all, g)
		}
		g.names = append(g.names, o.Name)
		if killed && !slices.Contains(g.instances, instance) {
			g.instances = append(g.instances, instance)
		}
	}
	return all
}

// pools is each word of the names and reasons, pools among them: no short name may stand
// for two.
func pools(objects []shownObject) []string {
	var names []string
	for _, o := range objects {
		names = append(names, strings.FieldsFunc(o.Name+" "+o.Reason, func(r rune) bool { return r == ' ' || r == '/' || r == ';' || r == ',' })...)
	}
	return names
}
