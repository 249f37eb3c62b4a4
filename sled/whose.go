package sled

import (
	"strings"

	"github.com/google/uuid"
)

// The marks that objects of ours carry. A user property counts only if it is
// set on the dataset itself (source "local"): children and clones inherit it.
const (
	PropertyInstance = "sledctl:instance" // the instance's id, on its zone's dataset
	PropertyBase     = "sledctl:base"     // on a base zone's dataset; what it is valid for
	PropertyLedger   = "sledctl:ledger"   // the witness of the ledger, on a pool's root

	AttrInstance = "sledctl-instance" // the instance's id, on its zone
	AttrBase     = "sledctl-base"     // on a base zone
)

// Evidence is why an object is held to be ours, weakest first.
type Evidence int

// The kinds of evidence.
const (
	Foreign  Evidence = iota // none: it is somebody else's, and never touched
	ByPrefix                 // it carries a prefix of ours, before something that we do not write
	ByName                   // its name is one that we give
	ByMark                   // it carries a mark of ours
)

// Claim says whose an object is.
type Claim struct {
	Evidence Evidence
	Role     Role
	Instance uuid.UUID // from a mark; Nil where there is none
	Propolis uuid.UUID // from the name of an instance's zone; else Nil
	Base     Base      // from the name of a base zone; else zero
	Number   int       // of a VNIC
	// Below is set for a dataset or snapshot that lies below what the claim
	// names: the brand's ZBE of a zone, a snapshot of it.
	Below bool
}

// Ours says whether there is any evidence.
func (c Claim) Ours() bool { return c.Evidence != Foreign }

// WhoseZone classifies a zone by its name and its attrs (name to value).
func (p Prefixes) WhoseZone(name string, attrs map[string]string) Claim {
	c := p.byZoneName(name)
	if id, ok := parseUUID(attrs[AttrInstance]); ok {
		c.Evidence, c.Role, c.Instance = ByMark, RoleInstance, id
	} else if _, ok := attrs[AttrBase]; ok {
		c.Evidence, c.Role = ByMark, RoleBase
	}
	return c
}

func (p Prefixes) byZoneName(name string) Claim {
	if id, ok := p.ParseZoneName(name); ok {
		return Claim{Evidence: ByName, Role: RoleInstance, Propolis: id}
	}
	if base, ok := p.ParseBaseName(name); ok {
		return Claim{Evidence: ByName, Role: RoleBase, Base: base}
	}
	return byPrefix(name, p.Zone, p.Base, oxideZone)
}

func byPrefix(name string, prefixes ...string) Claim {
	for _, prefix := range prefixes {
		if strings.HasPrefix(name, prefix) {
			return Claim{Evidence: ByPrefix}
		}
	}
	return Claim{}
}

// WhoseVNIC classifies a VNIC by its name: VNICs carry no marks.
func (p Prefixes) WhoseVNIC(name string) Claim {
	if role, n, ok := p.ParseVNIC(name); ok {
		return Claim{Evidence: ByName, Role: role, Number: n}
	}
	return byPrefix(name, p.VNIC, p.Guest, oxideVNIC)
}

// WhoseDataset classifies a dataset or snapshot by its name and its local user
// properties. Its name is ours if that of a zone is a part of it, but for the
// pool's; a mark counts on the dataset that carries it.
func (p Prefixes) WhoseDataset(name string, local map[string]string) Claim {
	dataset, _, snapshot := strings.Cut(name, "@")
	parts := strings.Split(dataset, "/")
	var c Claim
	for i, part := range parts[1:] {
		if c = p.byZoneName(part); c.Ours() {
			c.Below = snapshot || i+2 < len(parts)
			break
		}
	}
	if id, ok := parseUUID(local[PropertyInstance]); ok {
		c.Evidence, c.Role, c.Instance, c.Below = ByMark, RoleInstance, id, false
	} else if _, ok := local[PropertyBase]; ok {
		c.Evidence, c.Role, c.Below = ByMark, RoleBase, false
	}
	return c
}
