package zfs

import (
	_ "embed" // of the table
	"strings"
	"sync"
)

// The native properties of datasets: usr/src/common/zfs/zfs_prop.c, in the
// order of zfs_prop_t (usr/src/uts/common/sys/fs/zfs.h).

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
type PropertyKind string

// The kinds. PropertyWord has one of a list of words.
const (
	PropertyNumber PropertyKind = "number"
	PropertyText   PropertyKind = "text"
	PropertyWord   PropertyKind = "word"
)

// PropertyRule says who sets a property and where its value comes from.
type PropertyRule string

// The rules: those of zfs_prop.h, and one of what has its default here.
const (
	PropReadOnly       PropertyRule = "readonly" // computed
	PropInherit        PropertyRule = "inherit"  // set, or the parent's
	PropDefault        PropertyRule = "default"  // set, or the default; not inherited
	PropOnetime        PropertyRule = "onetime"  // set at creation only; inherited
	PropOnetimeDefault PropertyRule = "oncedef"  // set at creation only; not inherited
	PropConstant       PropertyRule = "constant" // setting it is not simulated
)

// DatasetProperty describes a native property.
type DatasetProperty struct {
	Name    string
	Kind    PropertyKind
	Rule    PropertyRule
	Types   DatasetTypes
	Default string   // as zfs get -p prints it
	Words   []string // of PropertyWord
}

// ReadOnly says that zfs set refuses it, also when it could be set at creation.
func (p *DatasetProperty) ReadOnly() bool { return p.Rule != PropInherit && p.Rule != PropDefault }

// Inheritable says that children have it from their parents.
func (p *DatasetProperty) Inheritable() bool { return p.Rule == PropInherit || p.Rule == PropOnetime }

// FindDatasetProperty is the native property of this name, nil if there is none or
// it is not simulated.
func FindDatasetProperty(name string) *DatasetProperty {
	if p := datasetTable()[name]; p != nil && p.Rule != "" {
		return p
	}
	return nil
}

// datasetProperties has a line for each native property: name, and of those that
// are simulated kind, rule, types (file system, volume, snapshot), default, and the
// words if there is a list of them.
//
//go:embed properties.txt
var datasetProperties string

var datasetTable = sync.OnceValue(func() map[string]*DatasetProperty {
	table := map[string]*DatasetProperty{}
	for line := range strings.Lines(datasetProperties) {
		w := strings.Fields(line)
		if len(w) == 1 {
			table[w[0]] = &DatasetProperty{Name: w[0]}
			continue
		}
		p := &DatasetProperty{Name: w[0], Kind: PropertyKind(w[1]), Rule: PropertyRule(w[2]), Default: strings.TrimPrefix(w[4], "-")}
		for _, t := range w[3] {
			p.Types |= map[rune]DatasetTypes{'f': TypeFilesystem, 'v': TypeVolume, 's': TypeSnapshot}[t]
		}
		if p.Kind == PropertyWord {
			p.Words = strings.Split(strings.Join(w[5:], " "), " | ")
		}
		table[p.Name] = p
	}
	return table
})

// UserProperty says whether a name is one of a user's property: it has a colon
// and only lower-case letters, digits and ":-_." (zfs_prop_user).
func UserProperty(name string) bool {
	return strings.Contains(name, ":") && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789:-_.") == ""
}
