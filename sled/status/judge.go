package status

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/illumos/reservoir"
	"github.com/sledctl/sledctl/sled/base"
	"github.com/sledctl/sledctl/sled/doctor"
	"github.com/sledctl/sledctl/sled/image"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/storage"
	"github.com/sledctl/sledctl/sled/volume"
	"github.com/sledctl/sledctl/zone"
)

// Seen is what was looked at, and what is recorded.
type Seen struct {
	Sled Sled

	Instances []instance.Instance
	Network   Network
	// Unprepared says that bootstrap has not run to its end since the sled booted.
	Unprepared bool

	Items  []storage.Item
	Drifts []storage.Drift
	Disks  []storage.Record // that the ledger knows

	Ledger  ledger.Examination
	Head    ledger.Head
	Epoch   uint64
	Written time.Time // of the newest copy; zero: not known
	// NoLedger is why the ledger cannot be read; nil: it was read.
	NoLedger error

	Reservoir *reservoir.State // nil: the host did not tell
	AtWork    []operation.Holder
	Open      []operation.OpenIntent
	Lasts     []operation.Last // oldest first
	// Nexus is the control plane that the agent is to notify; empty: none.
	Nexus string
	// Faults are those that are armed on a simulated sled.
	Faults []string
	// Unrecorded are zones of sledctl in no record, but for LostSpares: no VM has one of those.
	Unrecorded []zone.Zone
	LostSpares []zone.Zone
	// Bases are those that no VM can be cloned from.
	Bases []base.Status
	// Volumes and Images are those that are recorded.
	Volumes []volume.Status
	Images  []image.Status
	// DevelopmentKey says that disks are encrypted with the public key.
	DevelopmentKey bool
	// Doctor is the last result of doctor; nil: there is none.
	Doctor *doctor.Result
	// Unknown is what could not be looked at.
	Unknown []error
}

// judge joins what was seen.
type judge struct {
	Seen
	names   map[string]string // of instances, by id
	busy    map[string]bool   // the subjects that an operation is at work on
	lost    map[string]bool   // pools of which a problem tells already
	killed  map[string]bool   // instances whose operation was killed
	pools   []Pool
	problem []Problem
	agent   Agent
	// coming says that a bootstrap comes first, and brings up what else is missing.
	coming bool
}

// Judge says how a sled is. It is pure.
func Judge(seen Seen) Status {
	j := judge{Seen: seen, names: map[string]string{}, busy: map[string]bool{}, lost: map[string]bool{}, killed: map[string]bool{}}
	j.coming = seen.Unprepared || errors.Is(seen.NoLedger, ledger.ErrAbsent)
	for _, i := range seen.Instances {
		j.names[i.ID] = i.Name
	}
	for _, h := range seen.AtWork {
		j.busy[h.Subject] = true
		if h.Subject == "agent" { // it holds its lock for as long as it runs
			j.agent = Agent{Running: true, PID: h.PID, Since: &h.Since}
		}
	}
	j.agent.Nexus = seen.Nexus
	j.AtWork = slices.DeleteFunc(slices.Clone(seen.AtWork), func(h operation.Holder) bool { return h.Subject == "agent" })
	j.pools = j.poolList()
	for _, look := range []func(){
		j.ledgerProblems, j.diskProblems, j.unprepared, j.poolProblems, j.deadOperations, j.vmProblems, j.migrationProblems,
		j.longOperations, j.fullPools, j.fullMemory, j.changedVMs, j.strayZones, j.basesProblems, j.volumeProblems, j.imageProblems, j.agentProblem, j.datasetProblems, j.otherProblems,
	} {
		look()
	}
	slices.SortStableFunc(j.problem, func(a, b Problem) int { return rank(a) - rank(b) })
	s := Status{
		Sled: seen.Sled, Problems: append([]Problem{}, j.problem...), Instances: j.counts(), VMs: j.vms(), Disks: j.diskList(), Pools: j.pools,
		Ledger: j.ledger(), Network: seen.Network, Agent: j.agent, Work: j.work(), Last: j.last(), Unknown: []string{},
	}
	s.Memory, s.CPUs, s.Doctor = j.memory(), j.cpus(), j.doctor()
	for _, err := range seen.Unknown {
		if text := err.Error(); !slices.Contains(s.Unknown, text) {
			s.Unknown = append(s.Unknown, text)
		}
	}
	s.Verdict = j.verdict()
	return s
}

