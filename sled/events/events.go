// Package events lists what was done on a sled: each operation with who asked for it, how
// it ended, and what is different since.
//
// Of reads the ledger's past. Nothing is asked of the host but whether an operation
// without an outcome still runs.
package events

import (
	"bytes"
	"cmp"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance"
)

// The results that only a reader sees.
const (
	Died    operation.Result = "died"    // its process ended before it did
	Running operation.Result = "running" // it is at work
	Seen    operation.Result = "seen"    // nobody asked for it
	Ended   operation.Result = "ended"   // an earlier sledctl did not record how
)

// Event is one operation, or what happened without one.
type Event struct {
	operation.Last
	Object Object   `json:"object"`
	Diff   []Change `json:"diff"`
	PID    int      `json:"pid,omitempty"` // of one that is at work
	// Gone is set if the record of its instance ended with it, and To the sled that the
	// instance moved to.
	Gone bool   `json:"gone,omitempty"`
	To   string `json:"to,omitempty"`
}

// Object is what an operation was about.
type Object struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	ID   string `json:"id,omitempty"`
}

// Bad reports whether it did not end as it was to.
func (e Event) Bad() bool {
	return slices.Contains([]operation.Result{operation.Failed, operation.Interrupted, Died}, e.Result)
}

// Took is how long it took; false: that is not known.
func (e Event) Took() (time.Duration, bool) {
	return e.End.Sub(e.Start), !e.Start.IsZero() && !e.End.IsZero() && e.Result != Seen
}

// Past is the operations in the ledger's lines, undecoded: most of it is asked for
// by nobody. Add the lines in their order.
type Past struct {
	records map[string]json.RawMessage // by key
	intents map[string]*begun
	all     []closed
	seq     uint64 // of the last line
}

// Seq is the number of the last line that was added.
func (p *Past) Seq() uint64 { return p.seq }

// Key tells an event from others, and its beginning from its end.
func (v Event) Key() string {
	return strings.Join([]string{v.ID, string(v.Result), v.Start.String(), v.Object.Kind, v.Object.Name}, " ")
}

// Forget drops the events that have ended, and keeps what later lines are compared with.
func (p *Past) Forget() { p.all = nil }

// begun is an operation that has an intent.
type begun struct {
	value json.RawMessage
	prior map[string]json.RawMessage // what the records were before
	since map[string]json.RawMessage // what they were then
	ended bool
}

// closed is one event.
type closed struct {
	id     string
	at     time.Time
	last   json.RawMessage // nil: its operation left none
	died   bool
	stone  json.RawMessage // how a VM ended; nil: it is no such event
	before map[string]json.RawMessage
	after  map[string]json.RawMessage
	to     json.RawMessage // of an instance that has left
}

// Of is the past that the entries make.
func Of(entries iter.Seq2[ledger.Entry, error]) (*Past, error) {
	p := &Past{records: map[string]json.RawMessage{}, intents: map[string]*begun{}}
	for entry, err := range entries {
		if err != nil {
			return p, err
		}
		p.Add(entry)
	}
	return p, nil
}

// Add adds a line.
func (p *Past) Add(entry ledger.Entry) {
	p.seq = entry.Seq
	line := closed{at: entry.Time, before: map[string]json.RawMessage{}, after: map[string]json.RawMessage{}}
	var opened, ends []string
	var stones []json.RawMessage
	for _, f := range entry.Facts {
		id, isIntent := strings.CutPrefix(f.Key, naming.KeyIntent)
		switch {
		case isIntent && isNull(f.Value):
			ends = append(ends, id)
		case isIntent:
			opened = append(opened, id)
			p.intents[id] = &begun{value: f.Value, prior: line.before, since: line.after}
		case strings.HasPrefix(f.Key, naming.KeyLast):
			p.closing(&line, f)
		case strings.HasPrefix(f.Key, naming.KeyInstance), strings.HasPrefix(f.Key, naming.KeyVolume):
			p.record(&line, f)
		case strings.HasPrefix(f.Key, naming.KeyDeparted) && !isNull(f.Value):
			line.to = f.Value
		case strings.HasPrefix(f.Key, naming.KeyTombstone) && !isNull(f.Value):
			stones = append(stones, f.Value)
		}
	}
	for _, stone := range stones {
		p.all = append(p.all, closed{at: entry.Time, stone: stone})
	}
	p.end(line, opened, ends)
}

func (p *Past) record(line *closed, f ledger.Fact) {
	if _, twice := line.before[f.Key]; !twice {
		line.before[f.Key] = p.records[f.Key]
	}
	if line.after[f.Key] = f.Value; isNull(f.Value) {
		line.after[f.Key] = nil
	}
	p.records[f.Key] = line.after[f.Key]
}

func (p *Past) closing(line *closed, f ledger.Fact) {
	if isNull(f.Value) {
		return
	}
	line.last, line.id = f.Value, idOf(f.Value)
	key := strings.TrimPrefix(f.Key, naming.KeyLast)
	if record, known := p.records[key]; known {
		if _, touched := line.before[key]; !touched {
			line.before[key], line.after[key] = record, record
		}
	}
}

