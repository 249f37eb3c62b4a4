package events

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// Change is a field of an instance's document that an operation has changed. Old is
// empty if the instance is new.
type Change struct {
	Field string `json:"field"`
	Old   string `json:"old"`
	New   string `json:"new"`
}

// recordOf reads a record; nil: there is none.
func recordOf(value json.RawMessage) (r *record.Record, name string) {
	if value == nil || json.Unmarshal(value, &r) != nil || r == nil {
		return nil, ""
	}
	return r, r.Name
}

// difference is what is different in a record, in the document's words.
func difference(before, after json.RawMessage) []Change {
	all := []Change{}
	old, _ := recordOf(before)
	now, _ := recordOf(after)
	if now == nil || old == nil && now.Generation > 1 { // it is gone, or what it was is not known
		return all
	}
	was := make([]Change, len(fields(*now)))
	if old != nil {
		was = fields(*old)
	}
	for i, f := range fields(*now) {
		f.Old = was[i].New
		if f.Old != f.New {
			all = append(all, f)
		}
	}
	if old != nil && !reflect.DeepEqual(old.Spec.Machine, now.Spec.Machine) {
		all = append(all, Change{Field: "spec", Old: "another", New: "a new one"})
	}
	if old != nil && !old.Spec.CloudInit.Same(now.Spec.CloudInit) && old.Spec.CloudInit.Text() == now.Spec.CloudInit.Text() {
		all = append(all, Change{Field: "cloud-init", Old: "other data", New: now.Spec.CloudInit.Text()})
	}
	return all
}

// fields are the fields of the document, in its order; those of a new instance that say
// nothing are empty.
func fields(r record.Record) []Change {
	field := func(name, value string) Change { return Change{Field: name, New: value} }
	disks := func(all []record.Disk) string {
		return listed(all, func(d record.Disk) string { return strings.TrimPrefix(d.Path, naming.VolumeDevices) })
	}
	nics := listed(r.Spec.NICs, func(n record.NIC) string { return n.LinkText() + " " + n.MAC })
	return []Change{
		field("name", r.Name), field("run", r.Wanted), field("cpus", strconv.Itoa(r.Spec.CPUs)), field("cpu-cap", unless(r.Spec.CPUCap == 0, r.Spec.CPUCap)),
		field("memory", record.SizeText(r.Spec.Memory)),
		field("address", r.Spec.Address.String()), field("pool", r.Spec.Pool), field("start-order", unless(r.Spec.StartOrder == 0, r.Spec.StartOrder)),
		field("disks", disks(r.Spec.Disks)), field("later-disks", laterText(r, disks)),
		field("nics", nics), field("cloud-init", map[bool]string{true: r.Spec.CloudInit.Text()}[r.Spec.CloudInit != nil]), field("protected", map[bool]string{true: "yes"}[r.Protected]),
		field("keeper", map[bool]string{true: string(r.KeptBy())}[r.KeptBy() != record.Operator]),
	}
}

// laterText is the disks of the next incarnation; empty: the same, or none.
func laterText(r record.Record, text func([]record.Disk) string) string {
	if r.Later == nil {
		return ""
	}
	return text(*r.Later)
}

// unless is the text of a value that says something.
func unless(none bool, value fmt.Stringer) string {
	if none {
		return ""
	}
	return value.String()
}

func listed[T any](all []T, text func(T) string) string {
	var texts []string
	for _, one := range all {
		texts = append(texts, text(one))
	}
	return strings.Join(texts, ", ")
}

// Text says in one line what is different since; empty: nothing that is known. With
// whole, it has MACs too.
func (e Event) Text(whole bool) string {
	switch {
	case len(e.Left) > 0:
		return "left: " + strings.Join(e.Left, ", ")
	case slices.Contains([]operation.Result{Died, Running, Seen}, e.Result):
		return ""
	case e.Bad():
		return "nothing left"
	case e.To != "":
		return "moved to " + e.To
	case e.Gone:
		return "deleted"
	case len(e.Diff) == 0 && !whole:
		return e.changed()
	case len(e.Diff) == 0:
		return strings.Join(e.Changed, ", ")
	case e.Diff[0].Field == "name" && e.Diff[0].Old == "":
		return "created: " + e.created(whole)
	}
	var all []string
	for _, c := range e.Diff {
		was, is := c.texts(whole)
		text := orNone(was) + " -> " + orNone(is)
		if c.Field != "run" {
			text = c.Field + " " + text
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// changed is what was done to the host, without names that nobody types: what an instance has
// on the sled is called by its name.
func (e Event) changed() string {
	if e.Object.Kind != "instance" {
		return strings.Join(e.Changed, ", ")
	}
	if slices.Contains(e.Changed, "created propolis "+e.Object.Name) {
		return "brought up again"
	}
	var all []string
	for _, one := range e.Changed {
		words := strings.Fields(one)
		if len(words) == 3 && (words[2] == e.Object.Name || words[1] == "bundle" || words[1] == "zone") {
			words = words[:2]
		}
		all = append(all, strings.Join(words, " "))
	}
	return strings.Join(all, ", ")
}

// texts are what it was and is; without whole, NICs are without their MACs. They are derived
// from what is served, so that an event of an agent reads as one of this sled.
func (c Change) texts(whole bool) (was, is string) {
	if whole || c.Field != "nics" {
		return c.Old, c.New
	}
	return withoutMACs(c.Old), withoutMACs(c.New)
}

func withoutMACs(nics string) string {
	all := strings.Split(nics, ", ")
	for i, nic := range all {
		all[i] = nic[:max(strings.LastIndexByte(nic, ' '), 0)]
	}
	return strings.Join(all, ", ")
}

// created is what a new instance was given.
func (e Event) created(whole bool) string {
	var all []string
	for _, c := range e.Diff {
		_, is := c.texts(whole)
		switch c.Field {
		case "cpus":
			all = append(all, processors(is))
		case "memory":
			all = append(all, is)
		case "nics":
			all = append(all, "nic "+strings.ReplaceAll(is, ", ", ", nic "))
		case "disks":
			all = append(all, "disk "+strings.ReplaceAll(is, ", ", ", disk "))
		case "protected":
			all = append(all, "protected")
		case "address", "pool":
			if whole {
				all = append(all, c.Field+" "+is)
			}
		}
	}
	return strings.Join(all, ", ")
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func processors(n string) string {
	if n == "1" {
		return "1 CPU"
	}
	return n + " CPUs"
}
