package zfs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host/fault"
)

// NameMax is the longest name of a dataset in bytes, snapshot included:
// ZFS_MAX_DATASET_NAME_LEN of usr/src/uts/common/sys/fs/zfs.h without its NUL.
const NameMax = 255

// ValueMax is the longest value of a property in bytes: ZAP_MAXVALUELEN of
// usr/src/uts/common/sys/fs/zfs.h without its NUL.
const ValueMax = 8191

// NameError is a name that a dataset, snapshot or property cannot have.
type NameError struct {
	What   string // "dataset", "snapshot", "property"
	Name   string
	Reason string
}

// Error names the name and the rule.
func (e *NameError) Error() string { return fmt.Sprintf("%s name %q: %s", e.What, e.Name, e.Reason) }

func (*NameError) Kind() fault.Kind { return fault.Failed }

// ValidateName says whether a file system or volume may have this name: at most
// 255 bytes; parts between slashes of letters, digits, '-', '_', '.', ':' and
// blank, neither empty nor "." nor ".."; the first one, the pool's, begins with
// a letter (dataset_namecheck and pool_namecheck of
// usr/src/common/zfs/zfs_namecheck.c). The error is a *NameError.
func ValidateName(s string) error {
	if reason := badDataset(s); reason != "" {
		return &NameError{What: "dataset", Name: s, Reason: reason}
	}
	return nil
}

// ValidateSnapshotName says whether a snapshot may have this name, which is
// DATASET@SNAPSHOT. zfs destroy would take DATASET@A,B and DATASET@A%B for
// several. The error is a *NameError.
func ValidateSnapshotName(s string) error {
	dataset, snapshot, found := strings.Cut(s, "@")
	reason := ""
	switch {
	case !found:
		reason = "has no @"
	case len(s) > NameMax:
		reason = tooLong(s, NameMax)
	case badDataset(dataset) != "":
		reason = "the dataset's part: " + badDataset(dataset)
	default:
		reason = badPart(snapshot)
	}
	if reason != "" {
		return &NameError{What: "snapshot", Name: s, Reason: reason}
	}
	return nil
}

// badDataset is the reason why a name is none; empty if it is one.
func badDataset(s string) string {
	switch {
	case s == "":
		return "empty"
	case len(s) > NameMax:
		return tooLong(s, NameMax)
	case s[0] == '/':
		return "begins with a slash: it is no path"
	}
	for part := range strings.SplitSeq(s, "/") {
		if reason := badPart(part); reason != "" {
			return reason
		}
	}
	if c := s[0] | 0x20; c < 'a' || c > 'z' {
		return "must begin with a letter"
	}
	return ""
}

func badPart(s string) string {
	switch s {
	case "":
		return "a part is empty"
	case ".", "..":
		return fmt.Sprintf("a part is %q", s)
	}
	for _, r := range s {
		if !alphanumeric(r) && !strings.ContainsRune("-_.: ", r) {
			return fmt.Sprintf("%q is not allowed, only letters, digits, '-', '_', '.', ':' and blanks", r)
		}
	}
	return ""
}

// validate says whether the property can be given to zfs, and its value read
// again from a listing.
func (p Property) validate() error {
	if err := validateProperty(p.Name); err != nil {
		return err
	}
	if len(p.Value) > ValueMax {
		return fmt.Errorf("value of property %s: %s", p.Name, tooLong(p.Value, ValueMax))
	}
	if i := strings.IndexFunc(p.Value, func(r rune) bool { return r < ' ' || r == 0x7f }); i >= 0 {
		return fmt.Errorf("value of property %s: a control character: listings could not be read", p.Name)
	}
	return nil
}

// validateProperty accepts names of native properties by their shape, and user
// properties: at most 255 bytes of lower case letters, digits, ':', '.', '-' and
// '_', a ':' among them (zfs_prop_user of usr/src/common/zfs/zfs_prop.c,
// zfs_valid_proplist of libzfs_dataset.c).
func validateProperty(s string) error {
	also := "@_-"
	if userProperty(s) {
		also = ":.-_"
	}
	reason := ""
	switch {
	case s == "":
		reason = "empty"
	case s[0] == '-':
		reason = "zfs would take it for an option"
	case len(s) > NameMax:
		reason = tooLong(s, NameMax)
	default:
		for _, r := range s {
			if !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune(also, r)) {
				reason = fmt.Sprintf("%q is not allowed", r)
				break
			}
		}
	}
	if reason != "" {
		return &NameError{What: "property", Name: s, Reason: reason}
	}
	return nil
}

// validateProperties looks at each, and for one that is there twice.
func validateProperties(properties []Property) error {
	for i, p := range properties {
		if err := p.validate(); err != nil {
			return err
		}
		if slices.ContainsFunc(properties[:i], func(q Property) bool { return q.Name == p.Name }) {
			return &NameError{What: "property", Name: p.Name, Reason: "is given twice"}
		}
	}
	return nil
}

func userProperty(name string) bool { return strings.Contains(name, ":") }

func tooLong(s string, most int) string {
	return fmt.Sprintf("%d bytes, at most %d are allowed", len(s), most)
}

func alphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}
