package naming

import (
	"iter"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// The marks that sledctl's objects carry. A user property counts only if it is
// set on the dataset itself (source "local"): children and clones inherit it.
const (
	PropertyInstance  = "sledctl:instance"   // the instance's id, on its zone's dataset
	PropertySpec      = "sledctl:spec"       // next to it: what the instance is, where the ledger is lost
	PropertyBase      = "sledctl:base"       // on a base zone's dataset; what it is valid for
	PropertyVolume    = "sledctl:volume"     // a volume's id, on the volume
	PropertySnapshot  = "sledctl:snapshot"   // the id of the instance of whose disks it is, on a snapshot of a volume
	PropertyImage     = "sledctl:image"      // the image's id, on its volume
	PropertyLocalDisk = "sledctl:local-disk" // the id of a local disk, on the dataset in which it lies
	PropertyLedger    = "sledctl:ledger"     // the witness of the ledger, on a pool's root

	AttrInstance = "sledctl-instance" // the instance's id, on its zone
	AttrBase     = "sledctl-base"     // on a base zone
	AttrSpare    = "sledctl-spare"    // the base's name, on a zone that is cloned ahead

	// MarkSpare is PropertyInstance of a zone that is cloned ahead, for no instance yet.
	MarkSpare = "spare"
)

// Evidence is why an object counts as sledctl's, weakest first.
type Evidence int

// The kinds of evidence.
const (
	Foreign Evidence = iota // none: the object is foreign, and never touched
	Alike                   // its name is like sledctl's, but that is not certain: reported, and never touched
	ByName                  // its name is one that sledctl gives, and it lies where sledctl puts such objects
	ByMark                  // it carries a mark that sledctl sets
)

// Owner says who owns an object, and by what evidence.
type Owner struct {
	Evidence Evidence
	Role     Role
	Instance uuid.UUID // from a mark; Nil where there is none
	Propolis uuid.UUID // from the name of an instance's zone; else Nil
	Base     Base      // from the name of a base zone; else zero
	Number   int       // of a VNIC
	// Doubt is why an object with such a name may be foreign.
	Doubt string
	// Below is set for a dataset or snapshot that lies below what the claim
	// names: the brand's ZBE of a zone, a snapshot of it.
	Below bool
}

// Ours says whether the evidence is enough.
func (c Owner) Ours() bool { return c.Evidence >= ByName }

// doubted is the claim of something of which a name says more than the rest.
func (c Owner) doubted(why string) Owner {
	c.Evidence, c.Doubt = Alike, why
	return c
}

// Place is what shows the owner of a zone: its name, where it lies, and its
// attrs (name and value); nil: it has none.
type Place struct {
	Name  string
	Path  string
	Attrs iter.Seq2[string, string]
}

// marks are the attrs of a zone, as far as they show its owner.
type marks struct {
	instance string // the value of AttrInstance
	base     bool   // it has AttrBase
	other    string // the first, by name, that sledctl does not give; empty: there is none
}

func (z Place) marks() (m marks) {
	if z.Attrs == nil {
		return m
	}
	for name, value := range z.Attrs {
		switch {
		case name == AttrInstance:
			m.instance = value
		case name == AttrBase:
			m.base = true
		case !strings.HasPrefix(name, attrPrefix) && (m.other == "" || name < m.other):
			m.other = name
		}
	}
	return m
}

// OwnerOfZone classifies a zone on a sled with these pools for zones. Without a
// mark the name must be whole, the zonepath one that we give, and nobody else
// may have written on it.
func (p Prefixes) OwnerOfZone(z Place, pools []string) Owner {
	c := p.byZoneName(z.Name)
	marks := z.marks()
	if id, ok := parseUUID(marks.instance); ok {
		c.Evidence, c.Role, c.Instance, c.Doubt = ByMark, RoleInstance, id, ""
		return c
	}
	if marks.base {
		c.Evidence, c.Role, c.Doubt = ByMark, RoleBase, ""
		return c
	}
	if c.Evidence != ByName {
		return c
	}
	pool, ok := zonePool(z, pools)
	switch {
	case !ok:
		return c.doubted("it has no mark, and lies at " + z.Path + ", where no zone of sledctl does")
	case c.Role == RoleBase && c.Base.Pool != PoolKey(pool):
		return c.doubted("it has no mark, and is not called after its pool " + pool)
	case marks.other != "":
		return c.doubted("it has no mark, but the attr " + marks.other + " of somebody else")
	}
	return c
}

// attrPrefix opens the names of all attrs that we give.
const attrPrefix = "sledctl-"

// zonePool is the pool of those in whose dataset for zones a zone lies.
func zonePool(z Place, pools []string) (string, bool) {
	for _, pool := range pools {
		if at, ok := Zone(pool, z.Name); ok && at.Mountpoint == z.Path {
			return pool, true
		}
	}
	return "", false
}

func (p Prefixes) byZoneName(name string) Owner {
	if id, ok := p.ParseZoneName(name); ok {
		return Owner{Evidence: ByName, Role: RoleInstance, Propolis: id}
	}
	if base, ok := p.ParseBaseName(name); ok {
		return Owner{Evidence: ByName, Role: RoleBase, Base: base}
	}
	return byPrefix(name, "zone", p.Zone, p.Base, p.OtherZone, probeZone)
}

func byPrefix(name, what string, prefixes ...string) Owner {
	for _, prefix := range prefixes {
		if prefix != "" && strings.HasPrefix(name, prefix) {
			return Owner{}.doubted("no " + what + " of sledctl is called so, though it begins with " + prefix)
		}
	}
	return Owner{}
}

// NameOfZone classifies a name alone: what it says is needed, not enough.
func (p Prefixes) NameOfZone(name string) Owner { return p.byZoneName(name) }

// NameOfVNIC classifies a VNIC by its name alone.
func (p Prefixes) NameOfVNIC(name string) Owner {
	if role, n, ok := p.ParseVNIC(name); ok {
		return Owner{Evidence: ByName, Role: role, Number: n}
	}
	return byPrefix(name, "VNIC", p.VNIC, p.Guest, p.OtherVNIC, probeVNIC)
}

// VNIC is what shows the owner of a VNIC: its name, the link under it, and the
// addresses that the global zone has on it.
type VNIC struct {
	Name      string
	Over      string
	Addresses []string
}

// OwnerOfVNIC classifies a VNIC. VNICs carry no marks: the name must be whole, it
// must lie over a link over which we put VNICs, and the global zone may have no
// address on it. Whether a zone of somebody else has it, the caller knows.
func (p Prefixes) OwnerOfVNIC(v VNIC, under []string) Owner {
	c := p.NameOfVNIC(v.Name)
	switch {
	case c.Evidence != ByName:
		return c
	case !slices.Contains(under, v.Over):
		return c.doubted("no record names it, and it lies over " + v.Over + ", over which sledctl puts none")
	case len(v.Addresses) > 0:
		return c.doubted("no record names it, and the global zone has the address " + v.Addresses[0] + " on it")
	}
	return c
}

// OwnerOfDataset classifies a dataset or snapshot by its name and its local user
// properties. Its name is sledctl's if one of its parts, but for the pool's, is
// the name of a zone that sledctl makes; a mark counts on the dataset that
// carries it.
func (p Prefixes) OwnerOfDataset(name string, local map[string]string) Owner {
	dataset, _, snapshot := strings.Cut(name, "@")
	parts := strings.Split(dataset, "/")
	var c Owner
	for i, part := range parts[1:] {
		if c = p.byZoneName(part); c.Evidence != Foreign {
			c.Below = snapshot || i+2 < len(parts)
			break
		}
	}
	if id, ok := parseUUID(local[PropertyInstance]); ok {
		c.Evidence, c.Role, c.Instance, c.Doubt, c.Below = ByMark, RoleInstance, id, "", false
	} else if _, ok := local[PropertyBase]; ok {
		c.Evidence, c.Role, c.Doubt, c.Below = ByMark, RoleBase, "", false
	}
	return c
}
