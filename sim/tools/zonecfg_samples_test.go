package tools

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
)

// zonecfgSample is one story of shared/samples/zonecfg, with the answers of the real
// program.
type zonecfgSample struct {
	ID    string            `json:"id"`
	Mode  world.Mode        `json:"sim_mode"`
	Files map[string]string `json:"files"`
	Steps []struct {
		Argv []string `json:"argv"`
		Exit int      `json:"rc"`
		// Exact, or the first line only.
		Out     *string `json:"out"`
		Err     *string `json:"err"`
		OutHead *string `json:"out_head"`
		ErrHead *string `json:"err_head"`
	} `json:"steps"`
}

// recorded is how many answers of the real program there are, at least.
const recorded = 928

// What illumos' own zonecfg answers to the same commands (shared/samples/zonecfg
// next to the repository). What is not equal is named in docs/unverified.md.
func TestZonecfgAnswersAsTheRealOne(t *testing.T) {
	files, err := filepath.Glob("../../../shared/samples/zonecfg/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Skip("shared/samples/zonecfg is not here: nothing to compare with")
	}
	equal, all := 0, 0
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			var sample zonecfgSample
			if err := json.Unmarshal([]byte(line), &sample); err != nil {
				t.Fatal(err)
			}
			e, n := playZonecfg(t, sample)
			equal, all = equal+e, all+n
		}
	}
	fmt.Printf("zonecfg: %d of %d equal\n", equal, all)
	if equal != all || all < recorded {
		t.Errorf("%d of %d answers differ, of %d that were recorded", all-equal, all, recorded)
	}
}

func playZonecfg(t *testing.T, sample zonecfgSample) (equal, all int) {
	t.Helper()
	s := newZoneSled(t, boot.Options{Mode: sample.Mode})
	for name, text := range sample.Files {
		s.change(func(tx *world.Tx) {
			if err := host.MkdirAll(tx.Files, path.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := cli.WriteFile(tx.Files, name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
	for i, step := range sample.Steps {
		got, err := s.d.Exec(t.Context(), cli.Call{Tool: "zonecfg", Args: step.Argv})
		if err != nil {
			t.Fatal(err)
		}
		all++
		same := got.Exit == step.Exit && fits(got.Stdout, step.Out, step.OutHead) && fits(got.Stderr, step.Err, step.ErrHead)
		if same {
			equal++
			continue
		}
		t.Errorf("%s, step %d: zonecfg %q\nreal: exit %d\n%s---\n%s\nhere: exit %d\n%s---\n%s", sample.ID, i+1, step.Argv,
			step.Exit, either(step.Out, step.OutHead), either(step.Err, step.ErrHead), got.Exit, got.Stdout, got.Stderr)
	}
	return equal, all
}

func fits(got string, whole, head *string) bool {
	if whole != nil {
		return got == *whole
	}
	first, _, _ := strings.Cut(got, "\n")
	return head == nil || first == strings.TrimSuffix(*head, "\n")
}

func either(whole, head *string) string {
	switch {
	case whole != nil:
		return *whole
	case head != nil:
		return *head + " …\n"
	}
	return "(any)\n"
}
