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
func judge(k *known, inv *inventory.Inventory, choice Choice) (Findings, error) {
	f := &Findings{inv: inv, choice: choice, first: map[string][]string{}, planned: map[string]Object{}}
	for _, o := range choice.Plan {
		f.planned[o.Kind+" "+o.Name] = o
	}
	f.begins(k.died)
	zones, err := inv.Zones()
	if err != nil {
		return *f, err
	}
	links, err := inv.Links()
	if err != nil {
		return *f, err
	}
	datasets, err := inv.Datasets()
	if err != nil {
		return *f, err
	}
	some := len(zones) + len(links) + len(datasets)
	f.goes, f.alike, f.Objects = make(map[string]bool, some), map[string]bool{}, make([]Object, 0, some)
	owned := f.arrange(k, zones, links, datasets)
	// By name: the host lists zones and links in the order in which they were
	// made, and what is made side by side has none.
	zonesByName := ordered(owned, func(z *ownedZone) string { return z.Name })
	linksByName := ordered(links, func(l *vnic.Link) string { return l.Name })
	f.judgeVolumes(k, datasets)
	for _, bases := range []bool{false, true} {
		for _, z := range zonesByName {
			if z.isBase == bases {
				f.add(k.zone(z, f))
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
	return *f, nil
}

// judgeLinks judges what lies over links before these.
func (f *Findings) judgeLinks(k *known, linksByName []*vnic.Link) {
	for _, l := range linksByName {
		if l.Class == "vnic" || inventory.IsMisc(*l) && f.inv.Know(inventory.Ports) == nil {
			f.add(k.vnic(*l, f))
		}
	}
	for _, l := range linksByName {
		if l.Class != "vnic" && !inventory.IsMisc(*l) {
			f.add(k.link(*l, f))
		}
	}
}

// ordered is a list in the order of the names. What it lists is not copied: that would
// take longer than to compare.
func ordered[T any](list []T, name func(*T) string) []*T {
	type named struct {
		name string
		at   *T
	}
	names, all := make([]named, len(list)), make([]*T, len(list))
	for i := range list {
		names[i] = named{name(&list[i]), &list[i]}
	}
	slices.SortFunc(names, func(a, b named) int { return strings.Compare(a.name, b.name) })
	for i, n := range names {
		all[i] = n.at
	}
	return all
}

// inOrder puts the objects in the order in which they are reported: by kind, else
// as they were judged, but zones by name.
func (f *Findings) inOrder() {
	count, next, before := map[string]int{}, map[string]int{}, 0
	for i := range f.Objects {
		count[f.Objects[i].Kind]++
	}
	for _, kind := range Kinds() {
		next[kind], before = before, before+count[kind]
	}
	all := make([]Object, len(f.Objects))
	for _, o := range f.Objects {
		all[next[o.Kind]] = o
		next[o.Kind]++
	}
	slices.SortStableFunc(all[:count[KindZone]], func(a, b Object) int { return strings.Compare(a.Name, b.Name) })
	f.Objects = all
}

// ownedZone is a zone, and what is asked of it more than once.
type ownedZone struct {
	*zone.Zone
	owner   naming.Owner
	isBase  bool
	isSpare bool // it has the attribute of one
}

// arrange makes what is asked of each of many objects quick to answer. It gives the zones.
func (f *Findings) arrange(k *known, zones []zone.Zone, links []vnic.Link, datasets []zfs.Dataset) []ownedZone {
	f.clones, f.lies, f.nets = map[string][]string{}, make(map[string][]string, len(zones)), make(map[string]string, len(zones))
	f.homes, f.left, f.over = make(map[string]string, len(datasets)), map[string][]string{}, map[string][]string{}
	f.at, f.health = make(map[string]string, len(datasets)), map[string]string{}
	pools, _ := f.inv.Pools()
	for _, p := range pools {
		f.health[p.Name] = p.Health
	}
	f.taken, f.bases, f.marks = map[string][]string{}, map[string]bool{}, map[string]string{}
	owned := make([]ownedZone, len(zones))
	for i := range zones {
		owned[i] = f.arrangeZone(k, &zones[i])
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
	return owned
}

func (f *Findings) arrangeZone(k *known, z *zone.Zone) ownedZone {
	for dir := z.Path; z.Name != zone.Global && dir != "/" && dir != "." && dir != ""; dir = path.Dir(dir) {
		f.lies[dir] = append(f.lies[dir], z.Name)
	}
	config, _ := f.inv.Config(z.Name)
	owner := f.inv.OwnerBy(k.names, *z, config)
	owned := ownedZone{Zone: z, owner: owner, isBase: k.isBase(*z, owner), isSpare: layout.IsSpare(config)}
	if owned.isBase {
		f.bases[z.Name] = true
	}
	for _, n := range config.Nets {
		f.nets[n.Physical] = z.Name
	}
	if id := layout.AttrOf(config, naming.AttrInstance); id != "" && inKernel(z.State) {
		f.marks[id] = z.Name
	}
	return owned
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
