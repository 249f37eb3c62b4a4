package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// Row is an action as it is printed.
type Row struct {
	Change Change
	Verb   string
	Object string
	Why    string
	Lines  []host.Line // what --explain adds
}

// Rows lists the plan's actions in the order in which they would be done.
func (p Plan) Rows() ([]Row, error) {
	p, err := p.Sorted()
	if err != nil {
		return nil, err
	}
	words := p.words()
	rows := make([]Row, len(p.Actions))
	for i, a := range p.Actions {
		rows[i] = Row{Change: a.Change, Verb: a.Step.Verb(), Object: words.Replace(a.Object), Why: words.Replace(a.Why), Lines: a.Step.Explain()}
		for j := range rows[i].Lines {
			rows[i].Lines[j].Text = words.Replace(rows[i].Lines[j].Text)
		}
	}
	return rows, nil
}

// words puts those in that stand for what was drawn.
func (p Plan) words() *strings.Replacer {
	var pairs []string
	for _, value := range slices.Sorted(maps.Keys(p.Drawn)) {
		pairs = append(pairs, value, p.Drawn[value])
	}
	return strings.NewReplacer(pairs...)
}

// Text renders the plan for a person, under the reason for it as a comment; with
// explain, each action is followed by
// the commands that it runs, indented, ready for a shell once unindented. Fold breaks
// what is read and not copied: it returns a line as several, of which the later ones
// are indented and leave so many columns free; nil leaves all lines as they are.
func (p Plan) Text(explain bool, fold func(line string, free int) string) (string, error) {
	rows, err := p.Rows()
	if err != nil {
		return "", err
	}
	if fold == nil {
		fold = func(line string, _ int) string { return line }
	}
	verb := 0
	for _, r := range rows {
		verb = max(verb, len(r.Verb))
	}
	var b strings.Builder
	if p.Why != "" {
		b.WriteString(comment(fold("# "+p.Why, len(sign))) + "\n")
	}
	for _, r := range rows {
		heading := string(r.Change) + " " + pad(r.Verb, verb) + "  " + r.Object
		if r.Why != "" {
			heading += ": " + r.Why // not in a column: names are long
		}
		b.WriteString(fold(heading, 0) + "\n")
		if !explain {
			continue
		}
		for _, line := range r.Lines {
			text := indent(line)
			if line.Kind == host.LineWait {
				text = comment(fold(text, len(sign)))
			}
			b.WriteString(text + "\n")
		}
	}
	return b.String(), nil
}

// sign begins a comment.
const sign = "# "

// comment has each further line of a folded comment be one, too.
func comment(folded string) string {
	first, more, broken := strings.Cut(folded, "\n")
	if !broken {
		return first
	}
	const next = "\n    "
	return first + next + sign + strings.ReplaceAll(strings.TrimLeft(more, " "), next, next+sign)
}

// indent leaves the body of a here-document where it is: indented, it would
// be another document.
func indent(l host.Line) string {
	head, body, more := strings.Cut(l.Text, "\n")
	if !more {
		return "    " + head
	}
	return "    " + head + "\n" + body
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-len(s)))
}
