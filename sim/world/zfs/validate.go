package zfs

import (
	"cmp"
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
// over those of such a pool without a word (zfs_iter_root in libzfs_iter.c).
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
	case p == nil:
	case Lost(p):
		return c.refuse("%s", suspendedIO)
	case ReadOnly(p):
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
	if normal := out["normalization"]; normal != "" && normal != "none" {
		switch out["utf8only"] {
		case "off":
			return nil, c.refuse("'utf8only' must be set 'on' if normalization chosen")
		case "":
			out["utf8only"] = "on"
		}
	}
	return out, nil
}

func sortedNames(props map[string]string) []string {
	names := make([]string, 0, len(props))
	for name := range props {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// one checks one setting.
func (c *checker) one(name, value string) (stored, canonical string, err error) {
	p := FindDatasetProperty(name)
	switch {
	case p == nil && UserProperty(name):
		if len(name) >= maxDatasetName {
			return "", "", c.refuse("property name '%s' is too long", name)
		}
		if len(value) >= maxUserValue {
			return "", "", c.refuse("property value too long")
		}
		return name, value, nil
	case c.types == TypeSnapshot:
		return "", "", c.refuse("this property can not be modified for snapshots")
	case p == nil && strings.HasPrefix(name, "written@"):
		return "", "", c.refuse("'%s' is readonly", name)
	case p == nil:
		return "", "", c.refuse("invalid property '%s'", name)
	case p.Types&c.types == 0:
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
	if p.Rule == PropReadOnly {
		return false
	}
	return c.target == nil || c.keysToo && (p.Name == "pbkdf2iters" || p.Name == "keyformat")
}

// parse reads a value as its property wants it.
func (c *checker) parse(p *DatasetProperty, value string) (string, error) {
	switch p.Kind {
	case PropertyText:
		if len(value) >= 1024 { // ZFS_MAXPROPLEN is MAXPATHLEN
			return "", c.refuse("'%s' is too long", p.Name)
		}
		return value, nil
	case PropertyWord:
		if word := p.canonical(value); word != "" {
			return word, nil
		}
		return "", c.refuse("'%s' must be one of '%s'", p.Name, p.Values)
	}
	if value == "none" {
		if p.Name == "filesystem_limit" || p.Name == "snapshot_limit" {
			return noLimit, nil
		}
		return "0", nil
	}
	if p.Name == "refreservation" && value == "auto" && c.types == TypeVolume {
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
		most, text := uint64(1<<20), "1M"
		if p.Name == "volblocksize" {
			most, text = 128<<10, "128K"
		}
		if n < 512 || n > most || bits.OnesCount64(n) != 1 {
			return c.refuse("'%s' must be power of 2 from 512B to %s", p.Name, text)
		}
	case "special_small_blocks":
		if n != 0 && (n < 512 || n > 128<<10 || bits.OnesCount64(n) != 1) {
			return c.refuse("invalid '%s=%d' property: must be zero or a power of 2 from 512B to 128K", p.Name, n)
		}
	case "mountpoint":
		if value != "none" && value != "legacy" && !strings.HasPrefix(value, "/") {
			return c.refuse("'%s' must be an absolute path, 'none', or 'legacy'", p.Name)
		}
		return c.inZone(p, value != "none" && value != "legacy")
	case "sharenfs", "sharesmb":
		return c.inZone(p, true)
	case "keylocation":
		return c.keylocation(value)
	case "pbkdf2iters":
		if n < 100000 {
			return c.refuse("minimum pbkdf2 iterations is 100000")
		}
	case "version":
		if c.target != nil && value < word(c.tx, c.target, "version") {
			return c.refuse("Can not downgrade; already at version %s", word(c.tx, c.target, "version"))
		}
	case "volsize", "reservation", "refreservation":
		return c.volume(p, n)
	}
	return nil
}

// inZone refuses what only the zone may set that a dataset was given to.
func (c *checker) inZone(p *DatasetProperty, matters bool) error {
	if c.zoned && matters {
		return c.refuse("'%s' cannot be set on dataset in a non-global zone", p.Name)
	}
	return nil
}

func (c *checker) keylocation(value string) error {
	if value != "none" && value != "prompt" && !(strings.HasPrefix(value, "file:///") && len(value) > len("file:///")) {
		return c.refuse("invalid keylocation")
	}
	if c.target == nil || c.keysToo {
		return nil
	}
	root := encryptionRoot(c.tx, c.target)
	switch {
	case root == nil && value != "none":
		return c.refuse("keylocation must be 'none' for unencrypted datasets")
	case root != nil && value == "none":
		return c.refuse("keylocation must not be 'none' for encrypted datasets")
	case root != nil && root != c.target:
		return c.refuse("keylocation may only be set on encryption roots")
	}
	return nil
}

// volume is what the sizes of an existing volume must keep to.
func (c *checker) volume(p *DatasetProperty, n uint64) error {
	if c.target == nil || Kind(c.target) != TypeVolume {
		return nil
	}
	block := max(512, number(c.target, "volblocksize"))
	switch {
	case p.Name != "volsize" && n > number(c.target, "volsize"):
		return c.refuse("'%s' is greater than current volume size", p.Name)
	case p.Name == "volsize" && n%block != 0:
		return c.refuse("'%s' must be a multiple of volume block size (%s)", p.Name, NiceBytes(block))
	case p.Name == "volsize" && n == 0:
		return c.refuse("'%s' cannot be zero", p.Name)
	}
	return nil
}

// room checks that sizes can be kept: the kernel's part of setting them
// (dsl_dir_set_quota_check, dsl_dir_set_reservation_check). The words are those
// of zfs_setprop_error.
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
			grows := minus(n, max(number(d, name), survey.Bytes(d, "referenced")))
			if grows > survey.space[d.Name].free || number(d, "quota") != 0 && n > number(d, "quota") {
				return c.refuse("size is greater than available space")
			}
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