// rank is the place of a problem: those of the ledger, and all that does not work,
// first.
func rank(p Problem) int {
	if p.Severity == Trouble {
		return 0
	}
	return 1
}

func (j *judge) verdict() Verdict {
	switch {
	case j.NoLedger != nil || len(j.Unknown) > 0:
		return IsUnknown
	case len(j.problem) == 0:
		return IsOK
	}
	if slices.ContainsFunc(j.problem, func(p Problem) bool { return p.Severity == Trouble }) {
		return IsTrouble
	}
	return IsAttention
}

func (j *judge) add(p Problem) {
	if p.Next == nil {
		p.Next = []string{}
	}
	j.problem = append(j.problem, p)
}

// subject names what an operation works on.
func (j *judge) subject(of string) Subject {
	kind, name, named := strings.Cut(of, "/")
	if id, ok := strings.CutPrefix(of, record.Subject("")); ok {
		return Subject{Kind: "instance", Name: j.names[id], ID: id}
	}
	if !named {
		return Subject{Kind: "sled", Name: of}
	}
	if id, short, ok := strings.Cut(name, "/"); ok && kind == "snapshot" {
		name = cmp.Or(j.names[id], id) + "@" + short
	}
	return Subject{Kind: kind, Name: name}
}

func (j *judge) work() []Work {
	all := []Work{}
	for _, h := range j.AtWork {
		all = append(all, Work{
			Subject: j.subject(h.Subject), Verb: h.Verb, PID: h.PID, User: h.User, Since: h.Since, Command: h.Command,
			Step: h.Step, At: h.At, Steps: h.Steps, Migration: j.moving(h.Subject),
		})
	}
	return all
}

// moving is the migration that a subject is in; nil: in none.
func (j *judge) moving(subject string) *Moving {
	for _, i := range j.Instances {
		if i.Migration == nil || record.Subject(i.ID) != subject {
			continue
		}
		direction := record.Departing
		if i.Migration.Arrives() {
			direction = record.Arriving
		}
		return &Moving{Direction: direction, Sled: i.Migration.Sled(), Phase: i.Phase}
	}
	return nil
}

// lasts is how many operations that have ended are told.
const lasts = 3

func (j *judge) last() []Last {
	all := []Last{}
	for _, l := range slices.Backward(j.Lasts[max(len(j.Lasts)-lasts, 0):]) {
		of := j.subject(l.Subject)
		if of.Kind == "sled" { // the verb says what it was about
			of.Name = ""
		}
		of.Name = cmp.Or(l.Name, of.Name)
		all = append(all, Last{ID: l.ID, Verb: l.Verb, Subject: of, Start: l.Start, Elapsed: l.End.Sub(l.Start).Milliseconds(), Error: l.Error})
	}
	return all
}

func (j *judge) memory() *Memory {
	r := j.Reservoir
	if r == nil {
		return nil
	}
	return &Memory{Limit: r.Limit, Reserved: r.Size(), Used: r.Allocated + r.Transient}
}

func (j *judge) doctor() *Doctor {
	r := j.Doctor
	if r == nil {
		return nil
	}
	return &Doctor{Verdict: string(r.Verdict), Failed: r.Count(doctor.Fail), Warned: r.Count(doctor.Warn), Summary: r.Line(), Time: r.Time}
}

func (j *judge) cpus() (c CPUs) {
	for _, i := range j.Instances {
		if up(i) {
			c.VCPUs += i.Spec.CPUs
		}
	}
	return c
}

func (j *judge) ledger() Ledger {
	l := Ledger{Copies: []Copy{}, Epoch: j.Epoch, Seq: j.Head.Seq}
	if !j.Written.IsZero() {
		l.Written = &j.Written
	}
	for _, p := range j.Ledger.Places {
		if p.Copy != "" || p.Verdict == ledger.IsMissing {
			l.Copies = append(l.Copies, Copy{ID: p.Copy, Pool: p.Pool, Verdict: string(p.Verdict)})
		}
	}
	return l
}
