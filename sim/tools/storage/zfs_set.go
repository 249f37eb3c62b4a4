package storage

import (
	"strings"

	"github.com/sledctl/sledctl/sim/world/zfs"
)

// zfs set and inherit: zfs_do_set and zfs_do_inherit in zfs_main.c.

func (z *zfsCall) set(args []string) int {
	switch {
	case len(args) > 0 && strings.HasPrefix(args[0], "-"):
		return z.usage("invalid option '%s'", (args[0] + " ")[1:2])
	case len(args) == 0:
		return z.usage("missing arguments")
	case len(args) == 1 && !strings.Contains(args[0], "="):
		return z.usage("missing property=value argument(s)")
	case len(args) == 1:
		return z.usage("missing dataset name(s)")
	}
	n := 0
	for n < len(args) && strings.Contains(args[n], "=") {
		n++
	}
	for _, word := range args[n:] {
		if strings.Contains(word, "=") {
			return z.usage("invalid argument order")
		}
	}
	if n == len(args) {
		return z.usage("missing dataset name(s)")
	}
	props := map[string]string{}
	for _, word := range args[:n] {
		if !z.setting(props, word) {
			return 255 // The program returns -1.
		}
	}
	_, found, exit := z.find(walk{depth: -1, types: zfs.TypeDataset}, args[n:])
	for _, d := range found {
		if z.refused(zfs.SetProperties(z.tx, d.Name, props)) != 0 {
			exit = 1
		}
	}
	return exit
}

func (z *zfsCall) inherit(args []string) int {
	options, operands, bad := z.options(args, "rS", "")
	switch {
	case bad:
		return 2
	case len(operands) == 0:
		return z.usage("missing property argument")
	case len(operands) == 1:
		return z.usage("missing dataset argument")
	}
	w := walk{depth: -1, types: zfs.TypeDataset}
	received := false
	for _, o := range options {
		w.recursive = w.recursive || o.Letter == 'r'
		received = received || o.Letter == 'S'
	}
	name := operands[0]
	p := zfs.FindDatasetProperty(name)
	switch {
	case p == nil && !zfs.UserProperty(name):
		return z.usage("invalid property '%s'", name)
	case p != nil && p.ReadOnly():
		return z.fail("%s property is read-only", name)
	case p != nil && !p.Inheritable() && !received:
		z.say("'%s' property cannot be inherited", name)
		switch p.Name {
		case "quota", "reservation", "refquota", "refreservation":
			z.say("use 'zfs set %s=none' to clear\nuse 'zfs inherit -S %s' to revert to received value", name, name)
		}
		return 1
	case received && p != nil && (p.Name == "volsize" || p.Name == "version"):
		return z.fail("'%s' property cannot be reverted to a received value", name)
	}
	_, found, exit := z.find(w, operands[1:])
	for _, d := range found {
		if w.recursive && p != nil && p.Types&zfs.Kind(d) == 0 {
			continue
		}
		if z.refused(zfs.Inherit(z.tx, d.Name, name)) != 0 {
			exit = 1
		}
	}
	return exit
}
