package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// Snapshot is a sled as sim show prints it. Its order depends on nothing but
// names.
type Snapshot struct {
	Mode     string            `json:"mode"`
	Zones    []ZoneSnapshot    `json:"zones"`
	Links    []LinkSnapshot    `json:"links"`
	Ports    []PortSnapshot    `json:"ports,omitempty"` // of OPTE
	V2P      []string          `json:"v2p,omitempty"`
	Disks    []DiskSnapshot    `json:"disks"`
	Pools    []PoolSnapshot    `json:"pools"`
	Datasets []DatasetSnapshot `json:"datasets"`
	Stacks   []StackSnapshot   `json:"stacks"`
	Services []ServiceSnapshot `json:"services"`
	Servers  []ServerSnapshot  `json:"servers"`
}

// ZoneSnapshot is a zone. ID and UUID are empty in what is compared.
type ZoneSnapshot struct {
	Name   string       `json:"name"`
	State  string       `json:"state"`
	ID     int          `json:"id,omitempty"`
	UUID   string       `json:"uuid,omitempty"`
	Config world.Config `json:"config"`
	Mounts []string     `json:"mounts,omitempty"`
}

// LinkSnapshot is a datalink.
type LinkSnapshot struct {
	Name       string            `json:"name"`
	Class      string            `json:"class"`
	Over       string            `json:"over,omitempty"`
	MAC        string            `json:"mac,omitempty"`
	VLAN       int               `json:"vlan,omitempty"`
	Temporary  bool              `json:"temporary,omitempty"`
	Zone       string            `json:"zone,omitempty"`
	Properties map[string]string `json:"properties,omitempty"`
}

// PoolSnapshot is a pool.
type PoolSnapshot struct {
	Name     string   `json:"name"`
	Vdevs    []string `json:"vdevs"`
	Health   string   `json:"health"`
	Imported bool     `json:"imported"`
}

// DiskSnapshot is a slot with the disk in it.
type DiskSnapshot struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"` // u2, m2
	Slot   int    `json:"slot"`
	Model  string `json:"model"`
	Serial string `json:"serial"`
	Size   uint64 `json:"size"`
	Pool   string `json:"pool,omitempty"` // whose label it bears
	State  string `json:"state"`          // see world.Tx.DiskState
	Image  bool   `json:"image,omitempty"`
}

// DatasetSnapshot is a file system, volume or snapshot. GUID is 0 in what is
// compared.
type DatasetSnapshot struct {
	Name    string            `json:"name"`
	Type    string            `json:"type"`
	GUID    uint64            `json:"guid,omitempty"`
	Origin  string            `json:"origin,omitempty"`
	Local   map[string]string `json:"local,omitempty"`
	Mounted string            `json:"mounted,omitempty"`
}

// StackSnapshot is the IP configuration of a zone.
type StackSnapshot struct {
	Zone       string            `json:"zone"`
	Interfaces []string          `json:"interfaces"`
	Addresses  []AddressSnapshot `json:"addresses"`
	Routes     []world.Route     `json:"routes"`
}

// AddressSnapshot is an address object.
type AddressSnapshot struct {
	Object    string `json:"object"`
	Type      string `json:"type"`
	Address   string `json:"address,omitempty"`
	Temporary bool   `json:"temporary,omitempty"`
	State     string `json:"state"`
}

// ServiceSnapshot is a service instance.
type ServiceSnapshot struct {
	Zone    string `json:"zone"`
	FMRI    string `json:"fmri"`
	Enabled bool   `json:"enabled"`
	State   string `json:"state"`
}

// ServerSnapshot is a process that runs on in a zone. PID is 0 in what is
// compared.
type ServerSnapshot struct {
	Zone   string `json:"zone"`
	PID    int    `json:"pid,omitempty"`
	FMRI   string `json:"fmri,omitempty"`
	Listen string `json:"listen,omitempty"`
	VM     string `json:"vm,omitempty"` // its state
}

// Snapshot shows the sled as it is now.
func (s *Sled) Snapshot(ctx context.Context) (*Snapshot, error) { return snapshot(ctx, s.world) }

// Comparable is a sled without its counters, its times, and what is drawn again
// for whatever is made again (zone ids, debug ids and UUIDs, GUIDs, pids): two
// sleds on which the same things are give the same bytes.
func Comparable(ctx context.Context, w *world.World) ([]byte, error) {
	all, err := snapshot(ctx, w)
	if err != nil {
		return nil, err
	}
	for i := range all.Zones {
		all.Zones[i].ID, all.Zones[i].UUID = 0, ""
		delete(all.Zones[i].Config.Globals, "debugid") // zonecfg counts it up
	}
	for i := range all.Datasets {
		all.Datasets[i].GUID = 0
	}
	for i := range all.Servers {
		all.Servers[i].PID = 0
	}
	return json.MarshalIndent(all, "", "\t")
}

