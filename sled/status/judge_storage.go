package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/storage"
)

// poolList is the pools, with how many VMs lie on each.
func (j *judge) poolList() []Pool {
	all := []Pool{}
	for _, i := range j.Items {
		if i.Kind == "pool" {
			all = append(all, Pool{Name: i.Name, State: i.State, Size: i.Size, Used: i.Size - min(i.Free, i.Size), Free: i.Free})
		}
	}
	for n := range all {
		for _, i := range j.Instances {
			if slices.Contains(poolsOf(i.Record), all[n].Name) {
				all[n].VMs++
			}
		}
		if !all[n].Works() {
			all[n].Used = 0 // nobody can tell
		}
	}
	return all
}

// diskList is the disks, those that are missing too.
func (j *judge) diskList() []Disk {
	all := []Disk{}
	for _, i := range j.Items {
		if i.Kind == "disk" {
			d := diskOf(i)
			if r, ok := j.disk(func(r storage.Record) bool { return r.Name == d.Name }); ok && d.Serial == "" {
				d.Serial, d.Slot, d.Pool = r.Serial, fmt.Sprintf("%s:%d", r.Kind, r.Slot), r.Pool
			}
			all = append(all, d)
		}
	}
	return all
}

// disk finds a disk that the ledger knows.
func (j *judge) disk(is func(storage.Record) bool) (storage.Record, bool) {
	n := slices.IndexFunc(j.Disks, is)
	if n < 0 {
		return storage.Record{}, false
	}
	return j.Disks[n], true
}

// diskProblems tells the disks that are missing, with what that means for their pools
// and VMs.
func (j *judge) diskProblems() {
	for _, d := range j.diskList() {
		if d.State == "absent" && !j.lost[d.Pool] {
			j.add(j.absentDisk(d))
		}
	}
	for _, d := range j.Drifts {
		if d.Kind == "disk" && d.Property == "contents" && d.Is == "blank" {
			j.add(Problem{Code: "disk-blank", Severity: Attention, Subject: Subject{Kind: "disk", Name: d.Name},
				Text: "disk " + d.Name + " is blank: the sled does not use it", Next: []string{"sledctl storage format " + d.Name}})
		}
	}
}

func (j *judge) absentDisk(d Disk) Problem {
	p := Problem{
		Code: "disk-absent", Severity: Attention, Subject: Subject{Kind: "disk", Name: d.Name, ID: d.Serial},
		Text: fmt.Sprintf("disk %s is absent", placed(d)),
	}
	j.returns(&p, d.Name, d.Pool)
	if d.Pool != "" {
		p.Text, p.Severity = p.Text+j.without(d.Pool, "its pool"), j.weight(d.Pool)
		p.Count = j.pool(d.Pool).VMs
		j.lost[d.Pool] = true
	}
	return p
}

// placed is a disk with its slot and serial number.
func placed(d Disk) string {
	said := slices.DeleteFunc([]string{d.Slot, d.Serial}, func(s string) bool { return s == "" })
	if len(said) == 0 {
		return d.Name
	}
	return d.Name + " (" + strings.Join(said, ", ") + ")"
}

// returns puts into a problem what is to be done about a disk that is absent.
func (j *judge) returns(p *Problem, disk, pool string) {
	remedy := storage.AbsentDisk(disk, pool, pool != "" && j.pool(pool).Name != "")
	p.Hands, p.Next = remedy.Hands, remedy.Next
}

func (j *judge) pool(name string) Pool {
	for _, p := range j.pools {
		if p.Name == name {
			return p
		}
	}
	return Pool{VMs: len(j.on(name))}
}

// on are the instances on a pool, by whether their VMs are up.
func (j *judge) on(pool string) (names []string) {
	for _, i := range j.Instances {
		if slices.Contains(poolsOf(i.Record), pool) {
			names = append(names, i.Name)
		}
	}
	return names
}

// weight is how urgent the loss of a pool is: something that is needed may lie there.
func (j *judge) weight(pool string) Severity {
	if len(j.on(pool)) > 0 || slices.ContainsFunc(j.ledger().Copies, func(c Copy) bool { return isPool(pool, c.Pool) }) {
		return Trouble
	}
	return Attention
}

// isPool says whether a pool is that of an M.2 with a UUID.
func isPool(pool, id string) bool {
	kind, of := naming.ParsePool(pool)
	return kind == naming.InternalPool && of.String() == id
}

