package nexus

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
)

// Item is one thing of a sled's inventory.
type Item struct {
	Sled   string
	Kind   string // disk, pool, dataset, result
	Name   string // of a disk its serial number, of a pool its id
	Detail string // of a disk its slot, of a pool its health, of a result whether it became so
}

// Inventory asks each of the sleds what it has, and whether it became what was wanted of it.
func (p Plane) Inventory(ctx context.Context) (all []Item, err error) {
	n, err := p.kept(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range serving(&n) {
		has, err := ask[inventory](ctx, p, at(&n, id), http.MethodGet, "/inventory", nil)
		if err != nil {
			return nil, err
		}
		all = append(all, has.items(id)...)
	}
	return all, nil
}

func (i inventory) items(sled string) (all []Item) {
	for _, d := range i.Disks {
		all = append(all, Item{sled, "disk", d.Identity.Serial, fmt.Sprint(d.Variant, " in slot ", d.Slot)})
	}
	for _, z := range i.Zpools {
		all = append(all, Item{sled, "pool", z.ID, z.Health})
	}
	for _, d := range i.Datasets {
		all = append(all, Item{Sled: sled, Kind: "dataset", Name: d.Name})
	}
	results := map[string]result{}
	if i.Reconciled != nil {
		for _, some := range []map[string]result{i.Reconciled.Disks, i.Reconciled.Datasets} {
			maps.Copy(results, some)
		}
	}
	for _, id := range sorted(results) {
		all = append(all, Item{sled, "result", id, strings.TrimSpace(results[id].Result + " " + results[id].Message)})
	}
	return all
}

// result says whether one thing became as it was wanted.
type result struct {
	Result  string `json:"result"`
	Message string `json:"message"`
}
