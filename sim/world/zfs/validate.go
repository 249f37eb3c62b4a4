package zfs

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// Checking settings before they are made: zfs_valid_proplist in
// usr/src/lib/libzfs/common/libzfs_dataset.c and zprop_parse_value in
// libzfs_util.c.

// settings are values to be set, of native properties by their own names and as
// they are stored: numbers in digits, words in their canonical form.
type settings map[string]string

// checker is one check of a list of settings.
type checker struct {
	tx      *world.Tx
	action  string         // "cannot create 'x'": how its refusals begin
	types   DatasetTypes   // of the dataset that gets them
	target  *world.Dataset // nil if it is to be made
	zoned   bool           // of the target, or of the parent
	keysToo bool           // the parameters of a key may be set
}

func (c *checker) refuse(format string, args ...any) error {
	r := refuse(format, args...)
	r.Text = c.action + ": " + r.Text
	return r
}

// suspendedIO is what every look at a dataset and every change of one is refused
// with whose pool is suspended: POOL_CHECK_SUSPENDED gives EAGAIN
// (usr/src/uts/common/fs/zfs/zfs_ioctl.c, zfs_common_error in
// usr/src/lib/libzfs/common/libzfs_util.c). A listing of all datasets passes
// silently over those of such a pool (zfs_iter_root in libzfs_iter.c).
const suspendedIO = "pool I/O is currently suspended"

// suspended tells whether the pool of a dataset has lost its disks.
func suspended(tx *world.Tx, dataset string) bool {
	p := FindPool(tx, PoolName(dataset))
	return p != nil && Lost(p)
}

// Reachable says that a listing shows the dataset.
func Reachable(tx *world.Tx, dataset string) bool { return !suspended(tx, dataset) }

// ReadOnly says that the pool was imported with readonly=on.
func ReadOnly(p *world.Pool) bool { return p.Properties["readonly"] == "on" }

// writable refuses to change anything in a pool that is suspended, or read-only
// (POOL_CHECK_READONLY gives EROFS).
func (c *checker) writable(dataset string) error {
	switch p := FindPool(c.tx, PoolName(dataset)); {
	case p != nil && Lost(p):
		return c.refuse("%s", suspendedIO)
	case p != nil && ReadOnly(p):
		return c.refuse("pool is read-only")
	}
	return nil
}

// fits refuses to make anything in a pool that is full: each new dataset takes a
// little (dsl_sync_task_common in usr/src/uts/common/fs/zfs/dsl_synctask.c).
func (c *checker) fits(dataset string) error {
	p := FindPool(c.tx, PoolName(dataset))
	if p == nil || p.Ballast == 0 && p.Size >= smallPool {
		return nil // Nobody here fills a pool of that size.
	}
	if NewSurvey(c.tx).Bytes(c.tx.State.Datasets[p.Name], "available") < OwnBytes {
		return c.refuse("out of space")
	}
	return nil
}

// check gives the settings in their stored form.
func (c *checker) check(props map[string]string) (settings, error) {
	out := settings{}
	for _, name := range sortedNames(props) {
		stored, value, err := c.one(name, props[name])
		if err != nil {
			return nil, err
		}
		out[stored] = value
	}
	return out, nil
}

func sortedNames(props map[string]string) []string { return slices.Sorted(maps.Keys(props)) }

// one checks one setting.
func (c *checker) one(name, value string) (stored, canonical string, err error) {
	p := FindDatasetProperty(name)
	switch {
	case p == nil && UserProperty(name):
		if len(name) >= maxDatasetName || len(value) >= maxUserValue {
			return "", "", c.refuse("property name or value too long")
		}
		return name, value, nil
	case p == nil && strings.Contains(otherProperties, " "+name+" "):
		return "", "", world.NotSimulated("the property %s of ZFS", name)
	case p == nil:
		return "", "", c.refuse("invalid property '%s'", name)
	case p.Types&c.types == 0 || c.types == TypeSnapshot:
		return "", "", c.refuse("'%s' does not apply to datasets of this type", name)
	case p.ReadOnly() && !c.mayOnce(p):
		return "", "", c.refuse("'%s' is readonly", name)
	}
	value, err = c.parse(p, value)
	if err == nil {
		err = c.special(p, value)
	}
	return p.Name, value, err
}

