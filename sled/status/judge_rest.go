package status

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/sled/base"
	"github.com/sledctl/sledctl/sled/storage"
)

// ledgerProblems lists what is wrong with the ledger, each kind of it once.
func (j *judge) ledgerProblems() {
	said := map[string]bool{}
	for _, err := range j.Ledger.Faults {
		p := j.ledgerProblem(err)
		if !said[p.Code] {
			said[p.Code] = true
			j.add(p)
		}
	}
	if j.NoLedger != nil && len(said) == 0 {
		j.add(j.ledgerProblem(j.NoLedger))
	}
	for _, warning := range j.Ledger.Warnings {
		if why, ok := strings.CutPrefix(warning, ledger.Unconfirmed); ok && len(said) == 0 {
			said["ledger-unconfirmed"] = true
			j.add(Problem{Code: "ledger-unconfirmed", Severity: Trouble, Subject: Subject{Kind: "ledger"},
				Text: "the end of the ledger is not confirmed: " + why, Next: []string{"sledctl bootstrap"}})
		}
	}
}

func (j *judge) ledgerProblem(err error) Problem {
	p := Problem{Code: "ledger-unsound", Severity: Trouble, Subject: Subject{Kind: "ledger"}, Text: err.Error(), Next: []string{"sledctl ledger check"}}
	missing, isMissing := errors.AsType[*ledger.MissingError](err)
	switch {
	case ledger.Newer(err):
		p.Next = []string{"install.sh rollback"}
	case isMissing && len(missing.Missing) > 0:
		return j.missingCopy(p, missing.Missing[0])
	case errors.Is(err, ledger.ErrMissing):
		p.Code, p.Next = "ledger-copy-missing", []string{"sledctl ledger heal"}
	case errors.Is(err, ledger.ErrAbsent) && fault.Of(err) == fault.Refused: // there has never been one
		p = j.notPrepared()
		p.Text += ": it has no ledger yet"
	case errors.Is(err, ledger.ErrAbsent):
		p.Next = []string{"sledctl bootstrap"}
	}
	return p
}

// missingCopy names the disk that has the copy.
func (j *judge) missingCopy(p Problem, m ledger.Member) Problem {
	p.Code, p.Subject.Name = "ledger-copy-missing", m.Copy
	r, known := j.disk(func(r storage.Record) bool { return isPool(r.Pool, m.Pool) })
	gone := slices.ContainsFunc(j.diskList(), func(d Disk) bool { return d.Name == r.Name && d.State == "absent" })
	if known && gone {
		d := Disk{Name: r.Name, Slot: fmt.Sprintf("%s:%d", r.Kind, r.Slot), Serial: r.Serial}
		p.Text = "a copy of the ledger is missing: disk " + placed(d) + " is absent"
		j.returns(&p, d.Name, r.Pool)
		j.lost[r.Pool] = true
		return p
	}
	if known && j.pool(r.Pool).Name != "" && !j.pool(r.Pool).Works() {
		p.Text = fmt.Sprintf("a copy of the ledger is missing: pool %s is %s", r.Pool, strings.ToUpper(j.pool(r.Pool).State))
		p.Next = []string{"zpool clear " + r.Pool}
		j.lost[r.Pool] = true
		return p
	}
	p.Text, p.Next = fmt.Sprintf("a copy of the ledger is missing: %v", m.Err), []string{"sledctl bootstrap"}
	return p
}

// deadOperations tells the operations that were killed: their intents are open, and
// nobody holds their locks.
func (j *judge) deadOperations() {
	for _, open := range j.Open {
		if j.busy[open.Subject] {
			continue
		}
		s := j.subject(open.Subject)
		if s.Kind == "instance" {
			j.killed[s.ID] = true
		}
		if j.migrates(open.Subject) {
			continue // the problem of its migration has the command that resumes both
		}
		since := open.Time
		j.add(Problem{Code: "operation-died", Severity: Trouble, Subject: s, Since: &since,
			Text: fmt.Sprintf("%s%s was killed, and did not finish", open.Verb, ofName(s)), Next: []string{again(open, s)}})
	}
}

