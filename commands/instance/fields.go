package instance

import (
	"strconv"
	"time"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/query"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// fields are what --filter and --sort know of an instance.
func fields() []query.Field[cli.Instance] {
	one := func(key string, of func(cli.Instance) string) query.Field[cli.Instance] {
		return query.Field[cli.Instance]{Key: key, Text: func(i cli.Instance) []string { return []string{of(i)} }}
	}
	short := terminal.ShortPools(nil)
	return []query.Field[cli.Instance]{
		one("name", func(i cli.Instance) string { return i.Name }),
		one("state", func(i cli.Instance) string { return i.State }),
		{Key: "cpus", Number: func(i cli.Instance) uint64 { return uint64(i.CPUs) }},
		{Key: "cpu_cap", Number: func(i cli.Instance) uint64 { return uint64(i.CPUCap) }, Read: capOf},
		{Key: "memory", Number: func(i cli.Instance) uint64 { return i.Memory }, Size: true},
		one("address", func(i cli.Instance) string { return i.Address }),
		{Key: "since", Time: func(i cli.Instance) time.Time { return i.Since }},
		{Key: "updated", Time: func(i cli.Instance) time.Time { return i.Updated }},
		one("reason", func(i cli.Instance) string { return i.Reason }),
		one("wanted", func(i cli.Instance) string { return i.Wanted }),
		{Key: "protected", Flag: func(i cli.Instance) bool { return i.Protected }},
		one("keeper", func(i cli.Instance) string { return string(i.Keeper) }),
		one("start_order", func(i cli.Instance) string { return i.StartOrder.String() }),
		{Key: "pool", Text: func(i cli.Instance) []string { return []string{i.Pool, short(i.Pool)} }},
		{Key: "disk", Text: disks},
		{Key: "nic", Text: func(i cli.Instance) []string { return guests(i, func(v nic) string { return v.Over }) }},
		{Key: "vlan", Text: func(i cli.Instance) []string { return guests(i, func(v nic) string { return strconv.Itoa(v.VLAN) }) }},
		{Key: "mac", Text: func(i cli.Instance) []string { return guests(i, func(v nic) string { return v.MAC }) }},
		one("id", func(i cli.Instance) string { return i.ID }),
		one("zone", func(i cli.Instance) string { return i.Zone }),
		one("last", func(i cli.Instance) string {
			if i.Last == nil {
				return ""
			}
			return string(i.Last.Result)
		}),
		{Key: "generation", Number: func(i cli.Instance) uint64 { return i.Generation }},
	}
}

// capOf reads a cap as --cpu-cap does, in hundredths; 0 is none.
func capOf(text string) (uint64, error) {
	c, err := record.ParseCPUCap(text)
	return uint64(c), err
}

func disks(i cli.Instance) []string {
	var paths []string
	for _, d := range i.Disks {
		paths = append(paths, d.Path)
	}
	return paths
}

// guests are the values of an instance's guest NICs. Its first VNIC is its own.
func guests(i cli.Instance, of func(nic) string) []string {
	var values []string
	for n, v := range i.VNICs {
		if n > 0 {
			values = append(values, of(v))
		}
	}
	return values
}
