package operation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sledctl/sledctl/host"
)

// Traces is how many operations' traces are kept. Older ones go, a few at a time: who
// removes them reads the whole directory.
const Traces = 100

// Trace is what an operation did to the host: every command, request and file,
// with its action and its times. It lies on the RAM disk.
type Trace struct {
	TraceHead
	Steps  []TraceStep
	Events []host.Event
}

// TraceHead is the first line of a trace.
type TraceHead struct {
	ID      string        `json:"id"`
	Verb    string        `json:"verb"`
	Subject string        `json:"subject"`
	Start   time.Time     `json:"start"`
	Elapsed time.Duration `json:"elapsed"` // ns
	// Busy is how much of it a host command or request was under way; the rest
	// is sledctl's own.
	Busy  time.Duration `json:"busy"`
	Error string        `json:"error,omitempty"`
}

// TraceStep is one action as it was carried out.
type TraceStep struct {
	Action  string        `json:"action"`
	Verb    string        `json:"verb"`
	Object  string        `json:"object"`
	Elapsed time.Duration `json:"elapsed"`
	Error   string        `json:"error,omitempty"`
}

// line is one line of a trace's file: one of the three.
type line struct {
	Head  *TraceHead  `json:"trace,omitempty"`
	Step  *TraceStep  `json:"step,omitempty"`
	Event *host.Event `json:"event,omitempty"`
}

func traceDir(runDir string) string { return path.Join(runDir, "trace") }

// recorder collects what happens under one operation.
type recorder struct {
	mu     sync.Mutex
	events []host.Event
}

func (r *recorder) note(e host.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// write keeps the trace of an ended operation. A trace that cannot be kept
// costs nobody anything: its error is for the caller to warn of.
func (r *recorder) write(files host.Files, runDir string, report Report) error {
	r.mu.Lock()
	events := slices.Clone(r.events)
	r.mu.Unlock()
	head := TraceHead{
		ID: report.ID, Verb: report.Verb, Subject: report.Subject, Start: report.Started.UTC(), Elapsed: report.Elapsed, Busy: host.Busy(events),
	}
	if err := report.Outcome.Err(); err != nil {
		head.Error = err.Error()
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(line{Head: &head})
	for _, s := range report.Steps {
		err = errors.Join(err, encoder.Encode(line{Step: &s}))
	}
	for _, e := range events {
		err = errors.Join(err, encoder.Encode(line{Event: &e}))
	}
	if err != nil {
		return err
	}
	dir := traceDir(runDir)
	name := path.Join(dir, report.ID+".jsonl")
	if err = put(files, name, out.Bytes()); errors.Is(err, fs.ErrNotExist) {
		if err = host.MkdirAll(files, dir, 0o700); err == nil {
			err = put(files, name, out.Bytes())
		}
	}
	if err != nil {
		return err
	}
	if !strings.HasPrefix(report.ID, "0") { // one id in sixteen does
		return nil
	}
	return prune(files, dir)
}

func put(files host.Files, name string, data []byte) error {
	f, err := files.Open(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// prune removes the oldest traces beyond Traces.
func prune(files host.Files, dir string) error {
	entries, err := files.ReadDir(dir)
	if err != nil || len(entries) <= Traces {
		return err
	}
	slices.SortFunc(entries, func(a, b host.Info) int { return a.Time.Compare(b.Time) })
	for _, e := range entries[:len(entries)-Traces] {
		if err := files.Remove(path.Join(dir, e.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// TraceList lists the kept traces' heads, oldest first.
func TraceList(files host.Files, runDir string) (heads []TraceHead, err error) {
	entries, err := files.ReadDir(traceDir(runDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		t, err := ReadTrace(files, runDir, strings.TrimSuffix(e.Name, ".jsonl"))
		if errors.Is(err, fs.ErrNotExist) {
			continue // pruned meanwhile
		}
		if err != nil {
			return nil, err
		}
		heads = append(heads, t.TraceHead)
	}
	slices.SortFunc(heads, func(a, b TraceHead) int { return a.Start.Compare(b.Start) })
	return heads[max(len(heads)-Traces, 0):], nil
}

// ReadTrace reads one trace by its operation's id; fs.ErrNotExist if there is
// none.
func ReadTrace(files host.Files, runDir, id string) (Trace, error) {
	data, err := host.ReadFile(files, path.Join(traceDir(runDir), path.Base(id)+".jsonl"))
	if err != nil {
		return Trace{}, err
	}
	var t Trace
	decoder := json.NewDecoder(bytes.NewReader(data))
	for decoder.More() {
		var l line
		if err := decoder.Decode(&l); err != nil {
			return Trace{}, fmt.Errorf("trace %s: %w", id, err)
		}
		switch {
		case l.Head != nil:
			t.TraceHead = *l.Head
		case l.Step != nil:
			t.Steps = append(t.Steps, *l.Step)
		case l.Event != nil:
			t.Events = append(t.Events, *l.Event)
		}
	}
	return t, nil
}
