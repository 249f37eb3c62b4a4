package spec

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// cpuidProfiles reads all of them, and takes one.
func (c *config) cpuidProfiles(wanted string, asked bool) {
	all := map[string]any{}
	if v, there := c.root["cpuid"]; there {
		all = c.table("cpuid", v)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		path := join("cpuid", name)
		set := c.cpuidSet(path, all[name])
		if name == wanted {
			c.spec.Board.CPUID = &set
			c.document.origin["board.cpuid"] = path
		}
	}
	if _, there := all[wanted]; wanted != "" && !there {
		path := "main.cpuid_profile"
		if asked {
			path = "cpuid"
		}
		c.add(path, "there is no CPUID profile %q: want a table [%s]", wanted, join("cpuid", wanted))
	}
}

func (c *config) cpuidSet(path string, v any) CPUID {
	set := CPUID{Entries: []CPUIDEntry{}}
	table := c.table(path, v)
	if table == nil {
		return set
	}
	set.Vendor = c.required(path, table, "vendor")
	if set.Vendor != "" && set.Vendor != "amd" && set.Vendor != "intel" {
		c.wrong(path+".vendor", set.Vendor, "amd or intel")
	}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		if key == "vendor" {
			continue
		}
		if e, ok := c.cpuidEntry(join(path, key), key, table[key]); ok {
			set.Entries = append(set.Entries, e)
		}
	}
	slices.SortStableFunc(set.Entries, compareEntries)
	return set
}

// cpuidEntry reads "LEAF" or "LEAF-SUBLEAF", in hex, and the four registers.
func (c *config) cpuidEntry(path, key string, v any) (e CPUIDEntry, ok bool) {
	hex := func(s string) uint32 {
		n, err := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 32)
		if err != nil && ok {
			c.add(path, "%q is no leaf, or leaf and subleaf, of hexadecimal digits", key)
			ok = false
		}
		return uint32(n)
	}
	ok = true
	leaf, subleaf, has := strings.Cut(key, "-")
	e.Leaf = hex(leaf)
	if has {
		e.Subleaf = new(hex(subleaf))
	}
	list, isList := v.([]any)
	if !isList || len(list) != 4 {
		c.wrong(path, v, "four numbers: eax, ebx, ecx, edx")
		return e, false
	}
	for i, to := range []*uint32{&e.EAX, &e.EBX, &e.ECX, &e.EDX} {
		n, isNumber := list[i].(int64)
		if !isNumber || n < 0 || n > 1<<32-1 {
			c.wrong(at(path, i), list[i], fmt.Sprintf("a number from 0 to %d", uint32(1<<32-1)))
		}
		*to = uint32(n)
	}
	return e, ok
}
