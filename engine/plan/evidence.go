package plan

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/host"
)

// Evidence shows why a step on a zone has failed. Undoing the run removes it, so it is
// gathered before that.
type Evidence struct {
	Root string // of the zone, as the host names it
	// Log is the file below Root whose last lines are quoted; if it is a
	// directory, that of its files that was written last.
	Log string
	// Keep is what is done for it where what was made is about to be taken back.
	Keep []Action
}

// EvidenceTime bounds the gathering: somebody waits for the error.
const EvidenceTime = 15 * time.Second

// Quote is the end of a log.
type Quote struct {
	File  string   `json:"file"` // as the host names it
	Lines []string `json:"lines"`
}

// gather looks for the reason why the run failed. After an interrupt the reason is
// known, and the operator does not want to wait: that ends it, too.
func (r *run) gather(ctx context.Context) {
	if canceled(ctx) {
		return
	}
	gathering, release := context.WithTimeout(context.WithoutCancel(ctx), EvidenceTime)
	defer release()
	defer context.AfterFunc(ctx, func() {
		if canceled(ctx) {
			release()
		}
	})()
	var keep []Action
	for _, f := range r.outcome.Failed {
		e := f.Action.Evidence
		if e == nil {
			continue
		}
		f.Quote = e.quote(r.h.Files())
		for _, k := range e.Keep {
			if !slices.ContainsFunc(keep, func(a Action) bool { return a.ID == k.ID }) {
				keep = append(keep, k)
			}
		}
	}
	if !r.takesBack() {
		return
	}
	for _, k := range keep {
		r.keep(gathering, k)
	}
}

// canceled says whether somebody ended the run, not its time.
func canceled(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// keep does one action for the evidence. No other action waits for it.
func (r *run) keep(ctx context.Context, a Action) {
	r.observe(Event{Kind: Started, Action: a})
	start := time.Now()
	err := attempt(ctx, host.ForAction(r.h, a.ID), a.Step)
	if err != nil {
		passed := &StepError{Action: a, Elapsed: time.Since(start), Err: err}
		r.outcome.Passed = append(r.outcome.Passed, passed)
		r.observe(Event{Kind: Passed, Action: a, Elapsed: passed.Elapsed, Err: err})
		return
	}
	r.outcome.Kept = append(r.outcome.Kept, a)
	r.observe(Event{Kind: Finished, Action: a, Elapsed: time.Since(start)})
}

// How much of a log is quoted.
const (
	quoteLines = 6
	quoteWidth = 400     // bytes of a line
	quoteTail  = 8 << 10 // bytes that are read for it
)

// quote reads the end of the log through a view that cannot leave the zone. There
// may be none.
//
// Guess last-log-says-why: of a zone that does not come to its milestone, the log below
// /var/svc/log that was written last says why.
// Check: make a service before the milestone fail; `instance ensure`, and what it quotes
func (e Evidence) quote(files host.Files) Quote {
	root, err := files.In(e.Root)
	if err != nil {
		return Quote{}
	}
	name := e.Log
	if infos, err := root.ReadDir(name); err == nil {
		infos = slices.DeleteFunc(infos, func(i host.Info) bool { return !i.Mode.IsRegular() })
		if len(infos) == 0 {
			return Quote{}
		}
		name = path.Join(name, slices.MaxFunc(infos, func(a, b host.Info) int { return a.Time.Compare(b.Time) }).Name)
	}
	tail, _, err := host.Tail(root, name, quoteTail)
	if err != nil {
		return Quote{}
	}
	lines := slices.DeleteFunc(strings.Split(string(tail), "\n"), func(line string) bool { return strings.TrimSpace(line) == "" })
	lines = lines[max(0, len(lines)-quoteLines):]
	for i, line := range lines {
		lines[i] = strings.ToValidUTF8(line[:min(len(line), quoteWidth)], "")
	}
	if len(lines) == 0 {
		return Quote{}
	}
	return Quote{File: path.Join(e.Root, name), Lines: lines}
}
