package api

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// LogLine is a line of a log of an instance's zone, as it is served and printed. Keys are
// only ever added.
type LogLine struct {
	Time     *time.Time                 `json:"time,omitempty"`
	Instance string                     `json:"instance"`
	Zone     string                     `json:"zone"`
	Service  string                     `json:"service"`
	Writer   string                     `json:"writer"`
	Level    string                     `json:"level,omitempty"`
	Text     string                     `json:"text"`
	Fields   map[string]json.RawMessage `json:"fields,omitempty"`
	Source   string                     `json:"source"`           // zone or bundle
	Bundle   string                     `json:"bundle,omitempty"` // that has the line
}

// Logs are the answer to GET /instance-logs.
type Logs struct {
	Items []LogLine `json:"items"` // the oldest first
	Notes []string  `json:"notes"` // what instance logs says next to them
	Cut   bool      `json:"cut"`   // older lines are left out: there are too many
}

// LogsWhole is the event behind lines that were told together.
type LogsWhole struct {
	Cut bool `json:"cut"` // as of Logs
}

// LogData is the event with what a log has, as it is.
type LogData struct {
	Data []byte `json:"data"` // of whole lines, in base64
}

// The most that is asked for, and answered, at once.
const (
	MaxLogLines  = 10_000
	MaxLogBytes  = 4 << 20 // of their texts
	MaxLogNames  = 64
	LogLinesSent = 1000 // where the number is not said
)

// LogQuery says which lines of which logs are meant.
type LogQuery struct {
	Instances []string // names or ids
	Service   string   // as --service; empty: that of Propolis
	Previous  bool
	Since     time.Time // zero: all
	Last      int       // the newest of them; 0: as many as there are
}

// Values are the keys of a request.
func (q LogQuery) Values() url.Values {
	last := q.Last
	if last <= 0 || last > MaxLogLines {
		last = MaxLogLines
	}
	v := url.Values{"instances": {strings.Join(q.Instances, ",")}, "last": {strconv.Itoa(last)}}
	if q.Service != "" {
		v.Set("service", q.Service)
	}
	if q.Previous {
		v.Set("previous", "true")
	}
	if !q.Since.IsZero() {
		v.Set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	return v
}

// ParseLogQuery reads the keys of a request.
func ParseLogQuery(v url.Values) (q LogQuery, err error) {
	q = LogQuery{Service: v.Get("service"), Previous: v.Get("previous") == "true", Last: LogLinesSent}
	q.Instances = strings.FieldsFunc(v.Get("instances"), func(r rune) bool { return r == ',' })
	if len(q.Instances) == 0 || len(q.Instances) > MaxLogNames {
		return q, fmt.Errorf("instances: want 1 to %d names, with commas between them", MaxLogNames)
	}
	if said := v.Get("last"); said != "" {
		if q.Last, err = strconv.Atoi(said); err != nil || q.Last < 1 || q.Last > MaxLogLines {
			return q, fmt.Errorf("last %q: want a number from 1 to %d", said, MaxLogLines)
		}
	}
	if said := v.Get("since"); said != "" {
		if q.Since, err = time.Parse(time.RFC3339Nano, said); err != nil {
			return q, fmt.Errorf("since %q: want a time such as 2026-11-23T06:27:17Z", said)
		}
	}
	return q, nil
}