// end adds the operations that end with a line: its own, and those that died before and
// that it answers for.
func (p *Past) end(line closed, opened, ends []string) {
	for _, id := range ends {
		b := p.intents[id]
		if id == line.id || b == nil || b.ended {
			continue
		}
		b.ended = true
		p.all = append(p.all, closed{id: id, at: line.at, died: line.last != nil, before: line.before, after: line.after, to: line.to})
	}
	if line.last == nil {
		return
	}
	if b := p.intents[line.id]; b != nil && !slices.Contains(opened, line.id) {
		b.ended = true
	}
	p.all = append(p.all, line)
}

// idOf is the id of a last fact, without decoding it.
func idOf(last json.RawMessage) string {
	rest, ok := bytes.CutPrefix(last, []byte(`{"id":"`))
	id, _, closed := bytes.Cut(rest, []byte(`"`))
	if ok && closed {
		return string(id)
	}
	var l operation.Last
	_ = json.Unmarshal(last, &l) // without an id, its intent is not found
	return l.ID
}

func isNull(value json.RawMessage) bool { return len(value) == 0 || string(value) == "null" }

// Newest lists the n newest events that pass, oldest first; 0: all of them. Alive says
// which process holds a subject's lock.
func (p *Past) Newest(n int, passes func(Event) bool, alive func(subject string) (operation.Holder, bool)) []Event {
	var all []Event
	for i := len(p.all) - 1; i >= 0 && (n == 0 || len(all) < n); i-- {
		if e, ok := p.event(p.all[i]); ok && passes(e) {
			all = append(all, e)
		}
	}
	slices.Reverse(all)
	for id, b := range p.intents {
		if b.ended {
			continue
		}
		if e, ok := b.open(id, alive); ok && passes(e) {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b Event) int { return a.Start.Compare(b.Start) })
	if n > 0 && len(all) > n {
		all = all[len(all)-n:]
	}
	return all
}

// open is an operation without an outcome.
func (b *begun) open(id string, alive func(string) (operation.Holder, bool)) (Event, bool) {
	e, ok := b.event(id)
	if !ok {
		return e, false
	}
	e.Result = Died
	if holder, at := alive(e.Subject); at {
		e.Result, e.PID = Running, holder.PID
	}
	return e, true
}

// event is the operation of an intent.
func (b *begun) event(id string) (Event, bool) {
	var in operation.Intent
	if json.Unmarshal(b.value, &in) != nil {
		return Event{}, false
	}
	e := Event{Last: operation.Last{ID: id, Verb: in.Verb, Subject: in.Subject, Start: in.Time}, Diff: []Change{}}
	if in.By != nil {
		e.By = *in.By
	}
	_, was := recordOf(b.prior[in.Subject])
	_, is := recordOf(b.since[in.Subject])
	e.Name = cmp.Or(is, was)
	e.Object = objectOf(e.Last)
	return e, true
}

func (p *Past) event(c closed) (Event, bool) {
	if c.stone != nil {
		return seen(c)
	}
	b := p.intents[c.id]
	e := Event{Diff: []Change{}}
	switch {
	case c.last != nil:
		if json.Unmarshal(c.last, &e.Last) != nil {
			return e, false
		}
		e.Object = objectOf(e.Last)
	default:
		var ok bool
		if e, ok = b.event(c.id); !ok {
			return e, false
		}
		e.Result = Ended
		if c.died {
			e.Result = Died
			return e, true
		}
		e.End = c.at
	}
	before, after := c.before[e.Subject], c.after[e.Subject]
	if b != nil {
		if prior, touched := b.prior[e.Subject]; touched {
			before = prior
		}
	}
	if strings.HasPrefix(e.Subject, naming.KeyInstance) {
		e.Diff = difference(before, after)
	}
	if e.Name == "" {
		_, was := recordOf(before)
		_, is := recordOf(after)
		e.Name = cmp.Or(is, was)
		e.Object = objectOf(e.Last)
	}
	if e.Gone = before != nil && after == nil && !e.Bad(); e.Gone {
		var handover struct{ Peer string }
		_ = json.Unmarshal(c.to, &handover) // nil: it did not move
		e.To = handover.Peer
	}
	return e, true
}

// seen is the end of a VM that no operation asked for.
func seen(c closed) (Event, bool) {
	var t instance.Tombstone
	if json.Unmarshal(c.stone, &t) != nil || t.State != "failed" {
		return Event{}, false
	}
	e := Event{
		Last:   operation.Last{Verb: "VM " + string(t.State), Subject: naming.KeyInstance + t.Instance, Name: t.Name, Start: t.Time, End: t.Time, Result: Seen, Error: t.Reason},
		Diff:   []Change{},
		Object: Object{Kind: "instance", Name: t.Name, ID: t.Instance},
	}
	return e, true
}

// objectOf is what an operation was about: its subject, or, where several share one,
// the only object that it has changed.
func objectOf(l operation.Last) Object {
	if id, ok := strings.CutPrefix(l.Subject, naming.KeyInstance); ok {
		return Object{Kind: "instance", Name: l.Name, ID: id}
	}
	if id, ok := strings.CutPrefix(l.Subject, naming.KeyVolume); ok {
		return Object{Kind: "volume", Name: cmp.Or(l.Name, id), ID: id}
	}
	if kind, name, ok := strings.Cut(l.Subject, "/"); ok {
		return Object{Kind: kind, Name: name}
	}
	if len(l.Changed) == 1 {
		if words := strings.Fields(l.Changed[0]); len(words) == 3 && words[1] == l.Subject {
			return Object{Kind: words[1], Name: words[2]}
		}
	}
	return Object{Kind: "sled"}
}
