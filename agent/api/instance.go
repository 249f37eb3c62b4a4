package api

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/peer/dropshot"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/comparison"
	"github.com/sledctl/sledctl/sled/instance/documents"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// Instance is an instance as it is served and printed. Keys are only ever added.
type Instance struct {
	ID         string        `json:"id"`
	Name       string        `json:"name"`
	PropolisID string        `json:"propolis_id"`
	State      string        `json:"state"`
	Reason     string        `json:"reason"`
	Wanted     string        `json:"wanted"`
	Protected  bool          `json:"protected"`
	Keeper     record.Keeper `json:"keeper"`
	// KeeperGeneration is the generation that the keeper has given it; absent: none.
	KeeperGeneration uint64 `json:"keeper_generation,omitempty"`
	// PropolisAddress is where its Propolis listens, ADDRESS:PORT; only GET /instances/{instance} has it.
	PropolisAddress string         `json:"propolis_addr,omitempty"`
	Zone            string         `json:"zone"`
	Address         string         `json:"address"`
	VNICs           []VNIC         `json:"vnics"`
	CPUs            int            `json:"cpus"`
	CPUCap          record.CPUCap  `json:"cpu_cap,omitempty"`
	Memory          uint64         `json:"memory"`
	Disks           []record.Disk  `json:"disks"`
	LaterDisks      *[]record.Disk `json:"later_disks,omitempty"` // of the next bring-up, where they are others
	// Crucible has digests in the places of keys and requests.
	Crucible   []record.CrucibleDisk `json:"crucible,omitempty"`
	Pool       string                `json:"pool"`
	StartOrder record.StartOrder     `json:"start_order,omitempty"`
	CloudInit  *record.CloudInit     `json:"cloud_init,omitempty"` // with digests in the places of secrets
	Generation uint64                `json:"generation"`
	Updated    time.Time             `json:"time_updated"`
	Migration  *Moving               `json:"migration"`         // null: it was made here, and is in none
	Since      time.Time             `json:"since,omitzero"`    // when its state began, if that is known
	AtRisk     bool                  `json:"at_risk,omitempty"` // a pool that it uses does not answer
	Changed    []string              `json:"changed,omitempty"` // what others have changed of it
	Busy       *Busy                 `json:"busy,omitempty"`    // the command that changes it at the moment
	Died       bool                  `json:"died,omitempty"`    // instance ensure --failed brings it up
	// Last is the last operation on it, where that was asked for.
	Last *operation.Last `json:"last,omitempty"`
}

// Busy is the run of a command that changes an instance.
type Busy struct {
	Verb  string    `json:"verb"`
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}

// Moving is the migration that an instance is in, or came by.
type Moving struct {
	ID    string `json:"id"`
	State string `json:"state"` // arriving, arrived, departing
	Peer  string `json:"peer"`  // the other sled's Propolis, or what runs its sledctl; empty: it is over
}

// InstanceOf returns an instance as it is served.
func InstanceOf(i instance.Instance) Instance {
	s := Instance{
		ID: i.ID, Name: i.Name, PropolisID: i.VM(), Keeper: i.KeptBy(), KeeperGeneration: i.KeeperGeneration, State: i.State, Reason: i.Reason, Wanted: i.Wanted, Protected: i.Protected, Address: i.Spec.Address.Mode, VNICs: []VNIC{},
		CPUs: i.Spec.CPUs, CPUCap: i.Spec.CPUCap, Memory: i.Spec.Memory, Disks: i.Spec.Disks, LaterDisks: i.Later, Crucible: i.Spec.Crucible, Pool: i.Spec.Pool, StartOrder: i.Spec.StartOrder, Generation: i.Generation, Updated: i.Updated,
	}
	if i.Spec.CloudInit != nil {
		told := *i.Spec.CloudInit
		told.Volume, s.CloudInit = "", &told
	}
	s.Since, s.AtRisk, s.Changed, s.Died = i.Since, i.AtRisk, i.Changed, i.Died(i.Boot) && i.Busy == nil
	if i.Busy != nil {
		s.Busy = &Busy{i.Busy.Verb, i.Busy.PID, i.Busy.Since}
	}
	if id, state, peer, migrating := i.Migrating(); migrating {
		s.Migration = &Moving{id, state, peer}
	}
	if s.Disks == nil {
		s.Disks = []record.Disk{}
	}
	if i.Spec.Address.Mode == record.Static {
		s.Address = i.Spec.Address.Prefix.String()
	}
	if i.Incarnation == nil {
		return s
	}
	s.Zone = i.Incarnation.Zone
	s.VNICs = VNICsOf(i.Record)
	return s
}

