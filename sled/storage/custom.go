package storage

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zfs"
)

// CustomDataset is a dataset that an operator wants on every pool of a kind.
type CustomDataset struct {
	On         naming.PoolKind // on which pools
	Pool       string          // on this one of them; empty: on each
	Name       string          // below the pool: images, crypt/images
	Mountpoint string          // empty: where its name says
	Properties []zfs.Property
}

// CustomDatasetError is a description of a dataset that cannot be understood.
type CustomDatasetError struct{ Text, Problem, Want string }

// Error says what would be right.
func (e *CustomDatasetError) Error() string {
	return fmt.Sprintf("dataset %q: %s: want %s", e.Text, e.Problem, e.Want)
}

func (*CustomDatasetError) Kind() fault.Kind { return fault.Usage }

// ParseCustomDataset reads u2:NAME or m2:NAME, followed by PROPERTY=VALUE as often as
// needed, with blanks between them: quota, reservation (bytes, or with a unit), compression, canmount,
// mountpoint, and uuid, which tells it from another dataset of the same name.
// size reads a size with a unit. Errors: *CustomDatasetError.
func ParseCustomDataset(text string, size func(string) (uint64, error)) (CustomDataset, error) {
	bad := func(problem, want string) (CustomDataset, error) {
		return CustomDataset{}, &CustomDatasetError{text, problem, want}
	}
	words := strings.Fields(text)
	if len(words) == 0 {
		return bad("empty", "u2:NAME or m2:NAME")
	}
	on, name, _ := strings.Cut(words[0], ":")
	o := CustomDataset{Name: name, On: map[string]naming.PoolKind{"u2": naming.ExternalPool, "m2": naming.InternalPool}[on]}
	if o.On == "" {
		return bad(fmt.Sprintf("no kind of disk %q", on), "u2:NAME or m2:NAME")
	}
	if err := zfs.ValidateName("p/" + name); err != nil || path.Clean(name) != name {
		return bad(fmt.Sprintf("no dataset can have the name %q", name), "letters, digits, and -_.: between slashes")
	}
	for _, word := range words[1:] {
		property, value, _ := strings.Cut(word, "=")
		switch property {
		case "mountpoint":
			if !path.IsAbs(value) || path.Clean(value) != value {
				return bad(fmt.Sprintf("mountpoint %q", value), "an absolute name: /a/b")
			}
			o.Mountpoint = value
			continue
		case "quota", "reservation":
			n, err := size(value)
			if err != nil {
				return bad(fmt.Sprintf("%s %q", property, value), "a size: 10G")
			}
			value = strconv.FormatUint(n, 10)
		case "canmount":
			if !slices.Contains([]string{"on", "off", "noauto"}, value) {
				return bad(fmt.Sprintf("canmount %q", value), "on, off or noauto")
			}
		case "compression":
			if value == "" {
				return bad("compression is empty", "off, on, lz4, gzip-9 or what else zfs(8) knows")
			}
		case "uuid":
			id, err := uuid.Parse(value)
			if err != nil {
				return bad(fmt.Sprintf("uuid %q", value), "a UUID")
			}
			property, value = PropertyUUID, id.String()
		default:
			return bad(fmt.Sprintf("no property %q", property), "quota, reservation, compression, canmount, mountpoint or uuid")
		}
		o.Properties = append(o.Properties, zfs.Property{Name: property, Value: value})
	}
	return o, nil
}

// PropertyUUID is what the sled agent marks datasets with; another one's is
// never overwritten (omicron, illumos-utils/src/zfs.rs).
const PropertyUUID = "oxide:uuid"
