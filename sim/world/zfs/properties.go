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
	Left    bool // a number whose column is set left all the same
}

// ReadOnly says that zfs set refuses it, also when it could be set at creation.
func (p *DatasetProperty) ReadOnly() bool { return p.Rule != PropInherit && p.Rule != PropDefault }

// Inheritable says that children have it from their parents.
func (p *DatasetProperty) Inheritable() bool { return p.Rule == PropInherit || p.Rule == PropOnetime }

// Right says that zfs list sets its column right.
func (p *DatasetProperty) Right() bool { return p.Kind != PropertyText && !p.Left }

// Width is the least width of its column, and whether no value is wider
// (zprop_width in zprop_common.c).
func (p *DatasetProperty) Width() (width int, fixed bool) {
	width, fixed = len(p.Column), true
	switch p.Kind {
	case PropertyNumber:
		width, fixed = max(width, 5), p.Name != "creation"
	case PropertyText:
		fixed = false
	case PropertyWord:
		for _, w := range p.Words {
			width = max(width, len(w))
		}
	}
	return width, fixed
}

// canonical is a word as it is printed: gzip-6 is gzip. It is "" for a word
// that the property does not take.
func (p *DatasetProperty) canonical(word string) string {
	if !slices.Contains(p.Words, word) {
		return ""
	}
	switch {
	case p.Name == "compression" && word == "gzip-6":
		return "gzip"
	case p.Name == "aclinherit" && word == "secure":
		return "restricted"
	case p.Name == "version" && word == "current":
		return "5"
	}
	return word
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

func listDatasetProperties() []*DatasetProperty {
	const (
		fs   = TypeFilesystem
		vol  = TypeVolume
		snap = TypeSnapshot
		all  = TypeDataset
		unl  = "18446744073709551615" // no limit
	)
	onOff := []string{"off", "on"}
	size := func(name, column string, types DatasetTypes) *DatasetProperty {
		return &DatasetProperty{Name: name, Column: column, Rule: PropReadOnly, Types: types, Values: "<size>"}
	}
	number := func(name, column string, rule PropertyRule, types DatasetTypes, def, values string) *DatasetProperty {
		return &DatasetProperty{Name: name, Column: column, Rule: rule, Types: types, Default: def, Values: values}
	}
	text := func(name, column string, rule PropertyRule, types DatasetTypes, def, values string) *DatasetProperty {
		return &DatasetProperty{Name: name, Column: column, Kind: PropertyText, Rule: rule, Types: types, Default: def, Values: values}
	}
	word := func(name, column string, rule PropertyRule, types DatasetTypes, def string, words []string, values string) *DatasetProperty {
		return &DatasetProperty{Name: name, Column: column, Kind: PropertyWord, Rule: rule, Types: types, Default: def, Words: words, Values: values}
	}
	flag := func(name, column, def string, types DatasetTypes) *DatasetProperty {
		return word(name, column, PropInherit, types, def, onOff, "on | off")
	}
	hidden := func(p *DatasetProperty) *DatasetProperty { p.Hidden = true; return p }
	left := func(p *DatasetProperty) *DatasetProperty { p.Left = true; return p }

	cache := []string{"none", "metadata", "all"}
	checksums := strings.Fields("on off fletcher2 fletcher4 sha256 noparity sha512 skein edonr")
	dedups := strings.Fields("on off verify sha256 sha256,verify sha512 sha512,verify skein skein,verify edonr,verify")
	compressions := strings.Fields("on off lzjb gzip gzip-1 gzip-2 gzip-3 gzip-4 gzip-5 gzip-6 gzip-7 gzip-8 gzip-9 zle lz4")
	ciphers := strings.Fields("on off aes-128-ccm aes-192-ccm aes-256-ccm aes-128-gcm aes-192-gcm aes-256-gcm")
	ratio := "<1.00x or higher if compressed>"
	return []*DatasetProperty{
		text("type", "TYPE", PropReadOnly, all, "", "filesystem | volume | snapshot | bookmark"),
		left(number("creation", "CREATION", PropReadOnly, all, "", "<date>")),
		size("used", "USED", all),
		size("available", "AVAIL", fs|vol),
		size("referenced", "REFER", all),
		number("compressratio", "RATIO", PropReadOnly, all, "", ratio),
		word("mounted", "MOUNTED", PropReadOnly, fs, "", onOff, "yes | no"),
		text("origin", "ORIGIN", PropReadOnly, fs|vol, "", "<snapshot>"),
		number("quota", "QUOTA", PropDefault, fs, "0", "<size> | none"),
		number("reservation", "RESERV", PropDefault, fs|vol, "0", "<size> | none"),
		number("volsize", "VOLSIZE", PropDefault, snap|vol, "0", "<size>"),
		number("volblocksize", "VOLBLOCK", PropOnetime, vol, "8192", "512 to 128k, power of 2"),
		number("recordsize", "RECSIZE", PropInherit, fs, "131072", "512 to 1M, power of 2"),
		text("mountpoint", "MOUNTPOINT", PropInherit, fs, "/", "<path> | legacy | none"),
		text("sharenfs", "SHARENFS", PropInherit, fs, "off", "on | off | share(8) options"),
		word("checksum", "CHECKSUM", PropInherit, fs|vol, "on", checksums,
			"on | off | fletcher2 | fletcher4 | sha256 | sha512 | skein | edonr"),
		word("compression", "COMPRESS", PropInherit, fs|vol, "off", compressions, "on | off | lzjb | gzip | gzip-[1-9] | zle | lz4"),
		flag("atime", "ATIME", "on", fs),
		flag("devices", "DEVICES", "on", fs|snap),
		flag("exec", "EXEC", "on", fs|snap),
		flag("setuid", "SETUID", "on", fs|snap),
		flag("readonly", "RDONLY", "off", fs|vol),
		flag("zoned", "ZONED", "off", fs),
		word("snapdir", "SNAPDIR", PropInherit, fs, "hidden", []string{"hidden", "visible"}, "hidden | visible"),
		word("aclmode", "ACLMODE", PropInherit, fs, "discard", strings.Fields("discard groupmask passthrough restricted"),
			"discard | groupmask | passthrough | restricted"),
		word("aclinherit", "ACLINHERIT", PropInherit, fs, "restricted",
			strings.Fields("discard noallow restricted passthrough secure passthrough-x"),
			"discard | noallow | restricted | passthrough | passthrough-x"),
		number("createtxg", "CREATETXG", PropReadOnly, all, "", "<uint64>"),
		hidden(text("name", "NAME", PropReadOnly, all, "", "")),
		word("canmount", "CANMOUNT", PropDefault, fs, "on", []string{"off", "on", "noauto"}, "on | off | noauto"),
		flag("xattr", "XATTR", "on", fs|snap),
		word("copies", "COPIES", PropInherit, fs|vol, "1", []string{"1", "2", "3"}, "1 | 2 | 3"),
		word("version", "VERSION", PropDefault, fs|snap, "5", strings.Fields("1 2 3 4 5 current"), "1 | 2 | 3 | 4 | 5 | current"),
		word("utf8only", "UTF8ONLY", PropOnetime, fs|snap, "off", onOff, "on | off"),
		word("normalization", "NORMALIZATION", PropOnetime, fs|snap, "none", strings.Fields("none formD formKC formC formKD"),
			"none | formC | formD | formKC | formKD"),
		word("casesensitivity", "CASE", PropOnetime, fs|snap, "sensitive", strings.Fields("sensitive insensitive mixed"),
			"sensitive | insensitive | mixed"),
		flag("vscan", "VSCAN", "off", fs),
		flag("nbmand", "NBMAND", "off", fs|snap),
		text("sharesmb", "SHARESMB", PropInherit, fs, "off", "on | off | sharemgr(8) options"),
		number("refquota", "REFQUOTA", PropDefault, fs, "0", "<size> | none"),
		number("refreservation", "REFRESERV", PropDefault, fs|vol, "0", "<size> | none"),
		number("guid", "GUID", PropReadOnly, all, "", "<uint64>"),
		word("primarycache", "PRIMARYCACHE", PropInherit, all, "all", cache, "all | none | metadata"),
		word("secondarycache", "SECONDARYCACHE", PropInherit, all, "all", cache, "all | none | metadata"),
		size("usedbysnapshots", "USEDSNAP", fs|vol),
		size("usedbydataset", "USEDDS", fs|vol),
		size("usedbychildren", "USEDCHILD", fs|vol),
		size("usedbyrefreservation", "USEDREFRESERV", fs|vol),
		word("defer_destroy", "DEFER_DESTROY", PropReadOnly, snap, "", onOff, "yes | no"),
		number("userrefs", "USERREFS", PropReadOnly, snap, "", "<count>"),
		word("logbias", "LOGBIAS", PropInherit, fs|vol, "latency", []string{"latency", "throughput"}, "latency | throughput"),
		hidden(number("objsetid", "OBJSETID", PropReadOnly, all, "", "")),
		word("dedup", "DEDUP", PropInherit, fs|vol, "off", dedups,
			"on | off | verify | sha256[,verify], sha512[,verify], skein[,verify], edonr,verify"),
		text("mlslabel", "MLSLABEL", PropInherit, all, "none", "<sensitivity label>"),
		word("sync", "SYNC", PropInherit, fs|vol, "standard", strings.Fields("standard always disabled"), "standard | always | disabled"),
		word("dnodesize", "DNSIZE", PropInherit, fs, "legacy", strings.Fields("legacy auto 1k 2k 4k 8k 16k"),
			"legacy | auto | 1k | 2k | 4k | 8k | 16k"),
		number("refcompressratio", "REFRATIO", PropReadOnly, all, "", ratio),
		size("written", "WRITTEN", all),
		text("clones", "CLONES", PropReadOnly, snap, "", "<dataset>[,...]"),
		size("logicalused", "LUSED", fs|vol),
		size("logicalreferenced", "LREFER", all),
		number("filesystem_limit", "FSLIMIT", PropDefault, fs, unl, "<count> | none"),
		number("snapshot_limit", "SSLIMIT", PropDefault, fs|vol, unl, "<count> | none"),
		number("filesystem_count", "FSCOUNT", PropReadOnly, fs, unl, "<count>"),
		number("snapshot_count", "SSCOUNT", PropReadOnly, fs|vol, unl, "<count>"),
		word("redundant_metadata", "REDUND_MD", PropInherit, fs|vol, "all", []string{"all", "most"}, "all | most"),
		text("receive_resume_token", "RESUMETOK", PropReadOnly, fs|vol, "", "<string token>"),
		word("encryption", "ENCRYPTION", PropOnetime, all, "off", ciphers,
			"on | off | aes-128-ccm | aes-192-ccm | aes-256-ccm | aes-128-gcm | aes-192-gcm | aes-256-gcm"),
		text("keylocation", "KEYLOCATION", PropDefault, fs|vol, "none", "prompt | <file URI>"),
		word("keyformat", "KEYFORMAT", PropOnetimeDefault, fs|vol, "none", strings.Fields("none raw hex passphrase"),
			"none | raw | hex | passphrase"),
		number("pbkdf2iters", "PBKDF2ITERS", PropOnetimeDefault, fs|vol, "0", "<iters>"),
		text("encryptionroot", "ENCROOT", PropReadOnly, all, "", "<filesystem | volume>"),
		word("keystatus", "KEYSTATUS", PropReadOnly, all, "", strings.Fields("none unavailable available"), "none | unavailable | available"),
		number("special_small_blocks", "SPECIAL_SMALL_BLOCKS", PropInherit, fs, "0", "zero or 512 to 128K, power of 2"),
		flag("aclimplicit", "ACLIMPL", "on", fs),
		// Only the sled's own distribution has raw volumes (oxidecomputer/illumos-gate).
		word("rawvol", "RAWVOL", PropOnetime, vol|snap, "off", onOff, "on | off"),
	}
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
