// Package logread reads the logs of instances' zones, for instance logs and for the agent.
package logread

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/logs"
)

// How much of all logs is read at once, in bytes: by a command, and by an agent, of which many
// may ask.
const (
	CommandMost = 256 << 20
	AgentMost   = 8 << 20
)

// Tell takes lines, the oldest first, and whether older ones that are meant are left out.
type Tell func(lines []api.LogLine, cut bool) error

// Read passes on the lines that are meant, and notes what is to be said next to them. Of all
// logs it reads so many bytes at most. If it follows, it also passes on what comes, until the
// context ends.
func Read(ctx context.Context, e *cli.Env, q api.LogQuery, follow bool, most int, tell Tell, note func(string)) error {
	r, err := newReader(ctx, e, q, most, note)
	if err != nil {
		return err
	}
	found, err := r.find(ctx)
	if err != nil {
		return err
	}
	if follow {
		return r.follow(ctx, found, tell)
	}
	chunks, err := r.read(ctx, found)
	if err != nil {
		return err
	}
	lines, cut := r.lines(chunks, q)
	return tell(lines, cut)
}

// reader reads the logs of instances.
type reader struct {
	e        *cli.Env
	q        api.LogQuery
	most     int // bytes, of all
	note     func(string)
	service  logs.Service
	files    host.Files
	places   ledger.Places
	settings instance.Settings
}

func newReader(ctx context.Context, e *cli.Env, q api.LogQuery, most int, note func(string)) (*reader, error) {
	h, places, err := e.Places()
	if err != nil {
		return nil, err
	}
	s, _, err := e.Instances(ctx)
	return &reader{e: e, q: q, most: most, note: note, service: logs.Service(q.Service), files: h.Files(), places: places, settings: s}, err
}

// lines are those of what was read that are meant.
func (r *reader) lines(chunks []logs.Chunk, q api.LogQuery) (shown []api.LogLine, cut bool) {
	var parts [][]logs.Entry
	for _, c := range chunks {
		parts, cut = append(parts, c.Entries(r.e.Now().Local())), cut || c.Cut
	}
	all := logs.Merged(parts...)
	if !q.Since.IsZero() {
		since := logs.Since(all, q.Since)
		cut = cut && len(since) == len(all)
		all = since
	}
	last := logs.Within(logs.Last(all, q.Last), r.most/2)
	cut = cut || len(last) < len(all)
	for _, l := range last {
		shown = append(shown, lineOf(l))
	}
	return shown, cut
}