// maxUserValue is ZAP_MAXVALUELEN, with the NUL.
const maxUserValue = 8192

// mayOnce says whether a property that is set at creation only may be set now.
func (c *checker) mayOnce(p *DatasetProperty) bool {
	return p.Rule != PropReadOnly && (c.target == nil || c.keysToo && p.Name == "keyformat")
}

// parse reads a value as its property wants it.
func (c *checker) parse(p *DatasetProperty, value string) (string, error) {
	switch {
	case p.Kind == PropertyText:
		return value, nil
	case p.Kind == PropertyWord:
		if !slices.Contains(p.Words, value) {
			return "", c.refuse("'%s' must be one of '%s'", p.Name, p.Values)
		}
		return value, nil
	case value == "none":
		return "0", nil
	case p.Name == "refreservation" && value == "auto" && c.types == TypeVolume:
		return value, nil
	}
	n, err := ParseSize(value)
	if err != nil {
		return "", c.refuse("%s", err.Error())
	}
	if n == 0 && (p.Name == "quota" || p.Name == "refquota") {
		return "", c.refuse("use 'none' to disable quota/refquota")
	}
	return strconv.FormatUint(n, 10), nil
}

// special is what single properties want beyond their kind.
func (c *checker) special(p *DatasetProperty, value string) error {
	n, _ := strconv.ParseUint(value, 10, 64)
	switch p.Name {
	case "volblocksize", "recordsize":
		if n < 512 || n > 1<<20 || p.Name == "volblocksize" && n > 128<<10 || bits.OnesCount64(n) != 1 {
			return c.refuse("'%s' must be power of 2 from 512B to %s", p.Name, map[string]string{"volblocksize": "128K", "recordsize": "1M"}[p.Name])
		}
	case "mountpoint":
		path := strings.HasPrefix(value, "/")
		switch {
		case !path && value != "none" && value != "legacy":
			return c.refuse("'%s' must be an absolute path, 'none', or 'legacy'", p.Name)
		case path && c.zoned:
			return c.refuse("'%s' cannot be set on dataset in a non-global zone", p.Name)
		}
	case "keylocation":
		if value != "none" && value != "prompt" && !(strings.HasPrefix(value, "file:///") && len(value) > len("file:///")) {
			return c.refuse("invalid keylocation")
		}
		if c.target != nil && !c.keysToo {
			return world.NotSimulated("zfs set keylocation")
		}
	case "volsize", "reservation", "refreservation":
		if c.target != nil && Kind(c.target) == TypeVolume {
			return world.NotSimulated("zfs set %s of a volume", p.Name)
		}
	}
	return nil
}

// room checks that a quota can be kept: the kernel's part of setting it
// (dsl_dir_set_quota_check). The words are those of zfs_setprop_error.
func (c *checker) room(d *world.Dataset, s settings) error {
	survey := NewSurvey(c.tx)
	for _, name := range sortedNames(s) {
		n, _ := strconv.ParseUint(s[name], 10, 64)
		switch name {
		case "quota", "refquota":
			floor := survey.Bytes(d, map[string]string{"quota": "used", "refquota": "referenced"}[name])
			if n != 0 && (n < floor || n < number(d, "reservation")) {
				return c.refuse("size is less than current used or reserved space")
			}
		case "reservation", "refreservation":
			return world.NotSimulated("zfs set %s", name)
		}
	}
	return nil
}

// reservationOf is what a volume of a size needs with its metadata
// (zvol_volsize_to_reservation in libzfs_dataset.c).
func reservationOf(size, block uint64, copies string) uint64 {
	const perLevel, indirect = 1 << 10, 1 << 17
	n, _ := strconv.ParseUint(cmp.Or(copies, "1"), 10, 64)
	meta := uint64(7)
	for blocks := size / block; blocks > 1; {
		blocks = (blocks + perLevel - 1) / perLevel
		meta += blocks
	}
	return size*n + meta*min(3, n+1)*indirect
}