// ofName is the name of a subject behind a verb.
func ofName(s Subject) string {
	if s.Name == "" || s.Kind == "sled" {
		return ""
	}
	return " of " + s.Name
}

// again is the command that resumes what was killed.
func again(open operation.OpenIntent, s Subject) string {
	word, _, _ := strings.Cut(open.Verb, " ")
	switch {
	case s.Kind == "instance" && open.Verb == "instance copy" && s.Name != "": // it is recorded, and has its disks
		return "sledctl instance ensure " + s.Name
	case s.Kind == "instance" && open.Verb == "instance snapshot rollback" && s.Name != "":
		for _, o := range open.Changes {
			if o.Kind == "snapshot" {
				return "sledctl " + open.Verb + " " + s.Name + " " + o.Name
			}
		}
	case s.Kind == "instance" && word == "instance" && s.Name != "":
		return "sledctl " + open.Verb + " " + s.Name
	case word == "bootstrap", word == "base", word == "spare":
		return "sledctl bootstrap"
	}
	return "sledctl reap"
}

// long is from when on an operation is told that is at work.
const long = 5 * time.Minute

func (j *judge) longOperations() {
	for _, w := range j.work() {
		if took := j.Sled.Time.Sub(w.Since); took > long {
			since := w.Since
			text := fmt.Sprintf("%s%s has been at work for %d minutes (pid %d)", w.Verb, ofName(w.Subject), int(took.Minutes()), w.PID)
			if w.Command != "" {
				text += ": " + w.Command
			}
			j.add(Problem{Code: "operation-long", Severity: Attention, Subject: w.Subject, Since: &since, Text: text, Next: []string{fmt.Sprintf("ps -fp %d", w.PID)}})
		}
	}
}

func (j *judge) fullMemory() {
	m := j.memory()
	if m == nil || m.Limit < 100 || m.Used/(m.Limit/100) < fullish {
		return
	}
	share := m.Used / (m.Limit / 100)
	severity := Attention
	if share >= full {
		severity = Trouble
	}
	j.add(Problem{Code: "memory-full", Severity: severity, Subject: Subject{Kind: "memory"},
		Text: fmt.Sprintf("%d%% of the memory for guests is in use: %s free", share, size(m.Limit-min(m.Used, m.Limit))), Next: []string{"sledctl instance list"}})
}

func (j *judge) otherProblems() {
	if j.DevelopmentKey && !j.Sled.Simulated {
		j.add(Problem{Code: "key-development", Severity: Attention, Subject: Subject{Kind: "key"},
			Text: "disks are encrypted with the public development key", Hands: "set storage.key", Next: []string{"sledctl storage rekey"}})
	}
	if n := len(j.Faults); n > 0 {
		j.add(Problem{Code: "fault-armed", Severity: Attention, Subject: Subject{Kind: "fault"}, Count: n,
			Text: "simulated sled: " + counted(n, "fault is armed", "faults are armed") + " (" + strings.Join(j.Faults, ", ") + ")", Next: []string{"sledctl sim fault list"}})
	}
}

// basesProblems tells the bases that no VM can be cloned from, but for those on a pool
// that is a problem itself.
func (j *judge) basesProblems() {
	if j.coming {
		return
	}
	for _, b := range j.Bases {
		if !j.lost[b.Pool] && !j.busy[base.Subject(b.Pool)] {
			j.add(Problem{Code: "base-invalid", Severity: Attention, Subject: Subject{Kind: "base", Name: b.Zone},
				Text: "base " + b.Zone + ": " + b.Reason, Next: []string{"sledctl bootstrap"}})
		}
	}
}

// agentProblem tells that the agent does not run where something needs it.
func (j *judge) agentProblem() {
	if j.agent.Running || j.Nexus == "" {
		return
	}
	p := Problem{Code: "agent-down", Severity: Trouble, Subject: Subject{Kind: "agent"}, Text: "the agent does not run: the control plane is not notified",
		Next: []string{"svcadm enable sledctl/agent"}}
	if j.Sled.Simulated {
		p.Next = []string{"sledctl agent"}
	}
	j.add(p)
}
