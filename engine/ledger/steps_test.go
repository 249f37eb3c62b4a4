package ledger

import (
	"fmt"
	"slices"
	"strings"
)

// step is something that may happen to a sled.
type step struct {
	name  string
	do    func(*lab) error
	kills bool // it is a process, which may be killed at each of its changes
	// cut is set instead of do for what has several outcomes: choose picks them.
	cut func(l *lab, choose func(int) int)
}

// bounds are what an exploration tries.
type bounds struct {
	lines  uint64 // no more are written
	places bool   // torn writes are cut in three places, not in one
	faults bool   // disks that fail or are full
	stray  int    // so many disks are replaced, or made copies of others
	asides int    // so many files may have been set aside on a disk before a join
	only   string // names of steps, with commas, if not all: "join", "unmount 0"
	kills  string // names of those that are killed, if only is set; else all are
}

// has says whether a step is to be tried.
func (b bounds) has(s step) bool {
	name, _, _ := strings.Cut(s.name, " ")
	some := strings.Split(b.only, ", ")
	return b.only == "" || slices.Contains(some, name) || slices.Contains(some, s.name)
}

// steps lists what may happen next.
func (l *lab) steps(b bounds) []step {
	list := []step{
		{name: "read", do: (*lab).read},
		{name: "create", do: (*lab).create},
		{name: "power", cut: func(l *lab, choose func(int) int) { l.sled.powerCut(choose) }},
	}
	if l.seq() < b.lines {
		list = append(list,
			step{name: "update", kills: true, do: func(l *lab) error { return l.update(l.process(), false, nil) }},
			step{name: "late", do: (*lab).late},
			step{name: "two", do: func(l *lab) error { return l.update(l.process(), false, l.meanwhile) }})
		if l.away() || len(l.strays) > 0 {
			list = append(list, step{name: "alone", kills: true, do: func(l *lab) error { return l.update(l.process(), true, nil) }})
		}
	}
	for i := range l.sled.disks {
		list = append(list, l.stepsOf(i, b)...)
	}
	for i, s := range list {
		name, _, _ := strings.Cut(s.name, " ")
		list[i].kills = s.kills && (b.only == "" || slices.Contains(strings.Fields(b.kills), name))
	}
	return slices.DeleteFunc(list, func(s step) bool { return !b.has(s) })
}

// stepsOf lists what may happen to one disk.
func (l *lab) stepsOf(i int, b bounds) []step {
	d := l.sled.disks[i]
	on := func(do func(l *lab, d *disk) error) func(*lab) error {
		return func(l *lab) error { return do(l, l.sled.disks[i]) }
	}
	named := func(name string) string { return fmt.Sprintf("%s %d", name, i) }
	join := step{name: named("join"), kills: true, do: on((*lab).join)}
	if !d.mounted {
		list := []step{{name: named("mount"), do: on(func(_ *lab, d *disk) error { d.mounted = true; return nil })}}
		if l.seq() < b.lines && l.asides(d) <= b.asides {
			list = append(list, join) // it must not be done
		}
		return list
	}
	list := []step{
		{name: named("unmount"), do: on(func(_ *lab, d *disk) error { d.flush(); d.mounted = false; return nil })},
		{name: named("pull"), cut: func(l *lab, choose func(int) int) {
			d := l.sled.disks[i]
			d.files, d.mounted = d.files.Cut(choose), false
		}},
	}
	if d.at.Pool == "" {
		list = nil // a directory of the root is there as long as the sled is
	}
	if l.seq() > 1 {
		list = append(list, step{name: named("tidy"), kills: true, do: on((*lab).tidy)})
	}
	if l.seq() < b.lines {
		if l.asides(d) <= b.asides {
			list = append(list, join)
		}
		if d.at.Pool == "" {
			list = append(list, step{name: named("leave"), kills: true, do: on((*lab).leave)})
		}
	}
	if len(l.strays) < b.stray && d.at.Pool != "" {
		list = append(list, step{name: named("replace"), do: on(func(l *lab, d *disk) error {
			d.format()
			l.strayed(d)
			return nil
		})}, step{name: named("twin"), do: on((*lab).twin)})
	}
	if l.seq() >= b.lines {
		return list
	}
	if b.faults {
		for n := 2; n < 4; n++ { // behind the flushes of what is there
			list = append(list, step{name: named("fail"), do: on(func(l *lab, d *disk) error { return l.fail(d, n, false) })})
		}
		list = append(list, step{name: named("half"), do: on(func(l *lab, d *disk) error { return l.fail(d, 2, true) })})
	}
	if l.unfinished > 0 || b.has(step{name: "keep"}) && b.only != "" {
		list = append(list, step{name: named("keep"), kills: true, do: on((*lab).keep)})
	}
	return list
}
