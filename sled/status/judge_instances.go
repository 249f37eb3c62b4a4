package status

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// up says whether the VM of an instance works.
func up(i instance.Instance) bool {
	return slices.Contains([]record.State{record.Running, "migrating", "rebooting"}, i.State)
}

// down says whether an instance is wanted up and is not on its way there.
func down(i instance.Instance) bool {
	onItsWay := slices.Contains([]record.State{"starting", record.Stopping, "repairing"}, i.State)
	return i.Wanted == record.WantedRunning && i.Migration == nil && !up(i) && !onItsWay
}

func (j *judge) counts() Instances {
	c := Instances{Total: len(j.Instances), ByState: map[string]int{}}
	for _, i := range j.Instances {
		c.ByState[i.State]++
		if i.Wanted == record.WantedRunning {
			c.WantedUp++
			if up(i) {
				c.Up++
			}
		}
	}
	return c
}

// vms lists the VMs as they were looked at.
func (j *judge) vms() []VM {
	all := make([]VM, len(j.Instances))
	for n, i := range j.Instances {
		all[n] = VM{Name: i.Name, ID: i.ID, State: i.State, Reason: i.Reason, Wanted: i.Wanted, Keeper: i.KeptBy(), CPUs: i.Spec.CPUs, Memory: i.Spec.Memory}
		if !i.Since.IsZero() {
			all[n].Since = &j.Instances[n].Since
		}
	}
	return all
}

func (j *judge) atWork(i instance.Instance) bool { return j.busy[record.Subject(i.ID)] }

// ofVM is the subject of a VM.
func ofVM(i instance.Instance) Subject { return Subject{Kind: "instance", Name: i.Name, ID: i.ID} }

// vmProblems tells the VMs that are wanted up and are not, those of one reason
// together. What a pool or a killed operation explains is told there.
func (j *judge) vmProblems() {
	groups := map[string][]instance.Instance{}
	var order []string
	for _, i := range j.Instances {
		if !down(i) || j.atWork(i) || j.killed[i.ID] || j.onLost(i) || j.Unprepared && because(i) == rebooted {
			continue
		}
		key := codeOf(i) + " " + because(i)
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], i)
	}
	for _, key := range order {
		j.add(j.vmProblem(groups[key]))
	}
}

// vmProblem is that of VMs which are down for one reason.
func (j *judge) vmProblem(group []instance.Instance) Problem {
	first := group[0]
	p := Problem{Code: codeOf(first), Severity: Trouble, Subject: ofVM(first), Count: len(group)}
	why := ""
	if p.Reason = because(first); p.Reason != "" {
		why = ": " + p.Reason
	}
	p.Since, p.NotBefore = began(group)
	if len(group) == 1 {
		p.Text = first.Name + " " + saysState(first) + why
		p.Next = []string{"sledctl instance ensure " + first.Name}
		return p
	}
	p.Subject = Subject{Kind: "instances"}
	p.Text = fmt.Sprintf("%d VMs %s%s", len(group), many(saysState(first)), why)
	p.Next = []string{"sledctl instance ensure --all"}
	return p
}

// began is when VMs failed: the first of them, as far as that is known of each, else the time
// after which all of them did. What is wrong with a VM in another way has no beginning.
func began(group []instance.Instance) (since, notBefore *time.Time) {
	if group[0].State != record.Failed {
		return nil, nil
	}
	var at time.Time
	known := true
	for _, i := range group {
		known = known && !i.Since.IsZero()
		earliest := i.Since
		if earliest.IsZero() {
			earliest = i.Updated // it was as it was wanted when its record was written
		}
		if at.IsZero() || earliest.Before(at) {
			at = earliest
		}
	}
	switch {
	case at.IsZero():
		return nil, nil
	case known:
		return &at, nil
	}
	return nil, &at
}

// codeOf is what is wrong with a VM that is down.
func codeOf(i instance.Instance) string {
	switch i.State {
	case record.Absent:
		return "vm-absent"
	case record.Unknown:
		return "vm-unknown"
	}
	return "vm-failed"
}

