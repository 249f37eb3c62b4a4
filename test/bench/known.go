package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// know makes the ledger know n instances that are stopped.
func (s machine) know(ctx context.Context, n int) error {
	records := make([]record.Record, n)
	for i := range records {
		records[i] = stopped(i)
	}
	return s.record(ctx, records)
}

// record appends records to the ledger, with what they reserve, some to a line.
func (s machine) record(ctx context.Context, records []record.Record) error {
	files := s.Host().Files()
	book, _, err := ledger.Open(ctx, files, ledger.Places{Lock: "/var/run/sledctl/ledger.lock", Locations: ledger.Find(files, "")})
	if err != nil {
		return err
	}
	for some := range slices.Chunk(records, 20) {
		if _, err := book.Update(ctx, func(ledger.View) ([]ledger.Fact, error) { return facts(some) }); err != nil {
			return err
		}
	}
	return nil
}

func facts(records []record.Record) ([]ledger.Fact, error) {
	var all []ledger.Fact
	for _, r := range records {
		own, err := factsOf(r)
		if err != nil {
			return nil, err
		}
		all = append(all, own...)
	}
	return all, nil
}

func factsOf(r record.Record) ([]ledger.Fact, error) {
	record, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	owner, err := json.Marshal(r.ID)
	if err != nil {
		return nil, err
	}
	return []ledger.Fact{
		{Key: "instance/" + r.ID, Value: record},
		{Key: "name/" + r.Name, Value: owner},
		{Key: "address/" + r.Spec.Address.Prefix.Addr().String(), Value: owner},
		{Key: "nic/" + r.Control, Value: owner},
		{Key: "nic/" + r.Spec.NICs[0].MAC, Value: owner},
	}, nil
}

// stopped is the record of the i-th instance: one NIC, and an address of its
// own in the simulated sled's underlay.
func stopped(i int) record.Record {
	name := fmt.Sprintf("vm%05d", i)
	address := netip.AddrFrom4([4]byte{127, 77, byte(100 + i>>8), byte(i)})
	return record.Record{
		ID: naming.InstanceID(uuid.Nil, name).String(), Name: name, Wanted: record.WantedStopped,
		Control: fmt.Sprintf("02:08:20:01:%02x:%02x", byte(i>>8), byte(i)), Generation: 3, Updated: time.Now().UTC(),
		Spec: record.Spec{
			CPUs: 2, Memory: 2 << 30, Pool: "rpool",
			NICs:    []record.NIC{{Over: "net0", MAC: fmt.Sprintf("02:08:20:02:%02x:%02x", byte(i>>8), byte(i))}},
			Address: record.Address{Mode: record.Static, Prefix: netip.PrefixFrom(address, 16)},
		},
	}
}
