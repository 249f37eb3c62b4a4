package zonecfg

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

//go:embed words.json
var wordsFile []byte

// words are those of zonecfg's language, and what it says about itself. The lines that
// show a command's form are those of usr/src/cmd/zonecfg/zonecfg.c; the paragraph that
// follows one is shorter here.
type words struct {
	Usage      map[string][2]string // of each command: its form, and what it does
	Syntax     string
	Resources  []string
	Properties map[string][]string // of each resource, in the order in which the usage has them
	Globals    []string            // the properties of the zone as a whole
	Pieces     []string            // what the value of a resource control is made of
	Own        []string            // the properties that the gate does not have, and OmniOS and SmartOS have
	Privileges []string            // those of privileges(7)
	// Prohibited are those that the brands forbid to their zones (config.xml of the brands
	// in omniosorg/pkg5 and oxidecomputer/helios-omicron-brand).
	Prohibited []string
}

func readWords() *words {
	w := &words{}
	if err := json.Unmarshal(wordsFile, w); err != nil {
		panic(err)
	}
	return w
}

// isProperty tells whether a name is one of a property, of a zone or of any resource.
func (w *words) isProperty(name string) bool {
	return slices.Contains(slices.Concat(append(slices.Collect(maps.Values(w.Properties)), w.Globals, w.Pieces, w.Own)...), name)
}

// isWord tells whether a text is a word of its own for the lexer.
func (w *words) isWord(text string, mode world.Mode) bool {
	if slices.Contains(w.Own, text) {
		return mode != world.Helios
	}
	return slices.Contains(w.Resources, text) || w.isProperty(text)
}

// Brands are the brands of a distribution that can be configured.
func Brands(mode world.Mode) []string {
	return strings.Fields(map[world.Mode]string{
		world.Helios: "omicron1 ipkg", world.SmartOS: "joyent joyent-minimal lx bhyve kvm",
		world.OmniOS: "sparse ipkg lipkg pkgsrc lx bhyve kvm emu illumos",
	}[mode])
}

// BadPrivilege is the first privilege of a limit set that there is not, or
// that no zone may have (zonecfg_get_privset; privileges(7)).
func BadPrivilege(set string) string {
	if set == "" {
		return ""
	}
	w := readWords()
	for name := range strings.SplitSeq(set, ",") {
		plain := strings.TrimLeft(name, "!-")
		if !slices.Contains(w.Privileges, plain) || plain == name && slices.Contains(w.Prohibited, plain) {
			return plain
		}
	}
	return ""
}

// shortUsage is for bad syntax.
func (s *cfgSession) shortUsage(command string) {
	if s.fileMode {
		fmt.Fprintf(&s.err, "syntax error on line %d of %s\n", s.line-1, s.fileName)
	}
	fmt.Fprintf(&s.err, "usage:\n%s\n", s.words.Usage[command][0])
	s.sawError = true
}

// usageOfCommands is the part of the usage that lists them.
func (s *cfgSession) usageOfCommands() {
	s.err.WriteString("Commands:\n\n")
	for _, name := range slices.Sorted(maps.Keys(s.words.Usage)) {
		s.err.WriteString(s.words.Usage[name][0] + "\n")
	}
}

func (s *cfgSession) usageOfResources() {
	fmt.Fprintf(&s.err, "<resource type> := %s\n\n", strings.Join(s.words.Resources, " | "))
}

func (s *cfgSession) usageOfProperties() {
	s.err.WriteString("For resource type ... there are property types ...:\n")
	for _, name := range s.words.Globals {
		fmt.Fprintf(&s.err, "\t(global)\t%s\n", name)
	}
	for _, kind := range s.words.Resources {
		fmt.Fprintf(&s.err, "\t%s\t\t%s\n", kind, strings.Join(s.words.Properties[kind], ", "))
	}
}