// VNICsOf returns the VNICs of a record with an incarnation as they are served, the control
// VNIC first.
func VNICsOf(r record.Record) []VNIC {
	all := []VNIC{}
	for _, v := range append([]record.VNIC{r.Incarnation.Control}, r.Incarnation.Guests...) {
		n := r.Spec.NICOf(v.MAC)
		all = append(all, VNIC{Name: v.Name, Over: v.Over, MAC: v.MAC, VLAN: v.VLAN, MaxBW: n.MaxBW, AllowIP: n.AllowIP, OPTE: n.OPTE, Port: n.Port})
	}
	return all
}

// VNIC is a VNIC as it is served and printed.
type VNIC struct {
	Name string `json:"name"`
	Over string `json:"over"`
	MAC  string `json:"mac"`
	VLAN int    `json:"vlan"`
	MTU  int    `json:"mtu,omitempty"`
	Zone string `json:"zone,omitempty"`
	// MaxBW and AllowIP are what the guest NIC of an instance is wanted to be held to, as
	// in its document.
	MaxBW   int      `json:"max_bw,omitempty"`
	AllowIP []string `json:"allow_ip,omitempty"`
	// OPTE says that it is a port in a VPC; its place there is that of the document.
	OPTE bool `json:"opte,omitempty"`
	record.Port
}

// Instances are the answer to GET /instances.
type Instances struct {
	Items []Instance `json:"items"`
	// Last says that they have the last operation on each. An agent that does not say so
	// may also leave out what others have changed, and which ones died.
	Last bool `json:"last"`
}

// AddLast adds to instances the last operation on each.
func AddLast(all []Instance, view ledger.View) {
	for i := range all {
		all[i].Last = operation.LastOn(view, naming.KeyInstance+all[i].ID)
	}
}

// Changed is the answer to what changes an instance: as it is then. One that was
// deleted is null.
type Changed struct {
	Instance *Instance `json:"instance"`
}

// Differences is the answer to GET /instances/{instance}/differences: in what the instance is
// not as it is wanted, as instance get --diff.
type Differences struct {
	Items []comparison.Row `json:"items"`
}

// Document is the answer to GET /instances/{instance}/document: what instance ensure -f
// reads, as instance get -o toml.
type Document struct {
	Text string `json:"text"`
}

// PutInstanceState is the body of PUT /instances/{instance}/state.
type PutInstanceState struct {
	State string `json:"state"` // running, stopped, reboot
}

// PutInstance is the body of PUT /instances/{instance}: an instance document, as
// instance ensure -f reads it, in which a machine as a whole is not named, but
// there: as it is, or as the text of a file. What it leaves open stays as it is.
type PutInstance struct {
	ID      string               `json:"id,omitempty"`
	Name    string               `json:"name,omitempty"`
	VM      string               `json:"propolis_id,omitempty"`
	CPUs    *int                 `json:"cpus,omitempty"`
	CPUCap  *record.CPUCap       `json:"cpu_cap,omitempty"`
	Memory  *uint64              `json:"memory,omitempty"` // bytes
	Disks   []documents.Disk     `json:"disks,omitzero"`
	Volumes []documents.Crucible `json:"crucible,omitzero"`
	NICs    []record.NIC         `json:"nics,omitzero"`
	Address *record.Address      `json:"address,omitempty"`
	Pool    *string              `json:"pool,omitempty"`
	Order   *record.StartOrder   `json:"start_order,omitempty"`
	// CloudInit has texts, not the names of files.
	CloudInit *documents.CloudInit `json:"cloud_init,omitempty"`

	Spec    json.RawMessage    `json:"spec,omitempty"`
	Machine *documents.Machine `json:"machine,omitempty"`
}

// PutInstanceOf is what asks for w.
func PutInstanceOf(w instance.Wanted) PutInstance {
	p := PutInstance{Name: w.Ref, VM: w.PropolisID, CPUs: w.CPUs, CPUCap: w.CPUCap, Memory: w.Memory, Disks: documents.DisksOf(w.Disks), NICs: w.NICs, Address: w.Address, Pool: w.Pool, Order: w.StartOrder}
	p.CloudInit, p.Volumes = documents.CloudInitOf(w.CloudInit), documents.CrucibleOf(w.Crucible)
	if w.MachineText != nil {
		p.Machine = &documents.Machine{File: w.MachineFile, Text: string(w.MachineText)}
	}
	if uuid.Validate(w.Ref) == nil {
		p.ID, p.Name = w.Ref, w.Name
	}
	return p
}

// Failure is the body of an answer that is an error of a command: what
// the command prints to stderr with -o json.
type Failure struct {
	dropshot.Body
	Failure json.RawMessage `json:"failure"`
}
