package storage

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/commands/query"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/storage"
)

// branch is a disk with its pool, and what lies on that; or a pool on no disk of these.
type branch struct {
	slot, disk, serial string
	pool, state        string
	used, free         uint64 // bytes, as zfs counts them; both 0: not known
	why                string // what is wrong with the disk, or with the pool
	vms, volumes       []string
	each               []string // of its datasets, for people
	remedies           []string // what to do and to type
}

// branches puts the items together: U.2s first, then M.2s, then what is on neither.
func branches(items []storage.Item, known []storage.Record, vms []record.Record) []branch {
	pools := map[string]storage.Item{}
	for _, i := range items {
		if i.Kind == "pool" {
			pools[i.Name] = i
		}
	}
	var all []branch
	for _, i := range items {
		if i.Kind != "disk" {
			continue
		}
		b := branch{slot: i.On, disk: i.Name, serial: i.Serial, pool: i.Pool, state: i.State, why: i.Reason, remedies: said(i)}
		if at := slices.IndexFunc(known, func(r storage.Record) bool { return r.Name == i.Name }); at >= 0 && i.On == "" {
			b.slot, b.serial, b.pool = known[at].Place(), known[at].Serial, known[at].Pool
		}
		if pool, there := pools[b.pool]; there {
			b.onPool(pool)
			delete(pools, b.pool)
		}
		all = append(all, b)
	}
	for _, i := range items {
		if pool, left := pools[i.Name]; left {
			b := branch{pool: i.Name, state: "ready"}
			b.onPool(pool)
			all = append(all, b)
		}
	}
	for i := range all {
		all[i].holds(vms)
		all[i].lacks(items)
	}
	slices.SortStableFunc(all, func(a, b branch) int {
		return cmp.Or(cmp.Compare(rank(a.slot), rank(b.slot)), query.Natural(a.slot, b.slot))
	})
	return all
}

func rank(slot string) int {
	switch {
	case strings.HasPrefix(slot, "u2:"):
		return 0
	case slot != "":
		return 1
	}
	return 2
}

// onPool takes over what is known of the pool: what is wrong with the disk comes before it.
func (b *branch) onPool(pool storage.Item) {
	b.used, b.free = pool.Used, pool.Available
	if b.state == "ready" {
		b.state, b.why, b.remedies = pool.State, pool.Reason, said(pool)
	}
}

// said is what to do about an item.
func said(i storage.Item) []string {
	if i.Remedy == nil {
		return nil
	}
	return i.Said()
}

// holds finds the VMs whose zones, and whose volumes, lie on the pool.
func (b *branch) holds(vms []record.Record) {
	for _, vm := range vms {
		if vm.Incarnation != nil && vm.Incarnation.Pool() == b.pool {
			b.vms = append(b.vms, vm.Name)
		}
		for _, d := range vm.Spec.Disks {
			if volume, ok := d.Volume(); ok && strings.HasPrefix(volume, b.pool+"/") {
				name := path.Base(volume)
				if _, called, ours := naming.ParseVolume(volume); ours {
					name = called
				}
				b.volumes = append(b.volumes, name)
			}
		}
	}
	slices.SortFunc(b.vms, query.Natural)
	slices.SortFunc(b.volumes, query.Natural)
}

// lacks finds the datasets that are not as they must be, if the pool itself is.
func (b *branch) lacks(items []storage.Item) {
	if b.state != "ready" {
		return
	}
	var wrong []storage.Item
	for _, i := range items {
		if i.Kind == "dataset" && i.Pool == b.pool && i.State != "ready" {
			wrong = append(wrong, i)
		}
	}
	if len(wrong) == 0 {
		return
	}
	b.state, b.why = wrong[0].State, strings.TrimPrefix(wrong[0].Name, b.pool+"/")+": "+cmp.Or(wrong[0].Reason, wrong[0].State)
	b.remedies = said(wrong[0])
	if len(wrong) > 1 {
		b.why = fmt.Sprintf("%d datasets are not as they must be", len(wrong))
	}
	if slices.ContainsFunc(wrong, func(i storage.Item) bool { return !slices.Equal(said(i), b.remedies) }) {
		b.remedies = []string{"sledctl storage check"}
	}
}

