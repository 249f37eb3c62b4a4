package zfs

import (
	"slices"
	"strings"
	"sync"
)

// The native properties of datasets: usr/src/common/zfs/zfs_prop.c, in the
// order of zfs_prop_t (usr/src/uts/common/sys/fs/zfs.h), which is the order of
// "zfs get all".

// DatasetTypes is a set of dataset types.
type DatasetTypes int

// The types.
const (
	TypeFilesystem DatasetTypes = 1 << iota
	TypeSnapshot
	TypeVolume

	TypeDataset = TypeFilesystem | TypeSnapshot | TypeVolume
	typeHeads   = TypeFilesystem | TypeVolume
)

// PropertyKind is what a property's values are.
type PropertyKind int

// The kinds. PropertyWord has one of a list of words.
const (
	PropertyNumber PropertyKind = iota
	PropertyText
	PropertyWord
)

// PropertyRule says who sets a property and where its value comes from.
type PropertyRule int

// The rules, with the names of zfs_prop.h.
const (
	PropReadOnly       PropertyRule = iota // computed
	PropInherit                            // set, or the parent's
	PropDefault                            // set, or the default; not inherited
	PropOnetime                            // set at creation only; inherited
	PropOnetimeDefault                     // set at creation only; not inherited
)

// DatasetProperty describes a native property.
type DatasetProperty struct {
	Name    string
	Column  string // heading of zfs list; in lower case also a name of the property
	Kind    PropertyKind
	Rule    PropertyRule
	Types   DatasetTypes
	Default string // as zfs get -p prints it
	Values  string // as the usage message describes them
	Words   []string
	Hidden  bool
}

// ReadOnly says that zfs set refuses it, also when it could be set at creation.
func (p *DatasetProperty) ReadOnly() bool { return p.Rule != PropInherit && p.Rule != PropDefault }

// Inheritable says that children have it from their parents.
func (p *DatasetProperty) Inheritable() bool { return p.Rule == PropInherit || p.Rule == PropOnetime }

// Right says that zfs list sets its column right.
func (p *DatasetProperty) Right() bool { return p.Kind != PropertyText }

// Width is the least width of its column, and whether no value is wider
// (zprop_width in zprop_common.c).
func (p *DatasetProperty) Width() (width int, fixed bool) {
	width = len(p.Column)
	if p.Kind == PropertyNumber {
		width = max(width, 5)
	}
	for _, w := range p.Words {
		width = max(width, len(w))
	}
	return width, p.Kind != PropertyText
}

// DatasetProperties gives all native properties in the order of zfs get all.
func DatasetProperties() []*DatasetProperty { return slices.Clone(datasetTable().all) }

// FindDatasetProperty finds a property by its name or its column's, in lower
// case: "available" or "avail". It is nil for anything else.
func FindDatasetProperty(name string) *DatasetProperty { return datasetTable().byName[name] }

type propertyTable struct {
	all    []*DatasetProperty
	byName map[string]*DatasetProperty
}

var datasetTable = sync.OnceValue(func() propertyTable {
	t := propertyTable{all: listDatasetProperties(), byName: map[string]*DatasetProperty{}}
	for _, p := range t.all {
		t.byName[strings.ToLower(p.Column)] = p
	}
	for _, p := range t.all {
		t.byName[p.Name] = p
	}
	return t
})

