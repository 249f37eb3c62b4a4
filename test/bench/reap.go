package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zones"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// reap measures reap --dry-run over 10,000 objects: of half of them the ledger
// says that an instance has them, the others are orphans.
func (b bench) reap(ctx context.Context) ([]row, error) {
	const n, objects, most = 7, 10000, 8
	s, err := inMemory(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := s.litter(ctx, objects); err != nil {
		return nil, err
	}
	var own, wall times
	asked := 0
	for range n {
		r, err := s.run(ctx, nil, "reap", "--dry-run", "-H")
		if err != nil {
			return nil, err
		}
		if got := strings.Count(r.out, "\n"); got < objects {
			return nil, fmt.Errorf("%d objects are judged, want %d", got, objects)
		}
		own, wall, asked = append(own, r.own()), append(wall, r.wall), max(asked, r.counts().commands())
	}
	const what = "reap --dry-run over 10,000 objects: "
	return []row{
		timed(what+"own time", 40*time.Millisecond, own.median(), fmt.Sprintf("(%s with the simulated commands, n=%d)", millis(wall.median()), n)),
		{What: what + "host commands", Budget: fmt.Sprintf("≤ %d", most), Measured: fmt.Sprint(asked), Judged: true, Over: asked > most},
	}, nil
}

// litter puts objects on the sled: a fifth are zones, three fifths their
// VNICs, a fifth zonepath datasets that have lost their zones. Half of the
// zones, with their VNICs, are of instances that the ledger knows.
func (s machine) litter(ctx context.Context, objects int) error {
	const perZone = 5 // a zone, three VNICs, a dataset
	var records []record.Record
	err := s.World().Update(ctx, func(tx *world.Tx) error {
		pool := zonePool(tx)
		for i := range objects / perZone {
			r := stopped(i)
			if err := lay(tx, pool, i, &r); err != nil {
				return err
			}
			if i%2 == 0 {
				records = append(records, r)
			}
		}
		return zones.SaveZone(tx, tx.State.Zones[len(tx.State.Zones)-1]) // and with it the index of all
	})
	if err != nil {
		return err
	}
	return s.record(ctx, records)
}

func zonePool(tx *world.Tx) string {
	for _, p := range tx.State.Pools {
		if kind, _ := naming.ParsePool(p.Name); kind == naming.ExternalPool {
			return p.Name
		}
	}
	return "rpool"
}

// lay makes the i-th zone with its VNICs, as an instance's run would have left
// them, and a dataset whose zone is gone.
func lay(tx *world.Tx, pool string, i int, r *record.Record) error {
	names := naming.DefaultPrefixes()
	id := uuid.MustParse(tx.UUID())
	at, _ := naming.Zone(pool, names.ZoneName(id))
	lost, _ := naming.Zone(pool, names.ZoneName(uuid.MustParse(tx.UUID())))
	incarnation := record.Incarnation{PropolisID: id.String(), Zone: names.ZoneName(id), Zonepath: at.Mountpoint, Dataset: at.Dataset, Brand: "sparse", Ensured: true}
	for n := range 3 {
		v := record.VNIC{Name: names.GuestVNIC(2*i + n), Over: "net0", MAC: fmt.Sprintf("02:08:20:1%d:%02x:%02x", n, byte(i>>8), byte(i))}
		if n == 2 {
			v.Name = names.ControlVNIC(i)
			incarnation.Control = v
		} else {
			incarnation.Guests = append(incarnation.Guests, v)
		}
		tx.State.Links = append(tx.State.Links, &world.Link{Name: v.Name, Class: "vnic", Over: v.Over, MAC: v.MAC, Temporary: true, Up: true})
	}
	r.Incarnation = &incarnation
	z := &world.Zone{Name: incarnation.Zone, State: "installed", UUID: tx.UUID(), Config: world.Config{
		Brand: "sparse", Zonepath: incarnation.Zonepath, IPType: "exclusive",
		Resources: []world.Resource{{Type: "attr", Properties: []world.Property{
			{Name: "name", Values: []string{naming.AttrInstance}}, {Name: "type", Values: []string{"string"}}, {Name: "value", Values: []string{r.ID}},
		}}},
	}}
	tx.State.Zones = append(tx.State.Zones, z)
	tx.State.Datasets[lost.Dataset] = &world.Dataset{
		Name: lost.Dataset, Type: "filesystem", GUID: tx.Draw("guid"), Created: tx.Count("txg"),
		Local: map[string]string{naming.PropertyInstance: r.ID, "mountpoint": lost.Mountpoint},
	}
	return host.WriteFile(tx.Files, "/etc/zones/"+z.Name+".xml", zones.ZoneXML(z.Name, z.Config), 0o644)
}
