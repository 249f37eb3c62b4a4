package operation

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/propolis/spec"
)

// Last is the value of a last/SUBJECT fact: what the operation on the subject was that
// ended last, and its result. It goes with the line that closes the operation. The
// next one replaces it; the ledger's history keeps it.
type Last struct {
	ID      string    `json:"id"`
	Verb    string    `json:"verb"`
	Subject string    `json:"subject"`
	Name    string    `json:"name,omitempty"` // in the subject's record
	By      By        `json:"by"`
	Argv    []string  `json:"argv,omitempty"`
	Start   time.Time `json:"start"`
	End     time.Time `json:"end"`
	Result  Result    `json:"result"`
	Exit    int       `json:"exit"`
	// Error says at which step it failed, and what the host printed.
	Error string `json:"error,omitempty"`
	// Changed is what it did to the host, and Left what it left there when it failed.
	Changed []string `json:"changed,omitempty"`
	Left    []string `json:"left,omitempty"`
}

// Result is how an operation ended.
type Result string

// The results.
const (
	Done        Result = "ok"
	Failed      Result = "failed"
	Interrupted Result = "interrupted"
)

// Lasts lists the last operation of each subject, also of the instance or
// volume that was deleted last, in the order in which they ended.
func Lasts(view ledger.View) []Last {
	var all []Last
	for _, value := range view.All(naming.KeyLast) {
		var last Last
		if json.Unmarshal(value, &last) == nil {
			all = append(all, last)
		}
	}
	slices.SortStableFunc(all, func(a, b Last) int { return a.End.Compare(b.End) })
	return all
}

// LastOn is the last operation on a subject; nil: none is known.
func LastOn(view ledger.View, subject string) *Last {
	value, ok := view.Get(naming.KeyLast + subject)
	var last Last
	if !ok || json.Unmarshal(value, &last) != nil {
		return nil
	}
	return &last
}

// enough is how many operations it takes to say how long one takes.
const enough = 3