func snapshot(ctx context.Context, w *world.World) (*Snapshot, error) {
	var all Snapshot
	err := w.View(ctx, func(tx *world.Tx) error {
		// What is shown must not be the state itself, which others change.
		all = Snapshot{Mode: string(tx.State.Mode)}
		all.zones(tx)
		all.network(tx)
		all.opte(tx)
		all.storage(tx)
		all.services(tx)
		return nil
	})
	return &all, err
}

func (s *Snapshot) zones(tx *world.Tx) {
	for _, z := range tx.State.Zones {
		shown := ZoneSnapshot{Name: z.Name, State: z.Current(), UUID: z.UUID, Config: z.Config.Clone()}
		if z.Kernel != nil {
			shown.ID, shown.Mounts = z.Kernel.ID, slices.Clone(z.Kernel.Mounts)
		}
		s.Zones = append(s.Zones, shown)
	}
	slices.SortFunc(s.Zones, func(a, b ZoneSnapshot) int { return cmp.Compare(a.Name, b.Name) })
}

func (s *Snapshot) network(tx *world.Tx) {
	for _, l := range tx.State.Links {
		s.Links = append(s.Links, LinkSnapshot{
			Name: l.Name, Class: l.Class, Over: l.Over, MAC: l.MAC, VLAN: l.VLAN, Temporary: l.Temporary, Zone: l.Zone,
			Properties: maps.Clone(l.Properties),
		})
	}
	slices.SortStableFunc(s.Links, func(a, b LinkSnapshot) int { return cmp.Compare(a.Name, b.Name) })
	for _, zone := range slices.Sorted(maps.Keys(tx.State.Stacks)) {
		stack := tx.State.Stacks[zone]
		shown := StackSnapshot{Zone: zone}
		for _, i := range stack.Interfaces {
			shown.Interfaces = append(shown.Interfaces, i.Name)
		}
		for _, a := range stack.Addresses {
			shown.Addresses = append(shown.Addresses, AddressSnapshot{
				Object: a.Object, Type: a.Type, Address: a.Address, Temporary: a.Temporary, State: world.At(a.Timeline, tx.Now).State,
			})
		}
		for _, r := range stack.Routes {
			shown.Routes = append(shown.Routes, *r)
		}
		s.Stacks = append(s.Stacks, shown)
	}
}

func (s *Snapshot) storage(tx *world.Tx) {
	for _, d := range tx.State.Disks {
		s.Disks = append(s.Disks, DiskSnapshot{
			Name: d.Name, Kind: d.Kind, Slot: d.Slot, Model: d.Model, Serial: d.Serial, Size: d.Size, Pool: d.Pool,
			State: zfs.DiskState(tx, d), Image: d.Image != nil,
		})
	}
	for _, p := range tx.State.Pools {
		s.Pools = append(s.Pools, PoolSnapshot{Name: p.Name, Vdevs: slices.Clone(p.Vdevs), Health: p.Health, Imported: p.Imported})
	}
	slices.SortFunc(s.Pools, func(a, b PoolSnapshot) int { return cmp.Compare(a.Name, b.Name) })
	for _, name := range slices.Sorted(maps.Keys(tx.State.Datasets)) {
		d := tx.State.Datasets[name]
		s.Datasets = append(s.Datasets, DatasetSnapshot{
			Name: name, Type: d.Type, GUID: d.GUID, Origin: d.Origin, Local: maps.Clone(d.Local), Mounted: d.Mounted,
		})
	}
}

func (s *Snapshot) services(tx *world.Tx) {
	for _, zone := range slices.Sorted(maps.Keys(tx.State.Services)) {
		instances := tx.SMF(zone).Instances
		for _, fmri := range slices.Sorted(maps.Keys(instances)) {
			svc := instances[fmri]
			s.Services = append(s.Services, ServiceSnapshot{
				Zone: zone, FMRI: fmri, Enabled: svc.Enabled, State: world.At(svc.Timeline, tx.Now).State,
			})
		}
	}
	for _, p := range tx.State.Processes {
		shown := ServerSnapshot{Zone: p.Zone, PID: p.PID, FMRI: p.FMRI, Listen: p.Listen}
		if p.VM != nil {
			shown.VM = world.At(p.VM.Timeline, tx.Now).State
		}
		s.Servers = append(s.Servers, shown)
	}
	slices.SortStableFunc(s.Servers, func(a, b ServerSnapshot) int {
		return cmp.Compare(a.Zone+" "+a.Listen, b.Zone+" "+b.Listen)
	})
}
