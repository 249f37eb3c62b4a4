package sleds

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/sledctl/sledctl/commands/terminal"
)

// Asked is a sled that was asked for its status.
type Asked struct {
	Name    string `json:"name"`
	Way     string `json:"way"`
	Current bool   `json:"current"`
	Verdict string `json:"verdict,omitempty"` // of status; UNKNOWN: it did not say; empty: it was not asked
	VMs     string `json:"vms,omitempty"`     // that are up, of those that are wanted up, if that differs
	Detail  string `json:"detail,omitempty"`  // the first problem, or why it did not say
	// Since is when the first problem began; null: there is none, or the sled does not know.
	Since *time.Time `json:"since,omitempty"`
}

// Run runs a program, the first of the words, and gives what it printed and its exit code.
type Run func(ctx context.Context, words []string) (stdout, stderr string, exit int, err error)

// Ask asks sleds for their status, all at once, each in a process of its own.
func (f File) Ask(ctx context.Context, run Run, names []string) []Asked {
	asked := make([]Asked, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			asked[i] = ask(ctx, run, name)
			asked[i].Name, asked[i].Way, asked[i].Current = name, f.Sleds[name].Way(), name == f.Current
		})
	}
	all.Wait()
	return asked
}

func ask(ctx context.Context, run Run, name string) Asked {
	unknown := func(err error) Asked { return Asked{Verdict: "UNKNOWN", Detail: err.Error()} }
	self, err := os.Executable()
	if err != nil {
		return unknown(err)
	}
	out, errs, exit, err := run(ctx, []string{self, "--sled", name, "status", "-o", "json"})
	if err != nil {
		return unknown(err)
	}
	var said struct {
		Verdict  string
		Problems []struct {
			Text  string
			Since *time.Time
		}
		Instances struct {
			Up       int
			WantedUp int `json:"wanted_up"`
		}
	}
	if err := json.Unmarshal([]byte(out), &said); err != nil || said.Verdict == "" {
		return unknown(errors.New(saidInstead(errs, exit)))
	}
	asked := Asked{Verdict: said.Verdict, VMs: fmt.Sprint(said.Instances.Up)}
	if up, wanted := said.Instances.Up, said.Instances.WantedUp; up != wanted {
		asked.VMs = fmt.Sprintf("%d/%d", up, wanted)
	}
	if len(said.Problems) > 0 {
		asked.Detail, asked.Since = said.Problems[0].Text, said.Problems[0].Since
	}
	return asked
}

// saidInstead is the line of an error that says most.
func saidInstead(stderr string, exit int) string {
	for line := range strings.Lines(stderr) {
		var document struct{ Error struct{ Message string } }
		if json.Unmarshal([]byte(line), &document) == nil && document.Error.Message != "" {
			return document.Error.Message
		}
	}
	line, _, _ := strings.Cut(strings.TrimSpace(stderr), "\n")
	return cmp.Or(strings.TrimPrefix(strings.TrimPrefix(line, "sledctl: "), "error: "), fmt.Sprintf("exit %d", exit))
}

// List is how sleds are printed; asked says whether with what they answered. People see ages
// as of now.
func List(asked bool, now time.Time) terminal.List[Asked] {
	list := terminal.List[Asked]{Kind: "Sled", Name: func(s Asked) string { return s.Name }}
	type column = terminal.Column[Asked]
	list.Columns = []column{
		{Name: "name", Value: func(s Asked) string { return s.Name }},
		{Name: "way", Value: func(s Asked) string { return s.Way }},
		{Name: "current", Value: func(s Asked) string { return map[bool]string{true: "yes", false: "-"}[s.Current] }},
	}
	if asked {
		list.Columns = append(list.Columns,
			column{Name: "verdict", Value: func(s Asked) string { return s.Verdict }},
			column{Name: "vms", Value: func(s Asked) string { return cmp.Or(s.VMs, "-") }, Right: true},
			column{Name: "detail", Value: func(s Asked) string { return cmp.Or(s.Detail, "-") }},
			column{Name: "since", Extra: true, Value: func(s Asked) string { return s.since(func(t time.Time) string { return t.Format(time.RFC3339) }) },
				Human: func(s Asked) string { return s.since(func(t time.Time) string { return terminal.Age(now, t) }) }},
		)
		list.Table = []string{"name", "way", "current", "verdict", "vms", "since", "detail"}
	}
	return list
}

// since is when the first problem began, written so; "-": that is not known.
func (s Asked) since(write func(time.Time) string) string {
	if s.Since == nil {
		return "-"
	}
	return write(*s.Since)
}

// Worst is the worst of the verdicts: OK, ATTENTION, or TROUBLE, also where one did not say.
func Worst(asked []Asked) string {
	worst := "OK"
	for _, s := range asked {
		switch {
		case s.Verdict == "OK":
		case s.Verdict == "ATTENTION" && worst == "OK":
			worst = s.Verdict
		case s.Verdict != "ATTENTION":
			worst = "TROUBLE"
		}
	}
	return worst
}
