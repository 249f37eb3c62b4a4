package sleds

import (
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// Afar is how commands that act on the sled of this run are typed where the operator is. The
// zero value is for a sled that was not named: they are typed as they stand.
type Afar struct {
	sled  string   // as --sled names it; empty: it was not named
	agent []string // the flags that ask its agent, where --agent was typed
	asks  bool     // an agent answers, and not for every command
	words []string // that commands begin with
}

// ByAgent are the commands that an agent answers.
func ByAgent() []string {
	return []string{
		"events", "instance delete", "instance ensure", "instance get", "instance list", "instance logs", "instance reboot",
		"instance start", "instance stop", "instance wait", "instance watch", "status",
	}
}

// NotByAgent are the flags that no agent can be asked for.
func NotByAgent() []string {
	return []string{
		"--all", "--dry-run", "--explain", "--grace", "--keep", "--migrate-from", "--migration-id", "-n",
	}
}

// What stands before a command that must be typed on the sled, and before one that is for
// another sled.
const (
	onTheSled   = "on the sled: "
	onTheSource = "on the source: "
)

// Typed is a text whose commands can be typed as they stand: each names the sled, or the text
// says that it is to be typed there.
func (a Afar) Typed(text string) string {
	if a.sled == "" && a.agent == nil {
		return text
	}
	before, rest, found := strings.Cut(text, "sledctl ")
	if !found {
		return text
	}
	words := strings.Fields(rest[:lengthOf(rest)])
	switch {
	case len(words) == 0 || !slices.Contains(a.words, words[0]) || aboutFile(words) || slices.Contains(words, "--help") || strings.HasSuffix(before, onTheSource), strings.HasSuffix(strings.TrimSuffix(before, "pfexec "), onTheSled):
		before += "sledctl "
	case a.asks && !answers(words), strings.HasSuffix(before, "pfexec "):
		before = there(before) + "sledctl "
	case a.sled != "":
		before += "sledctl --sled " + a.sled + " "
	default:
		var path string
		path, rest = rest[:pathOf(words)], rest[pathOf(words):]
		before += "sledctl " + path + " " + strings.Join(a.agent, " ")
	}
	return before + a.Typed(rest)
}

// Each are commands that are typed one after the other.
func (a Afar) Each(commands []string) []string {
	if commands == nil || a.sled == "" && a.agent == nil {
		return commands
	}
	typed := make([]string, len(commands))
	for i, c := range commands {
		if typed[i] = a.Typed(c); typed[i] == c && !strings.HasPrefix(c, "sledctl ") {
			typed[i] = onTheSled + c // it is of the host
		}
	}
	return typed
}

// Joined is one line of commands that were typed with Each.
func (Afar) Joined(typed []string) string {
	there := func(s string) bool { return strings.HasPrefix(s, onTheSled) }
	switch {
	case !slices.ContainsFunc(typed, there):
		return strings.Join(typed, " && ")
	case slices.ContainsFunc(typed, func(s string) bool { return !there(s) }):
		return strings.Join(typed, "; then ")
	}
	return onTheSled + strings.ReplaceAll(strings.Join(typed, " && "), onTheSled, "")
}

// there is the text before a command that must be typed on the sled.
func there(before string) string {
	before, elevated := strings.CutSuffix(before, "pfexec ")
	if rest, run := strings.CutSuffix(before, "run: "); run {
		before = rest + "run " + onTheSled
	} else if rest, colon := strings.CutSuffix(before, ": "); colon {
		before = rest + ", " + onTheSled
	} else {
		before += onTheSled
	}
	if elevated {
		before += "pfexec "
	}
	return before
}

// answers reports whether an agent answers a command.
func answers(words []string) bool {
	for _, w := range words {
		if slices.Contains(NotByAgent(), w) {
			return false
		}
	}
	return pathOf(words) > 0
}

// aboutFile reports whether a command is about a file that is where it is typed.
func aboutFile(words []string) bool {
	return len(words) > 3 && slices.Equal(words[:2], []string{"propolis", "spec"}) && slices.Contains([]string{"convert", "validate"}, words[2])
}

// pathOf is the length of the name of a command that an agent answers; 0: it is none.
func pathOf(words []string) int {
	for n := range min(len(words), 2) {
		if path := strings.Join(words[:n+1], " "); slices.Contains(ByAgent(), path) {
			return len(path)
		}
	}
	return 0
}

// lengthOf is where a command ends that a text begins with.
func lengthOf(text string) int {
	end := len(text)
	for _, mark := range []string{"; ", ", ", " && ", " (", ")", "`", "\n"} {
		if at := strings.Index(text, mark); at >= 0 {
			end = min(end, at)
		}
	}
	return end
}

// Named is how they are typed if the sled is named: --sled NAME.
func (a Afar) Named(name string, s Sled) Afar {
	return Afar{sled: name, asks: s.Agent != "", words: a.words}
}

// Asked is how they are typed if flags name its agent: each flag and its value.
func (a Afar) Asked(flags []string) Afar {
	for i, f := range flags {
		flags[i] = host.Quote(f)
	}
	return Afar{agent: flags, asks: true, words: a.words}
}

// Of is how they are typed if commands that act on a sled begin with one of these words.
func Of(words []string) Afar { return Afar{words: words} }

// Name is the name of the sled, if that was given.
func (a Afar) Name() string { return a.sled }
