package figures

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sledctl/sledctl/sled/events"
)

// bounds are the upper bounds of the durations that are counted together, in seconds.
func bounds() []float64 { return []float64{0.1, 0.5, 1, 2, 5, 10, 30, 60, 300} }

// Durations counts how long operations took that ended since it was made, by verb and
// result. It is safe for concurrent use.
type Durations struct {
	since time.Time

	mu      sync.Mutex
	counted map[string]time.Time // id -> end, of what may be listed again
	all     map[kind]*durations
}

type kind struct{ verb, result string }

type durations struct {
	buckets []uint64 // for each bound those at most so long
	sum     float64
	count   uint64
}

// NewDurations counts what ends after a time.
func NewDurations(since time.Time) *Durations {
	return &Durations{since: since, counted: map[string]time.Time{}, all: map[kind]*durations{}}
}

// Count counts those of the newest operations that were not counted yet.
func (d *Durations) Count(newest []events.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	listed := map[string]time.Time{}
	for _, e := range newest {
		took, known := e.Took()
		if !known || e.ID == "" || !e.End.After(d.since) {
			continue
		}
		listed[e.ID] = e.End
		if _, ok := d.counted[e.ID]; !ok {
			d.count(kind{e.Verb, string(e.Result)}, took.Seconds())
		}
	}
	d.counted = listed
}

func (d *Durations) count(k kind, seconds float64) {
	of := d.all[k]
	if of == nil {
		of = &durations{buckets: make([]uint64, len(bounds()))}
		d.all[k] = of
	}
	for i, bound := range bounds() {
		if seconds <= bound {
			of.buckets[i]++
		}
	}
	of.sum += seconds
	of.count++
}

// Write writes the family sledctl_operation_duration_seconds.
func (d *Durations) Write(out *Page) {
	d.mu.Lock()
	defer d.mu.Unlock()
	const name = "sledctl_operation_duration_seconds"
	out.Family(name, "histogram", "How long operations took that ended since the agent started, by verb and result.")
	for _, k := range slices.SortedFunc(maps.Keys(d.all), func(a, b kind) int {
		return cmp.Or(cmp.Compare(a.verb, b.verb), cmp.Compare(a.result, b.result))
	}) {
		of := d.all[k]
		for i, bound := range bounds() {
			out.Sample(name+"_bucket", float64(of.buckets[i]), "verb", k.verb, "result", k.result, "le", strconv.FormatFloat(bound, 'g', -1, 64))
		}
		out.Sample(name+"_bucket", float64(of.count), "verb", k.verb, "result", k.result, "le", "+Inf")
		out.Sample(name+"_sum", of.sum, "verb", k.verb, "result", k.result)
		out.Sample(name+"_count", float64(of.count), "verb", k.verb, "result", k.result)
	}
}