// without says which VMs lack a pool.
func (j *judge) without(pool, called string) string {
	running, rest := 0, 0
	for _, i := range j.Instances {
		switch {
		case !slices.Contains(poolsOf(i.Record), pool):
		case up(i):
			running++
		case down(i):
			rest++
		}
	}
	said := ""
	if running > 0 {
		said = fmt.Sprintf("; %s, without %s", counted(running, "VM runs on", "VMs run on"), called)
	}
	if rest > 0 {
		said += fmt.Sprintf("; %s without %s", counted(rest, "VM cannot start", "VMs cannot start"), called)
	}
	return said
}

// counted is a number with its word.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// poolProblems tells the pools that do not answer though their disks are there, those
// that are not imported, and those that are locked.
func (j *judge) poolProblems() {
	for _, p := range j.pools {
		if !p.Works() && p.State != "locked" && !j.lost[p.Name] {
			j.lost[p.Name] = true
			j.add(Problem{Code: "pool-unavail", Severity: j.weight(p.Name), Subject: Subject{Kind: "pool", Name: p.Name}, Count: p.VMs,
				Text: "pool " + p.Name + " is " + strings.ToUpper(p.State) + j.without(p.Name, "it"), Next: []string{"zpool clear " + p.Name}})
		}
	}
	if j.coming {
		return // bootstrap imports and unlocks them
	}
	for _, d := range j.Drifts {
		if d.Kind == "pool" && d.Property == "imported" && !j.lost[d.Name] {
			j.lost[d.Name] = true
			j.add(Problem{Code: "pool-unavail", Severity: j.weight(d.Name), Subject: Subject{Kind: "pool", Name: d.Name}, Count: len(j.on(d.Name)),
				Text: "pool " + d.Name + " is not imported" + j.without(d.Name, "it"), Next: []string{"sledctl bootstrap"}})
		}
	}
	for _, i := range j.Items {
		if i.Kind == "dataset" && i.State == "locked" && !j.lost[i.Pool] {
			j.lost[i.Pool] = true
			j.add(Problem{Code: "pool-locked", Severity: j.weight(i.Pool), Subject: Subject{Kind: "pool", Name: i.Pool}, Count: len(j.on(i.Pool)),
				Text: "pool " + i.Pool + " is locked: its key is not loaded" + j.without(i.Pool, "it"), Next: []string{"sledctl bootstrap"}})
		}
	}
}

// From these shares on a pool, or the memory, is a problem, and an urgent one.
const (
	fullish = 80
	full    = 95
)

func (j *judge) fullPools() {
	for _, p := range j.pools {
		if p.Percent() < fullish || !p.Works() {
			continue
		}
		severity := Attention
		if p.Percent() >= full && p.VMs > 0 {
			severity = Trouble
		}
		j.add(Problem{Code: "pool-full", Severity: severity, Subject: Subject{Kind: "pool", Name: p.Name}, Count: p.VMs,
			Text: fmt.Sprintf("pool %s is %d%% full: %s free", p.Name, p.Percent(), size(p.Free)), Next: []string{"sledctl storage list --pool " + p.Name}})
	}
}

// datasetProblems lists what else differs, of one repair together.
func (j *judge) datasetProblems() {
	by := map[string][]storage.Drift{}
	for _, d := range j.Drifts {
		if j.explained(d) {
			continue
		}
		by[d.RepairedBy] = append(by[d.RepairedBy], d)
	}
	for _, repair := range []string{"operator", "bootstrap"} {
		all := by[repair]
		if len(all) == 0 {
			continue
		}
		d := all[0]
		text := fmt.Sprintf("%s %s: %s is %s, wanted %s", d.Kind, d.Name, d.Property, cmp.Or(d.Is, "empty"), cmp.Or(d.Wanted, "empty"))
		if len(all) > 1 {
			text = fmt.Sprintf("%d disks, pools or datasets are not as they must be", len(all))
		}
		next := map[string]string{"operator": "sledctl storage check", "bootstrap": "sledctl bootstrap"}[repair]
		j.add(Problem{Code: "dataset-differs", Severity: Attention, Subject: Subject{Kind: d.Kind, Name: d.Name}, Text: text, Count: len(all), Next: []string{next}})
	}
}

// explained says whether another problem covers a difference.
func (j *judge) explained(d storage.Drift) bool {
	pool, _, _ := strings.Cut(d.Name, "/")
	if j.coming && d.RepairedBy == "bootstrap" {
		return true
	}
	switch d.Property {
	case "presence", "health", "imported", "key":
		return true
	case "contents":
		return d.Is == "blank"
	}
	return j.lost[pool]
}

// size is a number of bytes for people.
func size(n uint64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%dM", n>>20)
	}
	return fmt.Sprintf("%.1fG", float64(n)/(1<<30))
}
