package instance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/query"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance/record"
)

type nic = api.VNIC

// selection are the words and flags that pick instances.
type selection struct {
	names   query.Names
	states  []string
	failed  bool
	filters []string
}

func (s *selection) add(env *cli.Env, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&s.states, "state", nil, "only in these `STATE,...`; also changed, at-risk and busy")
	flags.StringArrayVar(&s.filters, "filter", nil, "only where `EXPR` holds, e.g. memory>=16G (repeatable)")
	env.Complete(cmd, "state", knownStates)
	env.CompleteStart(cmd, "filter", func(context.Context) []string {
		var words []string
		for _, f := range fields() {
			words = append(words, f.Key+"=")
		}
		return words
	})
}

// knownStates are Propolis' words in lower case, those of sledctl, and what a state does
// not say.
func knownStates() []string {
	return []string{
		record.Absent, "at-risk", "busy", "changed", record.Creating, "destroyed", record.Failed, "migrating", "rebooting", "repairing",
		record.Running, "starting", record.Stopped, record.Stopping, record.Unknown,
	}
}

// name takes the words that name instances. Every spelling of a UUID is the same.
func (s *selection) name(words []string) {
	s.names = nil
	for _, word := range words {
		if id, err := uuid.Parse(word); err == nil {
			word = id.String()
		}
		s.names = append(s.names, word)
	}
}

// looks reports whether it asks for what only a look at the sled tells.
func (s selection) looks() bool {
	return s.failed || s.asksLast() || slices.ContainsFunc(s.states, func(state string) bool { return slices.Contains([]string{"at-risk", "busy", "changed"}, state) })
}

// asksLast says whether the last operations pick.
func (s selection) asksLast() bool {
	return slices.ContainsFunc(s.filters, func(f string) bool { return strings.HasPrefix(strings.TrimSpace(f), "last") })
}

// given says whether anything but names picks.
func (s selection) given() bool { return len(s.states)+len(s.filters) > 0 || s.failed }

// picker reads the selection. It returns what picks, and an error that is the command
// line's.
func (s selection) picker(now time.Time) (func(cli.Instance) bool, error) {
	if err := s.names.Check(); err != nil {
		return nil, err
	}
	all := []func(cli.Instance) bool{func(i cli.Instance) bool { return s.names.Fit(i.Name, i.ID) }}
	for _, state := range s.states {
		if !slices.Contains(knownStates(), state) {
			text := fmt.Sprintf("--state %q: want one of %s", state, strings.Join(knownStates(), ", "))
			if near := naming.Nearest(state, knownStates()); near != "" {
				text = fmt.Sprintf("--state %q: did you mean %q?", state, near)
			}
			return nil, &cli.UsageError{Text: text}
		}
	}
	if len(s.states) > 0 {
		all = append(all, func(i cli.Instance) bool {
			return slices.ContainsFunc(s.states, func(state string) bool { return is(i, state) })
		})
	}
	if s.failed {
		all = append(all, func(i cli.Instance) bool { return i.Died })
	}
	for _, expression := range s.filters {
		holds, err := query.Parse(fields(), expression, now)
		if err != nil {
			return nil, err
		}
		all = append(all, holds)
	}
	return func(i cli.Instance) bool {
		return !slices.ContainsFunc(all, func(holds func(cli.Instance) bool) bool { return !holds(i) })
	}, nil
}

// is reports whether an instance is in a state of knownStates.
func is(i cli.Instance, state string) bool {
	switch state {
	case "changed":
		return len(i.Changed) > 0
	case "at-risk":
		return i.AtRisk
	case "busy":
		return i.Busy != nil
	}
	return i.State == state
}

// missing is the first name that no instance has; empty: there is none.
func (s selection) missing(all []cli.Instance) string {
	for _, name := range s.names.Plain() {
		if !slices.ContainsFunc(all, func(i cli.Instance) bool { return i.Name == name || i.ID == name }) {
			return name
		}
	}
	return ""
}

// missingOf is the error about an instance that is not among all.
func missingOf(all []cli.Instance, name string) error {
	var known []string
	for _, i := range all {
		known = append(known, i.Name)
	}
	return &record.NotFoundError{Name: name, Near: naming.Nearest(name, known)}
}