// usual is the median of how long the operations took that ended well, of those that are the
// last ones on their subjects and do the same; 0, if those are too few to tell.
func usual(view ledger.View, verb string) time.Duration {
	var took []time.Duration
	for _, last := range Lasts(view) {
		if last.Verb == verb && last.Result == Done {
			took = append(took, last.End.Sub(last.Start))
		}
	}
	if len(took) < enough {
		return 0
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// remembered adds to the facts that close an operation what it was. A subject that
// is gone with them leaves none of its own: that goes to last/deleted.
func remembered(env Env, view ledger.View, report Report, id string, facts []ledger.Fact) ([]ledger.Fact, error) {
	last := lastOf(env, report, id)
	record, recorded := view.Get(report.Subject)
	for _, f := range facts {
		if f.Key == report.Subject {
			recorded = f.Value != nil
		}
		if f.Key == report.Subject && recorded {
			record = f.Value
		}
		of := naming.KeyLast + subjectOf(view, f.Key)
		if _, had := view.Get(of); had && f.Value == nil {
			facts = append(facts, ledger.Fact{Key: of})
		}
	}
	last.Name = nameIn(record)
	value, err := json.Marshal(last)
	key := naming.KeyLast + report.Subject
	if gone(view, report.Subject, recorded, facts) {
		if _, had := view.Get(key); had && !slices.ContainsFunc(facts, func(f ledger.Fact) bool { return f.Key == key }) {
			facts = append(facts, ledger.Fact{Key: key})
		}
		key = naming.KeyLast + "deleted"
	}
	return append(facts, ledger.Fact{Key: key, Value: value}), err
}

// subjectOf is the subject that a record is of: its key, but of an image, which is a subject by its name.
func subjectOf(view ledger.View, key string) string {
	if !strings.HasPrefix(key, naming.KeyImage) {
		return key
	}
	record, _ := view.Get(key)
	return naming.KeyImage + nameIn(record)
}

// nameIn is the name in a record; empty: it has none.
func nameIn(record []byte) string {
	var named struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(record, &named) // without a name, there is none to tell
	return named.Name
}

// gone says whether a subject is deleted, of those that are created under a new id or name each time: what was kept
// of each would never be removed.
func gone(view ledger.View, subject string, recorded bool, facts []ledger.Fact) bool {
	for _, prefix := range []string{naming.KeyInstance, naming.KeyVolume, naming.KeyLocalDisk, naming.KeySnapshot, naming.SubjectDownload} {
		if strings.HasPrefix(subject, prefix) {
			return !recorded
		}
	}
	return strings.HasPrefix(subject, naming.KeyImage) && !hasImage(view, facts, strings.TrimPrefix(subject, naming.KeyImage))
}

// hasImage reports whether an image of a name is recorded once the facts are.
func hasImage(view ledger.View, facts []ledger.Fact, name string) bool {
	after := map[string][]byte{}
	for key, value := range view.All(naming.KeyImage) {
		after[key] = value
	}
	for _, f := range facts {
		if strings.HasPrefix(f.Key, naming.KeyImage) {
			after[f.Key] = f.Value
		}
	}
	for _, record := range after {
		if record != nil && nameIn(record) == name {
			return true
		}
	}
	return false
}

func lastOf(env Env, report Report, id string) Last {
	last := Last{
		ID: id, Verb: report.Verb, Subject: report.Subject, By: env.By, Argv: shortened(env.Argv),
		Start: report.Started.UTC(), End: time.Now().UTC(), Result: Done,
		Changed: changed(report.Outcome.Done), Left: report.Outcome.Leftovers,
	}
	if err := report.Outcome.Err(); err != nil {
		last.Result, last.Exit, last.Error = Failed, 1, string(spec.Mask([]byte(reason(err))))
		if report.Outcome.Interrupted != nil {
			last.Result = Interrupted
		}
		if env.Exit != nil {
			last.Exit = env.Exit(err, last.Left)
		}
	}
	return last
}

// reason is the step that failed first and the host's own text for it.
func reason(err error) string {
	text := err.Error()
	if step, failed := errors.AsType[*plan.StepError](err); failed {
		text = step.Error()
		if command, ran := errors.AsType[*host.CommandError](step.Err); ran {
			text = step.Action.Step.Verb() + ": " + cmp.Or(string(command.Result.Stderr), command.Error())
		}
	}
	return strings.Join(strings.Fields(text), " ")
}

// changed says what actions did to the host: to which object, or to how many of a
// kind.
func changed(done []plan.Action) []string {
	verbs := map[plan.Change]string{plan.Create: "created", plan.Modify: "changed", plan.Remove: "removed"}
	var kinds []string
	objects := map[string][]string{}
	for _, a := range done {
		verb, changes := verbs[a.Change]
		kind, _, named := strings.Cut(a.Object, " ")
		if !changes || !named || a.Change == plan.Modify && slices.Contains(objects["created "+kind], a.Object) {
			continue
		}
		at := verb + " " + kind
		if objects[at] == nil {
			kinds = append(kinds, at)
		}
		if !slices.Contains(objects[at], a.Object) {
			objects[at] = append(objects[at], a.Object)
		}
	}
	var all []string
	slices.Sort(kinds) // actions that run side by side end in any order
	for _, at := range kinds {
		verb, kind, _ := strings.Cut(at, " ")
		if n := len(objects[at]); n > 1 {
			all = append(all, fmt.Sprintf("%s %d %s", verb, n, plural(kind)))
		} else {
			all = append(all, verb+" "+objects[at][0])
		}
	}
	return all
}

func plural(kind string) string {
	if stem, ok := strings.CutSuffix(kind, "y"); ok {
		return stem + "ies"
	}
	return strings.TrimSuffix(kind, "s") + "s"
}

// mostWords bounds the command line that a fact has: one on a thousand VMs names all
// of them in the fact of each.
const mostWords = 16

func shortened(argv []string) []string {
	if len(argv) <= mostWords {
		return argv
	}
	return append(slices.Clone(argv[:mostWords]), fmt.Sprintf("(%d more)", len(argv)-mostWords))
}
