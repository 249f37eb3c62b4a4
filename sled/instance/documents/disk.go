package documents

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zfs"
)

// Disk is a disk in a document: one that exists, by its path, or one that is made with the
// instance, of an image, a size or both.
type Disk struct {
	Path     string `json:"path,omitempty" toml:"path"`
	ReadOnly bool   `json:"readonly,omitempty" toml:"readonly"`
	Image    string `json:"image,omitempty" toml:"image"`
	Size     any    `json:"size,omitempty" toml:"size"`             // "20G", or a number of bytes
	Block    any    `json:"block_size,omitempty" toml:"block_size"` // "8K", or a number of bytes
	Pool     string `json:"pool,omitempty" toml:"pool"`
	Thin     bool   `json:"thin,omitempty" toml:"thin"`
	Follows  bool   `json:"delete_with_instance,omitempty" toml:"delete_with_instance"`
}

// DisksOf are disks as a document has them; nil: it does not speak of them.
func DisksOf(disks []record.Disk) []Disk {
	if disks == nil {
		return nil
	}
	all := make([]Disk, 0, len(disks))
	for _, d := range disks {
		one := Disk{Path: d.Path, ReadOnly: d.ReadOnly}
		if n := d.New; n != nil {
			one.Image, one.Pool, one.Thin, one.Follows = n.Image, n.Pool, n.Thin, n.Follows
			if n.Size != 0 {
				one.Size = n.Size
			}
			if n.Block != 0 {
				one.Block = n.Block
			}
		}
		all = append(all, one)
	}
	return all
}

// read is the disk that is meant.
func (d Disk) read(parseSize func(string) (uint64, error)) (record.Disk, error) {
	made := Disk{Image: d.Image, Size: d.Size, Block: d.Block, Pool: d.Pool, Thin: d.Thin, Follows: d.Follows}
	switch {
	case d.Path != "" && made == Disk{}:
		return record.Disk{Path: d.Path, ReadOnly: d.ReadOnly}.Normal()
	case d.Path != "":
		return record.Disk{}, errors.New("want path for a disk that exists, or image, size or both for one that is made, not both")
	case d.Image == "" && d.Size == nil:
		return record.Disk{}, errors.New("want path for a disk that exists, or image, size or both for one that is made")
	case d.ReadOnly:
		return record.Disk{}, errors.New("want no readonly with image or size: the guest is to write to it")
	}
	n := record.NewDisk{Image: d.Image, Pool: d.Pool, Thin: d.Thin, Follows: d.Follows}
	for _, size := range []struct {
		key   string
		says  any
		is    *uint64
		least uint64
		want  string
	}{
		{"size", d.Size, &n.Size, record.LeastDisk, `1M or more, as "20G"`},
		{"block_size", d.Block, &n.Block, zfs.LeastBlock, `512 or more, as "8K"`},
	} {
		if size.says == nil {
			continue
		}
		var err error
		if *size.is, err = readSize(size.says, parseSize); err != nil {
			return record.Disk{}, fmt.Errorf("%s: %w", size.key, err)
		}
		if *size.is < size.least {
			return record.Disk{}, fmt.Errorf("%s: %d bytes: want %s", size.key, *size.is, size.want)
		}
	}
	return record.Disk{New: &n}, nil
}

// readSize is a number of bytes, or a text as "4G".
func readSize(says any, parseSize func(string) (uint64, error)) (uint64, error) {
	switch v := says.(type) {
	case string:
		return parseSize(v)
	case int64:
		if v < 0 {
			return 0, fmt.Errorf("%d is not a size", v)
		}
		return uint64(v), nil
	case json.Number:
		n, err := strconv.ParseUint(v.String(), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s is not a size", v)
		}
		return n, nil
	}
	return 0, fmt.Errorf("%v is not a size, as \"4G\"", says)
}