// saysState is the state of a VM that is down, as a verb.
func saysState(i instance.Instance) string {
	switch i.State {
	case record.Absent:
		return "is absent"
	case record.Unknown:
		return "cannot be asked"
	case record.Failed:
		return "failed"
	case record.Creating:
		return "is half created"
	}
	return "is " + i.State + ", and wanted running"
}

func many(verb string) string {
	if rest, ok := strings.CutPrefix(verb, "is "); ok {
		return "are " + rest
	}
	return verb
}

// rebooted is why VMs are absent after the sled was rebooted, whatever is left of them.
const rebooted = "sled was rebooted"

// because is why a VM is down, for people.
func because(i instance.Instance) string {
	if strings.HasPrefix(i.Reason, rebooted) {
		return rebooted
	}
	reason := unnamed(i.Reason)
	if state, ok := strings.CutPrefix(reason, "its Propolis does not run: the service is "); ok {
		return "its service is " + state
	}
	return reason
}

// unprepared tells that bootstrap comes first, as after each boot of the sled, with all
// that follows from it.
func (j *judge) unprepared() {
	if !j.Unprepared {
		return
	}
	p := j.notPrepared()
	for _, i := range j.Instances {
		if down(i) && because(i) == rebooted && !j.onLost(i) {
			p.Count++
		}
	}
	if p.Count > 0 {
		p.Text = "the sled was rebooted, and is not prepared; " + counted(p.Count, "VM is absent", "VMs are absent")
		p.Next = append(p.Next, "sledctl instance ensure --all")
	}
	j.add(p)
}

// notPrepared is the problem of a sled that bootstrap has not prepared.
func (j *judge) notPrepared() Problem {
	return Problem{Code: "sled-unprepared", Severity: Trouble, Subject: Subject{Kind: "sled", Name: j.Sled.Name},
		Text: "the sled is not prepared", Next: []string{"sledctl bootstrap"}}
}

// unnamed is a reason without the names that that have an id in them: people cannot read those.
func unnamed(reason string) string {
	const id = `[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`
	return regexp.MustCompile(` (propolis_instance_|oxz_propolis-server_)`+id).ReplaceAllString(reason, "")
}

// migrationProblems tells the migrations that nobody is at work on.
func (j *judge) migrationProblems() {
	for _, i := range j.Instances {
		if i.Migration == nil || j.atWork(i) {
			continue
		}
		verb := "migrate"
		if i.Migration.Arrives() {
			verb = "ensure"
		}
		j.add(Problem{
			Code: "migration-stuck", Severity: Trouble, Subject: ofVM(i),
			Text: i.Name + ": " + instance.Moving(*i.Migration, i.Phase) + ", and no process is at work on it",
			Next: []string{"sledctl instance " + verb + " " + i.Name},
		})
	}
}

// migrates reports whether a subject is an instance that is in a migration.
func (j *judge) migrates(subject string) bool {
	return slices.ContainsFunc(j.Instances, func(i instance.Instance) bool {
		return i.Migration != nil && record.Subject(i.ID) == subject
	})
}

// changedVMs tells the VMs that run, and of which others have changed something.
func (j *judge) changedVMs() {
	for _, i := range j.Instances {
		if up(i) && len(i.Changed) > 0 && !j.atWork(i) {
			j.add(Problem{
				Code: "vm-changed", Severity: Attention, Subject: ofVM(i),
				Text: i.Name + " runs, and " + unnamed(strings.Join(i.Changed, "; ")), Next: []string{"sledctl instance get " + i.Name + " --diff"},
			})
		}
	}
}

// onLost says whether an instance lies on a pool of which a problem tells already.
func (j *judge) onLost(i instance.Instance) bool {
	return slices.ContainsFunc(poolsOf(i.Record), func(pool string) bool { return j.lost[pool] })
}

// poolsOf are the pools that hold the zone and the disks of an instance.
func poolsOf(r record.Record) []string {
	var all []string
	if r.Incarnation != nil {
		all = append(all, r.Incarnation.Pool())
	}
	for _, d := range r.Spec.Disks {
		if volume, ok := d.Volume(); ok {
			pool, _, _ := strings.Cut(volume, "/")
			all = append(all, pool)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
