package zfs

import (
	"cmp"
	"path"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// Sources of values as zfs get prints them (zprop_print_one_property).
const (
	SourceNone      = "-"
	SourceDefault   = "default"
	SourceLocal     = "local"
	SourceInherited = "inherited from " // and the dataset's name
)

// Property is the value of a property as zfs get -p prints it, and its source;
// "-" and "-" if the dataset has none. It refuses nothing: an unknown dataset or
// property has no value.
func Property(tx *world.Tx, name, property string) (value, source string) {
	if d := FindDataset(tx, name); d != nil {
		if value, source, ok := NewSurvey(tx).Value(d, property, true); ok {
			return value, source
		}
	}
	return "-", SourceNone
}

// Value is the value of a native or user property of d, and its source.
// Literal is zfs get -p. It is not ok where zfs get prints "-" and "-".
func (s *Survey) Value(d *world.Dataset, property string, literal bool) (value, source string, ok bool) {
	p := FindDatasetProperty(property)
	if p == nil {
		return userValue(s.tx, d, property)
	}
	if !applies(s.tx, p, d) {
		return "", "", false
	}
	if p.Rule == PropReadOnly {
		value, ok = s.computed(d, p, literal)
		return value, SourceNone, ok
	}
	value, source, ok = setting(s.tx, d, p)
	if ok && !literal {
		value = p.nice(value)
	}
	return value, source, ok
}

// applies says whether a property is one of this dataset: a snapshot has those
// of its type that what it is of has too.
func applies(tx *world.Tx, p *DatasetProperty, d *world.Dataset) bool {
	if p.Types&Kind(d) == 0 {
		return false
	}
	if Kind(d) != TypeSnapshot || p.Types&typeHeads == 0 {
		return true
	}
	head := FindDataset(tx, parentName(d.Name))
	return head == nil || p.Types&Kind(head) != 0
}

// nice is a literal value as people read it.
func (p *DatasetProperty) nice(literal string) string {
	n, err := strconv.ParseUint(literal, 10, 64)
	switch {
	case p.Kind != PropertyNumber || err != nil || p.Name == "guid":
		return literal
	case n == 0 && p.Rule != PropReadOnly:
		return "none"
	}
	return NiceNumber(n)
}

// userValue is a user property: the dataset's own, or that of the nearest
// ancestor; a snapshot inherits from what it is of.
func userValue(tx *world.Tx, d *world.Dataset, name string) (value, source string, ok bool) {
	value, from := nearest(tx, d, name)
	if from == nil {
		return "", "", false
	}
	return value, sourceOf(d, from), true
}

// nearest looks for a setting of the dataset, then of its ancestors.
func nearest(tx *world.Tx, d *world.Dataset, name string) (string, *world.Dataset) {
	for at := d; at != nil; at = tx.State.Datasets[parentName(at.Name)] {
		if v, ok := at.Local[name]; ok {
			return v, at
		}
	}
	return "", nil
}

func sourceOf(d, from *world.Dataset) string {
	if d == from {
		return SourceLocal
	}
	return SourceInherited + from.Name
}

// setting is the value of a native property that can be set, at some time.
func setting(tx *world.Tx, d *world.Dataset, p *DatasetProperty) (value, source string, ok bool) {
	switch p.Name {
	case "mountpoint":
		value, source = mountpoint(tx, d)
		return value, source, true
	case "encryption", "keyformat", "keylocation", "pbkdf2iters":
		return cryptSetting(tx, d, p)
	case "volsize": // of the volume, also for its snapshots
		value, from := nearest(tx, d, "volsize")
		return cmp.Or(value, "0"), map[bool]string{true: SourceLocal, false: SourceNone}[from == d], true
	}
	if !p.Inheritable() {
		return own(d, p)
	}
	if v, from := nearest(tx, d, p.Name); from != nil {
		return v, sourceOf(d, from), true
	}
	return p.Default, SourceDefault, true
}

// word is the effective value of a property for the code of this package.
func word(tx *world.Tx, d *world.Dataset, property string) string {
	value, _, _ := setting(tx, d, FindDatasetProperty(property))
	return value
}

// own is the value of a property that is not inherited.
//
// Guess quota-none-is-local: `zfs set quota=none` leaves the property's source "local".
// Check: `zfs get -o source quota`
func own(d *world.Dataset, p *DatasetProperty) (value, source string, ok bool) {
	if v, set := d.Local[p.Name]; set {
		return v, SourceLocal, true
	}
	return p.Default, SourceDefault, true
}

// Mountpoint is the value of the property mountpoint.
func Mountpoint(tx *world.Tx, d *world.Dataset) string {
	where, _ := mountpoint(tx, d)
	return where
}

// mountpoint is the effective mountpoint and its source: an inherited one goes
// on with the names between (zfs_prop_get, ZFS_PROP_MOUNTPOINT).
func mountpoint(tx *world.Tx, d *world.Dataset) (value, source string) {
	value, from := nearest(tx, d, "mountpoint")
	rest := d.Name
	source = SourceDefault
	if from == nil {
		value = "/"
	} else {
		rest = strings.TrimPrefix(d.Name[len(from.Name):], "/")
		source = sourceOf(d, from)
	}
	if !strings.HasPrefix(value, "/") {
		return value, source
	}
	return path.Join(value, rest), source
}

// computed is the value of a property that nobody sets.
func (s *Survey) computed(d *world.Dataset, p *DatasetProperty, literal bool) (string, bool) {
	switch p.Name {
	case "name":
		return d.Name, true
	case "type":
		return d.Type, true
	case "guid":
		return strconv.FormatUint(guidOf(d), 10), true
	case "mounted":
		return map[bool]string{false: "no", true: "yes"}[d.Mounted != ""], true
	case "origin":
		return d.Origin, d.Origin != ""
	case "encryptionroot":
		root := encryptionRoot(s.tx, d)
		if root == nil {
			return "", false
		}
		return root.Name, true
	case "keystatus":
		return keyStatus(s.tx, d)
	case "receive_resume_token":
		return tokenOf(d), d.Partial != nil
	}
	n := strconv.FormatUint(s.Bytes(d, p.Name), 10)
	if !literal {
		n = p.nice(n)
	}
	return n, true
}

// Sizes as ZFS writes and reads them (usr/src/lib/libzfs/common/libzfs_util.c,
// zfs_nicenum_format and zfs_nicestrtonum).

const sizeUnits = "BKMGTPEZ"

// NiceNumber is a number as people read it: at most five characters, "96K",
// "1.03G", "0".
//
// Guess small-sizes-end-in-b: human sizes below 1 KiB end in "B"; sledctl always asks with -p.
// Check: `zfs list -o used` on an empty volume
func NiceNumber(n uint64) string {
	index := 0
	for rest := n; rest >= 1024 && index < len(sizeUnits)-1; rest >>= 10 {
		index++
	}
	unit := strings.TrimPrefix(string(sizeUnits[index]), "B")
	whole := uint64(1) << (10 * index)
	if n%whole == 0 {
		return strconv.FormatUint(n/whole, 10) + unit
	}
	value := float64(n) / float64(whole)
	for digits := 2; digits > 0; digits-- {
		if s := strconv.FormatFloat(value, 'f', digits, 64) + unit; len(s) <= 5 {
			return s
		}
	}
	return strconv.FormatFloat(value, 'f', 0, 64) + unit
}

// ParseSize reads a whole number with an optional unit: "100G", "512mb".
func ParseSize(s string) (uint64, error) {
	digits := strings.TrimRight(s, "BKMGTPEZbkmgtpez")
	unit := strings.ToUpper(s[len(digits):])
	if len(unit) == 2 && unit[0] != 'B' {
		unit = strings.TrimSuffix(unit, "B")
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	shift := 10 * max(0, strings.Index(sizeUnits, unit))
	if err != nil || len(unit) > 1 || shift >= 64 || n<<shift>>shift != n {
		return 0, world.NotSimulated("zfs: the number '%s'", s)
	}
	return n << shift, nil
}
