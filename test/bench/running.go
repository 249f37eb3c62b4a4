package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zones"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// looks measures what an operator asks of a sled on which a thousand VMs run, and of
// one that has none. The VMs' zones, links and records are as instance ensure leaves
// them; their Propolis servers are pretended.
func (b bench) looks(ctx context.Context) ([]row, error) {
	const n, vms = 21, 1000
	var rows []row
	measure := func(what string, budget time.Duration, s machine, right func(out string) bool, args ...string) error {
		var own times
		for range n {
			r, err := s.run(ctx, nil, args...)
			if err != nil {
				return err
			}
			if !right(r.out) {
				return fmt.Errorf("%s: not what runs: %.500s", what, r.out)
			}
			own = append(own, r.own())
		}
		rows = append(rows, timed(what, budget, own.median(), fmt.Sprintf("(n=%d)", n)))
		return nil
	}
	add := func(what string, budget time.Duration, s machine, lines int, args ...string) error {
		return measure(what, budget, s, func(out string) bool {
			return strings.Count(out, "\n") == lines && strings.Count(out, "running") == lines
		}, args...)
	}
	status := func(what string, budget time.Duration, s machine, vms int) error {
		running := fmt.Sprintf(`"by_state":{"running":%d}`, vms)
		return measure(what, budget, s, func(out string) bool { return strings.Contains(out, running) }, "status", "-o", "json")
	}
	empty, err := inMemory(ctx)
	if err != nil {
		return nil, err
	}
	defer empty.Close()
	if err := add("instance list of nothing: own time", 5*time.Millisecond, empty, 0, "instance", "list", "-H"); err != nil {
		return nil, err
	}
	some, err := inMemory(ctx)
	if err != nil {
		return nil, err
	}
	defer some.Close()
	if some.host, err = some.populate(ctx, 40); err != nil {
		return nil, err
	}
	if err := status("status, 40 running: own time", 20*time.Millisecond, some, 40); err != nil {
		return nil, err
	}
	rest, err := some.atRest(ctx, 40, "40", 2*time.Second, 10*time.Second)
	if err != nil {
		return nil, err
	}
	rows = append(rows, rest)
	full, err := inMemory(ctx)
	if err != nil {
		return nil, err
	}
	defer full.Close()
	if full.host, err = full.populate(ctx, vms); err != nil {
		return nil, err
	}
	if err := add("instance list, 1,000 running: own time", 20*time.Millisecond, full, vms, "instance", "list", "-H"); err != nil {
		return nil, err
	}
	if err := status("status, 1,000 running: own time", 60*time.Millisecond, full, vms); err != nil {
		return nil, err
	}
	if rest, err = full.atRest(ctx, vms, "1,000", 20*time.Second, time.Minute); err != nil {
		return nil, err
	}
	rows = append(rows, rest)
	return rows, add("instance get of one, 1,000 running: own time", 3*time.Millisecond, full, 1, "instance", "get", "vm00500", "-H")
}

// populate brings up one VM and gives it n - 1 likenesses. The host is one on which
// all of them answer.
func (s machine) populate(ctx context.Context, n int) (host.Host, error) {
	if _, err := s.run(ctx, nil, web1("vm00000")...); err != nil {
		return nil, err
	}
	first, err := s.only(ctx)
	if err != nil {
		return nil, err
	}
	sled := &pretended{Host: s.Host(), vms: map[string]*pretendedVM{}}
	var records []record.Record
	err = s.World().Update(ctx, func(tx *world.Tx) error {
		one := likeness{Record: first}
		for _, z := range tx.State.Zones {
			if z.Name == first.Incarnation.Zone {
				one.Zone = z
			}
		}
		for _, l := range tx.State.Links {
			if l.Zone == first.Incarnation.Zone {
				one.Links = append(one.Links, l)
			}
		}
		for i := range n {
			other := one
			if i > 0 {
				if other, err = one.of(i); err != nil {
					return err
				}
				other.Zone.Kernel.ID += i
				tx.State.Zones, tx.State.Links = append(tx.State.Zones, other.Zone), append(tx.State.Links, other.Links...)
				if err := host.WriteFile(tx.Files, "/etc/zones/"+other.Zone.Name+".xml", zones.ZoneXML(other.Zone.Name, other.Zone.Config), 0o644); err != nil {
					return err
				}
				records = append(records, other.Record)
			}
			sled.vms[other.Record.Spec.Address.Prefix.Addr().String()] = &pretendedVM{id: other.Record.ID, gen: 1}
		}
		return zones.SaveZone(tx, tx.State.Zones[len(tx.State.Zones)-1]) // and with it the index of all
	})
	if err != nil {
		return nil, err
	}
	return sled, s.record(ctx, records)
}

// records are all that there are.
func (s machine) records(ctx context.Context) ([]record.Record, error) {
	files := s.Host().Files()
	book, _, err := ledger.Open(ctx, files, ledger.Places{Lock: "/var/run/sledctl/ledger.lock", Locations: ledger.Find(files, "")})
	if err != nil {
		return nil, err
	}
	view, err := book.Read(ctx)
	if err != nil {
		return nil, err
	}
	return record.All(view)
}

// only is the one record that there is.
func (s machine) only(ctx context.Context) (record.Record, error) {
	all, err := s.records(ctx)
	if err == nil && (len(all) != 1 || all[0].Incarnation == nil) {
		err = fmt.Errorf("%d instances are known, want one that runs", len(all))
	}
	if err != nil {
		return record.Record{}, err
	}
	return all[0], nil
}

// likeness is a VM that runs: what the ledger and the sled have of it.
type likeness struct {
	Record record.Record
	Zone   *world.Zone
	Links  []*world.Link
}

// of is the i-th VM that is like this one, and has names and addresses of its own.
func (l likeness) of(i int) (other likeness, err error) {
	name, names := fmt.Sprintf("vm%05d", i), naming.DefaultPrefixes()
	id := uuid.NewSHA1(uuid.NameSpaceOID, []byte(name))
	address := netip.AddrFrom4([4]byte{127, 77, byte(100 + i>>8), byte(i)})
	run := l.Record.Incarnation
	swaps := []string{
		l.Zone.UUID, uuid.NewSHA1(id, []byte("zone")).String(), l.Record.Name, name, l.Record.ID, naming.InstanceID(uuid.Nil, name).String(), run.PropolisID, id.String(),
		l.Record.Spec.Address.Prefix.Addr().String(), address.String(), run.Control.Name, names.ControlVNIC(1000 + i),
	}
	for n, v := range run.Guests {
		swaps = append(swaps, v.Name, names.GuestVNIC(1000+10*i+n))
	}
	for n, v := range append(slices.Clone(run.Guests), run.Control) {
		swaps = append(swaps, v.MAC, fmt.Sprintf("02:08:20:3%d:%02x:%02x", n, byte(i>>8), byte(i)))
	}
	text, err := json.Marshal(l)
	if err != nil {
		return other, err
	}
	return other, json.Unmarshal([]byte(strings.NewReplacer(swaps...).Replace(string(text))), &other)
}