// find finds all that are named, before the first is read.
func (r *reader) find(ctx context.Context) ([]logs.Instance, error) {
	view, err := r.e.View(ctx)
	if err != nil {
		return nil, err
	}
	var all []logs.Instance
	for _, name := range r.q.Instances {
		of, err := logs.Find(ctx, r.files, r.places, r.settings, view, name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(all, of) {
			all = append(all, of)
		}
	}
	return all, nil
}

// read reads what there is of some instances. One that has logged nothing is an error if it
// is the only one, or all are like it; else it is noted.
func (r *reader) read(ctx context.Context, of []logs.Instance) ([]logs.Chunk, error) {
	var all []logs.Chunk
	var none []error
	for _, i := range of {
		chunks, err := r.ofOne(ctx, i, logs.Share(r.most, len(of)))
		if _, missing := errors.AsType[*cli.NotFoundError](err); missing {
			none = append(none, err)
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, chunks...)
	}
	if len(none) == len(of) {
		return nil, none[0]
	}
	for _, err := range none {
		r.note(warned + err.Error())
	}
	return all, nil
}

// ofOne is what one instance has logged: its zone's logs, else those of the newest bundle.
func (r *reader) ofOne(ctx context.Context, i logs.Instance, most int) ([]logs.Chunk, error) {
	if !r.q.Previous {
		chunks, err := r.present(ctx, i, most)
		if len(chunks) > 0 || err != nil {
			return chunks, err
		}
	}
	past, err := logs.Past(ctx, r.files, r.places, r.settings, i.ID)
	if err != nil {
		return nil, err
	}
	taken, err := r.e.Bundles(ctx)
	if err != nil {
		return nil, err
	}
	kept, chunks, err := logs.Kept(r.files, past, taken, r.service)
	switch {
	case errors.Is(err, fs.ErrNotExist) && r.service != "" && r.service != logs.All:
		return nil, &cli.NotFoundError{What: fmt.Sprintf("a log of service %q of instance %s", r.service, i.Name), List: "sledctl instance logs " + i.Name + " --service all"}
	case errors.Is(err, fs.ErrNotExist):
		return nil, &cli.NotFoundError{What: "a log of instance " + i.Name, List: "sledctl zone bundle list"}
	case err != nil:
		return nil, err
	}
	for n := range chunks {
		chunks[n] = chunks[n].End(logs.Share(most, len(chunks)))
		chunks[n].Instance = i.Name
	}
	r.note(fmt.Sprintf("of bundle %s, taken %s from zone %s", kept.ID, terminal.Ago(r.e.Now(), kept.Time), kept.Zone))
	return chunks, nil
}

// present are the logs of the zone that an instance has; none, if it has no zone.
func (r *reader) present(ctx context.Context, i logs.Instance, most int) ([]logs.Chunk, error) {
	var chunks []logs.Chunk
	all, err := r.current(ctx, []string{i.ID})
	for _, l := range all {
		if err != nil {
			break
		}
		var c logs.Chunk
		if c, err = l.Read(r.files, logs.Share(most, len(all))); err == nil {
			chunks = append(chunks, c)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return chunks, err
}

// current are where the logs are now; none, of an instance without a zone.
func (r *reader) current(ctx context.Context, refs []string) ([]logs.Log, error) {
	view, err := r.e.View(ctx)
	if err != nil {
		return nil, err
	}
	var all []logs.Log
	for _, ref := range refs {
		own, there := logs.Current(r.settings, view, ref)
		if !there {
			continue
		}
		some, err := own.Of(r.files, r.service)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// follow passes on what is there and what comes, until the context ends.
func (r *reader) follow(ctx context.Context, found []logs.Instance, tell Tell) error {
	f, err := r.follower(ctx, found, tell)
	if err != nil {
		return err
	}
	for q := r.q; ; q = (api.LogQuery{}) { // of all that comes, each line is meant
		chunks, err := f.Next(ctx)
		if err != nil {
			return err
		}
		r.another(chunks)
		lines, cut := r.lines(chunks, q)
		if err := tell(lines, cut); err != nil {
			return err
		}
	}
}

// follower reads the logs of the instances. Where there is none yet, that is passed on.
func (r *reader) follower(ctx context.Context, found []logs.Instance, tell Tell) (*logs.Follower, error) {
	for _, i := range found {
		if i.Deleted {
			return nil, &cli.UsageError{Text: "--follow: instance " + i.Name + " was deleted, and logs nothing"}
		}
	}
	f := &logs.Follower{Files: r.files, Total: r.most, Logs: func(ctx context.Context) []logs.Log {
		all, err := r.current(ctx, r.q.Instances)
		if err != nil { // the next look may say more
			return nil
		}
		return all
	}}
	if len(f.Logs(ctx)) == 0 {
		return f, tell(nil, false)
	}
	return f, nil
}

// another says that a log is another one than before.
func (r *reader) another(chunks []logs.Chunk) {
	for _, c := range chunks {
		if c.Another {
			r.note(c.Instance + ": a new log from here")
		}
	}
}

// warned begins a note that is a warning.
const warned = "warning: "

// Noted prints what is to be said next to lines.
func Noted(e *cli.Env) func(string) {
	return func(text string) {
		if warning, is := strings.CutPrefix(text, warned); is {
			e.Progress.Warn(errors.New(warning))
			return
		}
		e.Progress.Say("%s", text)
	}
}

// ErrSeveral is that lines of several logs cannot be as they were logged.
var ErrSeveral = &cli.UsageError{Text: "--raw: lines of several logs have names and an order of their own", Advice: "give one instance, and with --service one service"}

// Raw passes on the end of one log as it is, and of that the last lines that are meant, as
// Read does.
func Raw(ctx context.Context, e *cli.Env, q api.LogQuery, follow bool, most int, tell func(data []byte) error, note func(string)) error {
	r, err := newReader(ctx, e, q, most, note)
	if err != nil {
		return err
	}
	found, err := r.find(ctx)
	if err != nil {
		return err
	}
	if !follow {
		chunks, err := r.read(ctx, found)
		if err != nil {
			return err
		}
		return only(chunks, q.Last, tell)
	}
	f, err := r.follower(ctx, found, func([]api.LogLine, bool) error { return nil })
	if err != nil {
		return err
	}
	for n := q.Last; ; n = 0 {
		chunks, err := f.Next(ctx)
		if err != nil {
			return err
		}
		r.another(chunks)
		if err := only(chunks, n, tell); err != nil {
			return err
		}
	}
}

// only passes on one log.
func only(chunks []logs.Chunk, n int, tell func([]byte) error) error {
	if len(chunks) > 1 {
		return ErrSeveral
	}
	for _, c := range chunks {
		return tell(lastLines(c.Data, n))
	}
	return nil
}

// lastLines are the last n lines of a text; all, if n is 0.
func lastLines(data []byte, n int) []byte {
	if n == 0 {
		return data
	}
	for at := len(data) - 1; at > 0; at-- {
		if data[at-1] != '\n' {
			continue
		}
		if n--; n == 0 {
			return data[at:]
		}
	}
	return data
}

// lineOf is a line as it is served and printed.
func lineOf(e logs.Entry) api.LogLine {
	l := api.LogLine{
		Instance: e.Log.Instance, Zone: e.Log.Zone, Service: e.Log.Service, Writer: e.Writer, Level: e.Level, Text: e.Text, Fields: e.Fields,
		Source: "zone", Bundle: e.Bundle,
	}
	if e.Bundle != "" {
		l.Source = "bundle"
	}
	if !e.Time.IsZero() {
		l.Time = &e.Time
	}
	return l
}
