package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mark opens a guess, and meaning another comment that means one. They are put together, so
// that the samples here are none.
const (
	mark    = "// " + "Guess "
	meaning = "// " + "Guess:"
)

func TestGuessesAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		source string
		want   []guess
	}{
		"none": {"package zone\n\n// Boot boots; no guess is in it.\nfunc Boot() {}\n", nil},
		"open, behind a comment": {
			"package zone\n\n// Boot boots.\n//\n" + mark + "boot-returns: it returns.\n// Check: `boot | cat`\nfunc Boot() {}\n",
			[]guess{{"boot-returns", "it returns.", "`boot | cat`", open, "zone/a.go", 5}},
		},
		"continued, settled": {
			"package zone\n\n" + mark + "boot-returns: it\n// returns.\n// Check: `boot`,\n// twice\n// State: settled by\n// zoneadm.c\n//\n// More words.\nfunc Boot() {}\n",
			[]guess{{"boot-returns", "it returns.", "`boot`, twice", "settled by zoneadm.c", "zone/a.go", 3}},
		},
		"two of one comment, in a function": {
			"package zone\n\nfunc Boot() {\n\t" + mark + "a-b: one.\n\t// Check: nothing: it is chosen here\n\t" + mark + "a-c: two.\n" +
				"\t// State: confirmed on omnios-r151058\n\t// Check: `two`\n\t_ = 0\n}\n",
			[]guess{
				{"a-b", "one.", "nothing: it is chosen here", open, "zone/a.go", 4},
				{"a-c", "two.", "`two`", "confirmed on omnios-r151058", "zone/a.go", 6},
			},
		},
		"nothing to check yet": {
			"package zone\n\n" + mark + "a-b: one.\n// Check: nothing, until it occurs\n// State: refuted on helios-2.0\nvar _ = 0\n",
			[]guess{{"a-b", "one.", "nothing, until it occurs", "refuted on helios-2.0", "zone/a.go", 3}},
		},
		"an example, and a text": {"package zone\n\n// The form is\n//\n//\tGuess a-b: one.\nvar text = \"" + mark + "a-b: one.\"\n", nil},
	} {
		got, faults := guesses(map[string][]byte{"zone/a.go": []byte(c.source)})
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(guess{})); diff != "" || faults != nil {
			t.Errorf("%s: %v\n%s", name, faults, diff)
		}
	}
}

func TestAGuessOfAnotherFormIsAFault(t *testing.T) {
	const check = "// Check: `boot`\n"
	for name, c := range map[string]struct{ comment, want string }{
		"no id":               {meaning + " it returns.\n" + check, "zone/a.go:3: a guess without an id"},
		"no id, in a line":    {"// Boot boots. " + strings.TrimPrefix(meaning, "// ") + " it returns.\n", "zone/a.go:3: a guess without an id"},
		"an id of one word":   {mark + "boot: it returns.\n" + check, "zone/a.go:3: a guess without an id"},
		"an id with capitals": {mark + "Boot-Returns: it returns.\n" + check, "zone/a.go:3: a guess without an id"},
		"an id twice": {
			mark + "a-b: one.\n" + check + mark + "a-b: two.\n" + check,
			"zone/a.go:5: guess a-b is also at zone/a.go:3: ids are unique",
		},
		"an unknown state":   {mark + "a-b: one.\n" + check + "// State: settled\n", `zone/a.go:3: guess a-b has the unknown state "settled"`},
		"another word":       {mark + "a-b: one.\n" + check + "// State: believed\n", `zone/a.go:3: guess a-b has the unknown state "believed"`},
		"no check":           {mark + "a-b: one.\n", "zone/a.go:3: guess a-b has no check"},
		"no reason":          {mark + "a-b: one.\n// Check: nothing\n", "zone/a.go:3: guess a-b does not say why nothing can be checked"},
		"a check of another": {mark + "a-b: one.\n//\n" + check, "zone/a.go:3: guess a-b has no check"},
	} {
		_, faults := guesses(map[string][]byte{"zone/a.go": []byte("package zone\n\n" + c.comment + "var _ = 0\n")})
		if len(faults) != 1 || !strings.HasPrefix(faults[0], c.want) {
			t.Errorf("%s: %q, want %q", name, faults, c.want)
		}
	}
}

func TestGuessesArePrinted(t *testing.T) {
	files := map[string][]byte{
		"sim/world/zfs/a.go": []byte("package zfs\n\n" + mark + "b-c: one.\n// Check: `a | b`\n\n" + mark + "b-a: two.\n// Check: nothing: it is chosen here\n"),
		"zone/a.go":          []byte("package zone\n\n" + mark + "z-a: three.\n// Check: `c`\n// State: settled by zoneadm.c:1\n"),
	}
	const want = collected + `
# Page

Guesses: 3, of which 2 open, 1 settled by source, 0 confirmed, 0 refuted.

## Zones

| id | assumed | state | to check |
|---|---|---|---|
| ` + "`z-a`" + ` | three | settled by zoneadm.c:1 | ` + "`c`" + ` |

## The simulated sled

| id | assumed | state | to check |
|---|---|---|---|
| ` + "`b-a`" + ` | two | open | nothing: it is chosen here |
| ` + "`b-c`" + ` | one | open | ` + "`a \\| b`" + ` |
`
	page, err := unverifiedPage(files, "# Page\n")
	if diff := cmp.Diff(want, string(page)); diff != "" || err != nil {
		t.Error(err, diff)
	}
	files["nowhere/a.go"] = files["zone/a.go"]
	delete(files, "zone/a.go")
	if _, err := unverifiedPage(files, "# Page\n"); err == nil || !strings.Contains(err.Error(), "nowhere/a.go:3: guess z-a is in no area") {
		t.Error(err)
	}
}

// TestTheUnverifiedPageIsCurrent holds docs/unverified.md to the comments of the code, and
// counts these once more without a parser.
func TestTheUnverifiedPageIsCurrent(t *testing.T) {
	files, err := sources("../..")
	if err != nil {
		t.Fatal(err)
	}
	want, err := unverifiedPage(files, introduction)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../unverified.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(page)); diff != "" {
		t.Errorf("docs/unverified.md is not what the comments of the code say: make docs writes it\n%s", diff)
	}
	comment := regexp.MustCompile(strings.TrimSpace(mark) + `\b *([a-z0-9-]*)`)
	for name, text := range files {
		for n, line := range slices.Collect(strings.Lines(string(text))) {
			if found := comment.FindStringSubmatch(line); found != nil && !strings.Contains(string(page), "| `"+found[1]+"` |") {
				t.Errorf("%s:%d: docs/unverified.md has no %q", name, n+1, found[1])
			}
		}
	}
}