// datasets takes those of the pool, to be told one by one.
func (b *branch) datasets(items []storage.Item) {
	for _, i := range items {
		if i.Kind != "dataset" || i.Pool != b.pool {
			continue
		}
		name := strings.TrimPrefix(i.Name, b.pool+"/")
		switch i.State {
		case "ready":
			name = terminal.FormatSize(i.Size) + "  " + name
		case "unknown": // the pool says why
			name += ": unknown"
		default:
			name += ": " + cmp.Or(i.Reason, i.State)
		}
		b.each = append(b.each, name)
	}
}

// treeColumn is where the names of what lies on a pool begin.
const treeColumn = 23

// tree prints the branches.
func tree(s *terminal.Stream, all []branch) error {
	var names []string
	for _, b := range all {
		names = append(names, b.pool)
	}
	short := terminal.ShortPools(names)
	row := "%-7s  %-12s  %-9s %6s %6s  "
	var b bytes.Buffer
	b.WriteString(s.Style(terminal.Strong, fmt.Sprintf(row+"%s", "DISK", "POOL", "STATE", "USED", "FREE", "OF")) + "\n")
	for _, of := range all {
		state := of.state
		if itemStyle(storage.Item{State: state}) == terminal.Bad {
			state = strings.ToUpper(state)
		}
		line := fmt.Sprintf(row, orDash(of.slot), orDash(short(of.pool)), state, size(of.used, of), size(of.free, of))
		line = strings.Replace(line, state, s.Style(itemStyle(storage.Item{State: of.state}), state), 1)
		b.WriteString(strings.TrimRight(line+of.bar(s), " ") + "\n")
		label := strings.TrimSpace(of.disk + " " + of.serial)
		for _, text := range of.details(short) {
			for _, line := range terminal.Wrapped(text, s.Width()-treeColumn) {
				fmt.Fprintf(&b, "%-*s%s\n", treeColumn, "  "+label, line)
				label = ""
			}
		}
		if label != "" {
			b.WriteString("  " + label + "\n")
		}
		for _, remedy := range of.remedies {
			for _, line := range aligned(remedy, 4, s.Width(), s.Style, terminal.Strong) {
				b.WriteString(line + "\n")
			}
		}
	}
	_, err := s.Write(b.Bytes())
	return err
}

// details are what is wrong, and who is concerned.
func (b branch) details(short func(string) string) (all []string) {
	if b.why != "" {
		all = append(all, short(b.why))
	}
	for _, what := range []struct {
		word  string
		names []string
	}{{"zone", b.vms}, {"volume", b.volumes}} {
		if n := len(what.names); n > 0 {
			word := what.word
			if n > 1 {
				word += "s"
			}
			all = append(all, fmt.Sprintf("%d %s: %s", n, word, strings.Join(what.names, " ")))
		}
	}
	return append(all, b.each...)
}

// barColumn is where the bars begin.
const barColumn = 48

// bar draws how full the pool is; where there is no room for that, it says it.
func (b branch) bar(s *terminal.Stream) string {
	whole := b.used + b.free
	if whole == 0 {
		return ""
	}
	share := float64(b.used) / float64(whole)
	style := terminal.Good
	switch {
	case share >= 0.95:
		style = terminal.Bad
	case share >= 0.8:
		style = terminal.Warn
	}
	said := fmt.Sprintf("%3d%%", int(share*100))
	drawn := terminal.Bar(share)
	if barColumn+len(drawn)+1+len(said) > s.Width() {
		return s.Style(style, said)
	}
	return s.Style(style, drawn) + " " + said
}

func size(n uint64, b branch) string {
	if b.used+b.free == 0 {
		return "-"
	}
	return terminal.FormatSize(n)
}

func orDash(text string) string { return cmp.Or(text, "-") }
