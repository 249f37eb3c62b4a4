// Package logs reads what the services of an instance's zone have logged, that of Propolis
// before all: lines of svc.startd and of the service, in one file of the zone for each, or of a
// bundle of one that is gone.
package logs

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sledctl/sledctl/propolis"
)

// The writers of lines.
const (
	SMF      = "smf" // svc.startd: what it does with the service
	Propolis = "propolis"
)

// Line is one line.
type Line struct {
	Time   time.Time // of itself, else of the line before it; zero: not known
	Writer string    // SMF or Propolis; what another service is called
	Level  string    // empty: the line has none
	Text   string
	Fields map[string]json.RawMessage // of a line in JSON: what Text ends with
}

// Entry is a line with the log that has it.
type Entry struct {
	Line
	Log    Log
	Bundle string // empty: it is the zone's own log
}

// Entries are the lines of a part of a log. Times are read as by Parse.
func (c Chunk) Entries(at time.Time) []Entry {
	var all []Entry
	for _, line := range Parse(c.Data, at) {
		if line.Writer != SMF && !c.Own {
			line.Writer = c.Service
		}
		all = append(all, Entry{line, c.Log, c.Bundle})
	}
	return all
}

// Merged are the lines of several logs by their times. Lines of one log stay as they are, also
// where a clock was set back, or a line has whole seconds only.
func Merged(all ...[]Entry) []Entry {
	type placed struct {
		Entry
		at time.Time
	}
	var lines []placed
	for _, of := range all {
		var latest time.Time
		for _, e := range of {
			if e.Time.After(latest) {
				latest = e.Time
			}
			lines = append(lines, placed{e, latest})
		}
	}
	slices.SortStableFunc(lines, func(a, b placed) int { return a.at.Compare(b.at) })
	merged := make([]Entry, len(lines))
	for i, l := range lines {
		merged[i] = l.Entry
	}
	return merged
}

// startd is a line of svc.startd's, with a year or without. It is made where the first log is
// read, so that no other command pays for it.
//
// Guess startd-log-times: svc.startd begins its lines in a service's log with
// `[ 2026 Nov 26 10:00:00 `, without the year on older systems, in the sled's own time zone
// (`instance logs`).
// Check: `tail` of a log below ZONEPATH/root/var/svc/log, and `date`
var startd = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\[ ((?:\d{4} )?[A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2}) (.*) \]$`)
})

// Parse reads the lines of a log. Times of svc.startd are those of a clock: of this
// location, and where a line has no year, of the year of the last one at this time.
func Parse(data []byte, at time.Time) []Line {
	var all []Line
	var last time.Time
	for raw := range bytes.Lines(data) {
		text := strings.TrimRight(string(raw), "\r\n")
		if text == "" {
			continue
		}
		line := parsed(text, at)
		if line.Time.IsZero() {
			line.Time = last
		}
		last = line.Time
		all = append(all, line)
	}
	return all
}

func parsed(text string, at time.Time) Line {
	if found := startd().FindStringSubmatch(text); found != nil {
		return Line{Time: clock(found[1], at), Writer: SMF, Text: found[2]}
	}
	if own, ok := propolis.ParseLogLine(text); ok {
		return Line{Time: own.Time, Writer: Propolis, Level: own.Level, Text: own.Text, Fields: own.Fields}
	}
	line := Line{Writer: Propolis, Text: text}
	if strings.Contains(text, "panicked") {
		line.Level = "fatal"
	}
	return line
}

// clock reads a time of svc.startd's.
func clock(text string, at time.Time) time.Time {
	if t, err := time.ParseInLocation("2006 Jan _2 15:04:05", text, at.Location()); err == nil {
		return t
	}
	t, err := time.ParseInLocation("Jan _2 15:04:05", text, at.Location())
	if err != nil {
		return time.Time{}
	}
	t = t.AddDate(at.Year(), 0, 0)
	if t.After(at.AddDate(0, 0, 1)) {
		t = t.AddDate(-1, 0, 0)
	}
	return t
}

// Since leaves out what is older, and has a time that says so.
func Since(all []Entry, since time.Time) []Entry {
	for i, line := range all {
		if !line.Time.IsZero() && !line.Time.Before(since) {
			return all[i:]
		}
	}
	return nil
}

// Last are the last n lines; all of them if n is 0.
func Last(all []Entry, n int) []Entry {
	if n > 0 && len(all) > n {
		return all[len(all)-n:]
	}
	return all
}

// Within are the last lines whose texts have together at most so many bytes; a line that alone
// has more is one of them.
func Within(all []Entry, limit int) []Entry {
	for i, line := range slices.Backward(all) {
		if limit -= len(line.Text); limit < 0 {
			return all[min(i+1, len(all)-1):]
		}
	}
	return all
}
