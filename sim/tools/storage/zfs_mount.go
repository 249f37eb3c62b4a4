package storage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// zfs mount, unmount and the keys: share_mount, unshare_unmount,
// load_unload_keys and zfs_do_change_key in zfs_main.c.

func (z *zfsCall) mount(args []string) int {
	options, operands, bad := z.options(args, "alvo:O", missingArgument)
	if bad {
		return 2
	}
	var o zfs.MountOptions
	all, given := false, false
	for _, option := range options {
		switch option.Letter {
		case 'a':
			all = true
		case 'l':
			o.LoadKeys = true
		case 'O':
			o.Overlay = true
		case 'o':
			if option.Value == "" {
				return z.usage("empty mount options (-o) specified")
			}
			given = true // Temporary options change nothing that is simulated.
		}
	}
	switch {
	case all && len(operands) > 0, len(operands) > 1:
		return z.usage("too many arguments")
	case all:
		return z.refused(zfs.MountAll(z.tx, o))
	case len(operands) == 0 && given:
		return z.usage("missing filesystem argument (specify -a for all)")
	case len(operands) == 0:
		z.mounted()
		return 0
	}
	return z.refused(zfs.MountWith(z.tx, operands[0], o))
}

// mounted lists what is mounted.
//
// Guess: by directory; the real order is that of mounting.
func (z *zfsCall) mounted() {
	var all []*world.Dataset
	for _, d := range zfs.NewSurvey(z.tx).All() {
		if d.Mounted != "" {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b *world.Dataset) int { return strings.Compare(a.Mounted, b.Mounted) })
	for _, d := range all {
		fmt.Fprintf(&z.out, "%-30s  %s\n", d.Name, d.Mounted)
	}
}

func (z *zfsCall) unmount(args []string) int {
	options, operands, bad := z.options(args, "af", "")
	if bad {
		return 2
	}
	all, force := false, false
	for _, o := range options {
		all = all || o.Letter == 'a'
		force = force || o.Letter == 'f'
	}
	switch {
	case all && len(operands) > 0, len(operands) > 1:
		return z.usage("too many arguments")
	case all:
		return z.refused(world.NotSimulated("zfs unmount -a"))
	case len(operands) == 0:
		return z.usage("missing filesystem argument")
	case strings.HasPrefix(operands[0], "/"):
		return z.refused(world.NotSimulated("zfs unmount DIRECTORY"))
	}
	return z.refused(zfs.UnmountTree(z.tx, operands[0], force))
}

func (z *zfsCall) loadKey(args []string) int   { return z.keys(args, true) }
func (z *zfsCall) unloadKey(args []string) int { return z.keys(args, false) }

// keys is load-key and unload-key.
func (z *zfsCall) keys(args []string, load bool) int {
	options, operands, bad := z.options(args, "anrL:", "")
	if bad {
		return 2
	}
	key := zfs.KeyOptions{Stdin: z.call.Stdin}
	all, recursive := false, false
	for _, o := range options {
		switch {
		case o.Letter == 'a':
			all = true
		case o.Letter == 'r':
			recursive = true
		case !load:
			return z.usage("invalid option '%c'", o.Letter)
		case o.Letter == 'n':
			key.NoOp = true
		case o.Letter == 'L':
			key.Location = o.Value
		}
	}
	switch {
	case !all && len(operands) == 0:
		return z.usage("Missing dataset argument or -a option")
	case all && len(operands) > 0:
		return z.usage("Cannot specify dataset with -a option")
	case (all || recursive) && key.Location != "" && key.Location != "prompt":
		return z.usage("alternate keylocation may only be 'prompt' with -r or -a")
	}
	w := walk{recursive: recursive, depth: -1, types: zfs.TypeFilesystem | zfs.TypeVolume}
	survey, found, exit := z.find(w, operands)
	tried, failed := 0, 0
	for _, d := range found {
		if (all || recursive) && !z.wantsKey(survey, d, load) {
			continue
		}
		err := zfs.UnloadKey(z.tx, d.Name)
		if load {
			err = zfs.LoadKey(z.tx, d.Name, key)
		}
		tried++
		if z.refused(err) != 0 {
			failed++
		}
	}
	z.keySummary(load, key.NoOp, (all || recursive) && tried > 0, tried, failed)
	if failed > 0 {
		return 255 // The program returns -1.
	}
	return exit
}

// wantsKey says whether a dataset has a key that is not yet as wanted.
func (z *zfsCall) wantsKey(s *zfs.Survey, d *world.Dataset, load bool) bool {
	root, _, _ := s.Value(d, "encryptionroot", true)
	status, _, _ := s.Value(d, "keystatus", true)
	return root == d.Name && (status == "available") != load
}

func (z *zfsCall) keySummary(load, noOp, many bool, tried, failed int) {
	if !noOp && !many {
		return
	}
	done := "unloaded"
	switch {
	case load && noOp:
		done = "verified"
	case load:
		done = "loaded"
	}
	fmt.Fprintf(&z.out, "%d / %d key(s) successfully %s\n", tried-failed, tried, done)
}

func (z *zfsCall) changeKey(args []string) int {
	options, operands, bad := z.options(args, "lio:", "")
	if bad {
		return 2
	}
	props, load, inherit := map[string]string{}, false, false
	for _, o := range options {
		switch {
		case o.Letter == 'l':
			load = true
		case o.Letter == 'i':
			inherit = true
		case !z.setting(props, o.Value):
			return 1
		}
	}
	switch {
	case len(operands) == 0:
		return z.usage("Missing dataset argument")
	case len(operands) > 1:
		return z.usage("Too many arguments")
	}
	name := operands[0]
	d, err := zfs.OpenDataset(z.tx, name, zfs.TypeFilesystem|zfs.TypeVolume)
	if err != nil {
		z.refused(err)
		return z.usage("")
	}
	key := zfs.KeyOptions{Stdin: z.call.Stdin}
	if status, _, _ := zfs.NewSurvey(z.tx).Value(d, "keystatus", true); load && status != "available" {
		if z.refused(zfs.LoadKey(z.tx, name, key)) != 0 {
			return 255
		}
	}
	if z.refused(zfs.ChangeKey(z.tx, name, props, inherit, key)) != 0 {
		return 255
	}
	return 0
}
