package zfs

import (
	"maps"
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

// writable refuses to change anything in a pool that is suspended.
func (c *checker) writable(dataset string) error {
	if suspended(c.tx, dataset) {
		return c.refuse("%s", suspendedIO)
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
	case p == nil && UserProperty(name) && len(name) < maxDatasetName && len(value) < maxUserValue:
		return name, value, nil
	case p == nil && datasetTable()[name] == nil && !UserProperty(name):
		return "", "", c.refuse("invalid property '%s'", name)
	case p == nil || p.Types&c.types == 0 || c.types == TypeSnapshot || p.Rule == PropConstant:
		return "", "", world.NotSimulated("zfs: the property %s of such a dataset", name)
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
			return "", c.refuse("'%s' must be one of '%s'", p.Name, strings.Join(p.Words, " | "))
		}
		return value, nil
	case value == "none":
		return "0", nil
	case p.Name == "refreservation" && value == "auto" && c.types == TypeVolume:
		return value, nil
	}
	n, err := ParseSize(value)
	if err == nil && n == 0 && p.Name == "quota" {
		err = world.NotSimulated("zfs: a quota of 0")
	}
	return strconv.FormatUint(n, 10), err
}

// special is what single properties want beyond their kind.
func (c *checker) special(p *DatasetProperty, value string) error {
	path := strings.HasPrefix(value, "/")
	switch p.Name {
	case "mountpoint":
		if !path && value != "none" && value != "legacy" || path && c.zoned {
			return world.NotSimulated("zfs: the mountpoint %s of such a dataset", value)
		}
	case "keylocation":
		if !strings.HasPrefix(value, "file:///") || c.target != nil && !c.keysToo {
			return world.NotSimulated("zfs: the property keylocation=%s of such a dataset", value)
		}
	case "volblocksize":
		if n, _ := strconv.ParseUint(value, 10, 64); n < 512 || n > 128<<10 || n&(n-1) != 0 {
			return c.refuse("'volblocksize' must be power of 2 from 512B to 128K")
		}
	case "volsize":
		return c.volumeSize(value)
	case "refreservation":
		if c.types != TypeVolume {
			return world.NotSimulated("zfs set %s", p.Name)
		}
	}
	return nil
}

// volumeSize is what zfs_valid_proplist wants of the size of a volume that is there.
func (c *checker) volumeSize(value string) error {
	if c.types != TypeVolume {
		return world.NotSimulated("zfs set volsize of what is no volume")
	}
	n, _ := strconv.ParseUint(value, 10, 64)
	switch {
	case c.target == nil: // zfs_create has looked at it
	case n == 0:
		return c.refuse("'volsize' cannot be zero")
	case n%blockBytes(c.target) != 0:
		return c.refuse("'volsize' must be a multiple of volume block size (%s)", NiceNumber(blockBytes(c.target)))
	}
	return nil
}

// room checks that a quota and a reservation can be kept: the kernel's part of setting them
// (dsl_dir_set_quota_check, dsl_dir_set_reservation_check). The words are those of
// zfs_setprop_error. A volume whose reservation is what its size needs gets that of its new size
// (zfs_add_synthetic_resv in libzfs_dataset.c).
func (c *checker) room(d *world.Dataset, s settings) error {
	if size, _ := strconv.ParseUint(s["volsize"], 10, 64); size > 0 {
		has, needs := number(d, "refreservation"), reservationOf(size, blockBytes(d))
		if has == 0 || has != reservationOf(number(d, "volsize"), blockBytes(d)) {
			return nil
		}
		if needs > has && needs-has > NewSurvey(c.tx).free(d) {
			return c.refuse("size is greater than available space")
		}
		s["refreservation"] = strconv.FormatUint(needs, 10)
		return nil
	}
	survey := NewSurvey(c.tx)
	if text, set := s["refreservation"]; set {
		return c.keepBack(d, s, text)
	}
	if text, set := s["quota"]; set {
		quota, _ := strconv.ParseUint(text, 10, 64)
		if quota != 0 && quota < max(survey.Bytes(d, "used"), number(d, "reservation")) {
			return c.refuse("size is less than current used or reserved space")
		}
	}
	if text, set := s["reservation"]; set {
		reserved, _ := strconv.ParseUint(text, 10, 64)
		used, quota := survey.used(d), number(d, "quota")
		more := minus(max(used, reserved), max(used, number(d, "reservation")))
		if above := c.tx.State.Datasets[parentName(d.Name)]; above == nil || more > survey.free(above) || quota > 0 && reserved > quota {
			return c.refuse("size is greater than available space")
		}
	}
	return nil
}

// keepBack sets what is kept for a volume: all that its size needs, if that is said to be "auto"
// (zfs_fix_auto_resv in libzfs_dataset.c, dsl_dataset_set_refreservation_check in dsl_dataset.c).
func (c *checker) keepBack(d *world.Dataset, s settings, text string) error {
	if text == "auto" {
		text = strconv.FormatUint(reservationOf(number(d, "volsize"), blockBytes(d)), 10)
		s["refreservation"] = text
	}
	wanted, _ := strconv.ParseUint(text, 10, 64)
	if minus(max(d.Used, wanted), max(d.Used, number(d, "refreservation"))) > NewSurvey(c.tx).free(d) {
		return c.refuse("size is greater than available space")
	}
	return nil
}

// reservationOf is what a volume of a size needs with its metadata
// (zvol_volsize_to_reservation in libzfs_dataset.c).
func reservationOf(size, block uint64) uint64 {
	const perLevel, indirect = 1 << 10, 1 << 17
	meta := uint64(7)
	for blocks := size / block; blocks > 1; {
		blocks = (blocks + perLevel - 1) / perLevel
		meta += blocks
	}
	return size + meta*2*indirect
}
