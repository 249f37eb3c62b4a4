package reap

import (
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// judge gives each sledctl object a verdict. It is pure. What depends on the
// fate of another object is judged behind it: bases behind what was cloned from
// them, links behind zones, etherstubs and addresses behind links, snapshots
// behind datasets.
func judge(k known, inv *inventory.Inventory, choice Choice) (Findings, error) {
	f := Findings{inv: inv, choice: choice, first: map[string][]string{}, planned: map[string]Object{}}
	for _, o := range choice.Plan {
		f.planned[o.Kind+" "+o.Name] = o
	}
	f.begins(k.died)
	zones, err := inv.Zones()
	if err != nil {
		return f, err
	}
	links, err := inv.Links()
	if err != nil {
		return f, err
	}
	datasets, err := inv.Datasets()
	if err != nil {
		return f, err
	}
	some := len(zones) + len(links) + len(datasets)
	f.goes, f.Objects = make(map[string]bool, some), make([]Object, 0, some)
	f.arrange(k, zones, links, datasets)
	// By name: the host lists zones and links in the order in which they were
	// made, and what is made side by side has none.
	zonesByName := ordered(zones, func(a, b *zone.Zone) int { return strings.Compare(a.Name, b.Name) })
	linksByName := ordered(links, func(a, b *vnic.Link) int { return strings.Compare(a.Name, b.Name) })
	f.judgeVolumes(k, datasets)
	for _, bases := range []bool{false, true} {
		for _, z := range zonesByName {
			if f.bases[z.Name] == bases {
				f.add(k.zone(*z, f))
			}
		}
		for _, d := range datasets {
			if d.Type != zfs.TypeSnapshot && isBase(d) == bases && f.forZones(d) {
				f.add(k.dataset(d, f))
			}
		}
	}
	f.judgeLinks(k, linksByName)
	for _, d := range datasets {
		if d.Type == zfs.TypeSnapshot {
			f.add(k.snapshot(d, f))
		}
	}
	f.judgeRest(k)
	f.judgeLost()
	f.inOrder()
	if choice.Plan != nil {
		f.Changed = f.changes()
	}
	return f, nil
}

// judgeLinks judges what lies over links before these.
func (f *Findings) judgeLinks(k known, linksByName []*vnic.Link) {
	for _, l := range linksByName {
		if l.Class == "vnic" || inventory.IsMisc(*l) && f.inv.Know(inventory.Ports) == nil {
			f.add(k.vnic(*l, *f))
		}
	}
	for _, l := range linksByName {
		if l.Class != "vnic" && !inventory.IsMisc(*l) {
			f.add(k.link(*l, *f))
		}
	}
}

// ordered is a list in another order. What it lists is not copied: that would take
// longer than to compare.
func ordered[T any](list []T, by func(a, b *T) int) []*T {
	all := make([]*T, len(list))
	for i := range list {
		all[i] = &list[i]
	}
	slices.SortFunc(all, by)
	return all
}

// inOrder puts the objects in the order in which they are reported: by kind, else
// as they were judged, but zones by name.
func (f *Findings) inOrder() {
	kinds := map[string]int{}
	for i, kind := range Kinds() {
		kinds[kind] = i
	}
	slices.SortStableFunc(f.Objects, func(a, b Object) int {
		if a.Kind == KindZone && b.Kind == KindZone {
			return strings.Compare(a.Name, b.Name)
		}
		return kinds[a.Kind] - kinds[b.Kind]
	})
}

// arrange makes what is asked of each of many objects quick to answer.
func (f *Findings) arrange(k known, zones []zone.Zone, links []vnic.Link, datasets []zfs.Dataset) {
	f.clones, f.lies, f.nets, f.ours = map[string][]string{}, make(map[string][]string, len(zones)), make(map[string]string, len(zones)), make(map[string]bool, len(zones)+len(links))
	f.owners = make(map[string]naming.Owner, len(zones))
	f.homes, f.left, f.over = make(map[string]string, len(datasets)), map[string][]string{}, map[string][]string{}
	f.at, f.health = make(map[string]string, len(datasets)), map[string]string{}
	pools, _ := f.inv.Pools()
	for _, p := range pools {
		f.health[p.Name] = p.Health
	}
	f.taken, f.bases, f.marks = map[string][]string{}, map[string]bool{}, map[string]string{}
	for _, z := range zones {
		f.arrangeZone(k, z)
	}
	for _, l := range links {
		if l.Over != "" {
			f.over[l.Over] = append(f.over[l.Over], l.Name)
		}
	}
	bases := map[string]bool{}
	for _, b := range k.bases {
		bases[b.Dataset] = true
	}
	for _, d := range datasets {
		if d.Origin != "" {
			f.clones[d.Origin] = append(f.clones[d.Origin], d.Name)
		}
		if marked(d) {
			f.homes[d.Mountpoint] = d.Name
		}
		if d.Type == zfs.TypeFilesystem {
			f.at[d.Mountpoint] = d.Name
		}
		if isBase(d) {
			bases[d.Name] = true
		}
	}
	f.arrangeSnapshots(bases)
}

func (f *Findings) arrangeZone(k known, z zone.Zone) {
	for dir := z.Path; z.Name != zone.Global && dir != "/" && dir != "." && dir != ""; dir = path.Dir(dir) {
		f.lies[dir] = append(f.lies[dir], z.Name)
	}
	owner := f.inv.Owner(k.names, z)
	f.owners[z.Name] = owner
	if k.isBase(z, owner) {
		f.bases[z.Name] = true
	}
	config, _ := f.inv.Config(z.Name)
	for _, n := range config.Nets {
		f.nets[n.Physical] = z.Name
	}
	if id := layout.AttrsOf(config)[naming.AttrInstance]; id != "" && inKernel(z.State) {
		f.marks[id] = z.Name
	}
}

// arrangeSnapshots sorts the snapshots of bases by the clones that left them.
func (f *Findings) arrangeSnapshots(bases map[string]bool) {
	for dataset := range bases {
		for _, d := range f.inv.Below(dataset) {
			if _, snapshot, ok := strings.Cut(d.Name, "@"); ok && !slices.Contains(f.left[snapshot], dataset) {
				f.left[snapshot] = append(f.left[snapshot], dataset)
			}
		}
	}
	for snapshot, datasets := range f.left {
		slices.Sort(datasets)
		if clone, ok := cloneOf(snapshot); ok {
			f.taken[clone] = append(f.taken[clone], snapshot)
		}
	}
}

// marked reports whether a dataset itself carries a sledctl mark.
func marked(d zfs.Dataset) bool {
	return d.User[naming.PropertyInstance].Source == zfs.Local || isBase(d)
}

// isBase says whether a dataset carries the mark of a base.
func isBase(d zfs.Dataset) bool { return d.User[naming.PropertyBase].Source == zfs.Local }