// propertyRows describe the properties that are simulated, in the order of zfs get
// all: name, heading, kind, rule, types (file system, volume, snapshot), default,
// values. The words of a property are its values.
const propertyRows = `
type                 TYPE         text   readonly fvs -        filesystem | volume | snapshot | bookmark
used                 USED         number readonly fvs -        <size>
available            AVAIL        number readonly fv  -        <size>
referenced           REFER        number readonly fvs -        <size>
mounted              MOUNTED      word   readonly f   -        yes | no
origin               ORIGIN       text   readonly fv  -        <snapshot>
quota                QUOTA        number default  f   0        <size> | none
reservation          RESERV       number default  fv  0        <size> | none
volsize              VOLSIZE      number default  vs  0        <size>
volblocksize         VOLBLOCK     number onetime  v   8192     512 to 128k, power of 2
recordsize           RECSIZE      number inherit  f   131072   512 to 1M, power of 2
mountpoint           MOUNTPOINT   text   inherit  f   /        <path> | legacy | none
sharenfs             SHARENFS     text   inherit  f   off      on | off | share(8) options
checksum             CHECKSUM     word   inherit  fv  on       on | off | fletcher2 | fletcher4 | sha256 | sha512 | skein | edonr
compression          COMPRESS     word   inherit  fv  off      on | off | lzjb | gzip | gzip-1 | gzip-9 | zle | lz4
atime                ATIME        word   inherit  f   on       on | off
devices              DEVICES      word   inherit  fs  on       on | off
exec                 EXEC         word   inherit  fs  on       on | off
setuid               SETUID       word   inherit  fs  on       on | off
readonly             RDONLY       word   inherit  fv  off      on | off
zoned                ZONED        word   inherit  f   off      on | off
name                 NAME         text   readonly fvs -
canmount             CANMOUNT     word   default  f   on       on | off | noauto
xattr                XATTR        word   inherit  fs  on       on | off
copies               COPIES       word   inherit  fv  1        1 | 2 | 3
sharesmb             SHARESMB     text   inherit  f   off      on | off | sharemgr(8) options
refquota             REFQUOTA     number default  f   0        <size> | none
refreservation       REFRESERV    number default  fv  0        <size> | none
guid                 GUID         number readonly fvs -        <uint64>
primarycache         PRIMARYCACHE word   inherit  fvs all      all | none | metadata
usedbydataset        USEDDS       number readonly fv  -        <size>
usedbychildren       USEDCHILD    number readonly fv  -        <size>
usedbyrefreservation USEDREFRESERV number readonly fv -        <size>
logbias              LOGBIAS      word   inherit  fv  latency  latency | throughput
dedup                DEDUP        word   inherit  fv  off      on | off | verify
sync                 SYNC         word   inherit  fv  standard standard | always | disabled
written              WRITTEN      number readonly fvs -        <size>
encryption           ENCRYPTION   word   onetime  fvs off      on | off | aes-128-ccm | aes-192-ccm | aes-256-ccm | aes-128-gcm | aes-192-gcm | aes-256-gcm
keylocation          KEYLOCATION  text   default  fv  none     prompt | <file URI>
keyformat            KEYFORMAT    word   oncedef  fv  none     none | raw | hex | passphrase
encryptionroot       ENCROOT      text   readonly fvs -        <filesystem | volume>
keystatus            KEYSTATUS    word   readonly fvs -        none | unavailable | available
`

// otherProperties are those of the real one that are not simulated.
const otherProperties = " creation compressratio snapdir aclmode aclinherit createtxg version utf8only normalization " +
	"casesensitivity vscan nbmand secondarycache usedbysnapshots defer_destroy userrefs objsetid mlslabel dnodesize " +
	"refcompressratio clones logicalused logicalreferenced filesystem_limit snapshot_limit filesystem_count snapshot_count " +
	"redundant_metadata receive_resume_token pbkdf2iters special_small_blocks aclimplicit rawvol "

// listDatasetProperties reads propertyRows.
func listDatasetProperties() []*DatasetProperty {
	kinds := map[string]PropertyKind{"number": PropertyNumber, "text": PropertyText, "word": PropertyWord}
	rules := map[string]PropertyRule{
		"readonly": PropReadOnly, "inherit": PropInherit, "default": PropDefault, "onetime": PropOnetime, "oncedef": PropOnetimeDefault,
	}
	var all []*DatasetProperty
	for line := range strings.SplitSeq(strings.TrimSpace(propertyRows), "\n") {
		w := strings.Fields(line)
		p := &DatasetProperty{
			Name: w[0], Column: w[1], Kind: kinds[w[2]], Rule: rules[w[3]], Default: strings.TrimPrefix(w[5], "-"),
			Values: strings.Join(w[6:], " "), Hidden: w[0] == "name",
		}
		for _, t := range w[4] {
			p.Types |= map[rune]DatasetTypes{'f': TypeFilesystem, 'v': TypeVolume, 's': TypeSnapshot}[t]
		}
		if p.Kind == PropertyWord {
			p.Words = strings.Split(p.Values, " | ")
		}
		all = append(all, p)
	}
	return all
}

// UserProperty says whether a name is one of a user's property: it has a colon
// and only lower-case letters, digits and ":-_." (zfs_prop_user).
func UserProperty(name string) bool {
	colon := false
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.':
		case c == ':':
			colon = true
		default:
			return false
		}
	}
	return colon
}
