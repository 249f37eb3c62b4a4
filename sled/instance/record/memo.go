package record

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// Memo is what the dataset of a zone keeps about its instance, in naming.PropertySpec:
// what nothing else on the sled tells once the zone does not run, as a boot ends
// VNICs and machines. No secret is in it: user properties are not encrypted.
type Memo struct {
	Name    string `json:"name"`
	Control string `json:"control"` // MAC of the control VNIC
	Spec
	// Written says that the machine was written down whole, or is the control
	// plane's: what is here is not enough to make it again.
	Written bool `json:"written,omitempty"`
	// Secret says the same of what cloud-init is to tell its guest.
	Secret bool `json:"secret,omitempty"`
}

// MemoLimit is the longest value of a user property, in bytes (zfsprops(8)).
const MemoLimit = 8192

// MemoOf is the memo of a record; empty where it would be too long.
func MemoOf(r Record) string {
	m := Memo{Name: r.Name, Control: r.Control, Spec: r.Spec, Written: r.Spec.Machine != nil || r.VMM != nil || r.Spec.Crucible != nil}
	m.Machine, m.Crucible = nil, nil
	if c := m.CloudInit; c != nil { // the digests are of no use without the ledger
		m.Secret = c.UserData != "" || c.NetworkConfig != ""
		m.CloudInit = &CloudInit{Hostname: c.Hostname, SSHKeys: c.SSHKeys}
		if m.CloudInit.empty() {
			m.CloudInit = nil
		}
	}
	data, err := json.Marshal(m)
	if err != nil || len(data) >= MemoLimit {
		return ""
	}
	return string(data)
}

// TellsCloudInit reports whether a memo has the cloud-init data of a record as it should: that
// alone changes while a VM runs. One that cannot be read says all that it will.
func TellsCloudInit(memo string, r Record) bool {
	var is, wanted Memo
	if json.Unmarshal([]byte(memo), &is) != nil || json.Unmarshal([]byte(MemoOf(r)), &wanted) != nil {
		return true
	}
	return is.Secret == wanted.Secret && is.CloudInit.Same(wanted.CloudInit)
}

// ReadMemo reads that of a dataset which carries one itself. One that cannot be
// read is none.
func ReadMemo(d zfs.Dataset) (Memo, bool) {
	said := d.User[naming.PropertySpec]
	var m Memo
	if said.Source != zfs.Local || json.Unmarshal([]byte(said.Value), &m) != nil {
		return Memo{}, false
	}
	return m, ValidateName(m.Name) == nil && m.Validate() == nil && m.Address.Mode != ""
}

// Marks are the properties of an incarnation's dataset.
func Marks(r Record) []zfs.Property {
	all := []zfs.Property{{Name: naming.PropertyInstance, Value: r.ID}}
	if said := MemoOf(r); said != "" {
		all = append(all, zfs.Property{Name: naming.PropertySpec, Value: said})
	}
	return all
}

// HomeOf is the instance whose zone lay in a dataset, by the dataset's own marks:
// where the zone is gone, as with a root on a RAM disk, all that is left of it.
func HomeOf(names naming.Prefixes, d zfs.Dataset) (id uuid.UUID, ours bool) {
	mark := d.User[naming.PropertyInstance]
	if d.Type != zfs.TypeFilesystem || mark.Source != zfs.Local {
		return uuid.Nil, false
	}
	if _, noted := ReadMemo(d); !noted {
		return uuid.Nil, false
	}
	_, named := names.ParseZoneName(NameOfHome(d))
	id, err := uuid.Parse(mark.Value)
	return id, err == nil && named
}

// NameOfHome is the name of the zone that lies in a dataset.
func NameOfHome(d zfs.Dataset) string { return d.Name[strings.LastIndexByte(d.Name, '/')+1:] }

// HomeDataset is the dataset of a zonepath.
func HomeDataset(inv *inventory.Inventory, zonepath string) (zfs.Dataset, bool) {
	datasets, _ := inv.Datasets()
	i := slices.IndexFunc(datasets, func(d zfs.Dataset) bool { return d.Type == zfs.TypeFilesystem && d.Mountpoint == zonepath })
	if i < 0 {
		return zfs.Dataset{}, false
	}
	return datasets[i], true
}

// Resting reports whether a zone without a record carries the mark
// of an instance, and does not run.
func Resting(owner naming.Owner, z zone.Zone) bool {
	return z.Name != zone.Global && z.State != zone.Running && owner.Evidence == naming.ByMark && owner.Role == naming.RoleInstance
}
