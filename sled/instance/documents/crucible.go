package documents

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sled/instance/record"
)

// Crucible is a volume in a Crucible in a document. The generation with which it is opened is not
// in it: the ledger counts it, or a fleet.
type Crucible struct {
	ID           string   `json:"id" toml:"id"`
	Targets      []string `json:"targets" toml:"targets"`
	Block        any      `json:"block_size" toml:"block_size"` // "4K", or a number of bytes
	ExtentBlocks uint64   `json:"blocks_per_extent" toml:"blocks_per_extent"`
	Extents      uint32   `json:"extents" toml:"extents"`
	ReadOnly     bool     `json:"readonly,omitempty" toml:"readonly"`
	Key          string   `json:"key,omitempty" toml:"key"`
	KeyFile      string   `json:"key_file,omitempty" toml:"key_file"`
	Above        uint64   `json:"above,omitempty" toml:"above"`
}

// CrucibleOf are disks as a document has them; nil: it does not speak of them.
func CrucibleOf(disks []record.CrucibleDisk) []Crucible {
	if disks == nil {
		return nil
	}
	all := make([]Crucible, 0, len(disks))
	for _, d := range disks {
		all = append(all, Crucible{
			ID: d.ID, Targets: d.Targets, Block: d.BlockSize, ExtentBlocks: d.ExtentBlocks, Extents: d.Extents,
			ReadOnly: d.ReadOnly, Key: d.Key, Above: d.Above,
		})
	}
	return all
}

// read is the disk that is meant.
func (c Crucible) read(parseSize func(string) (uint64, error)) (record.CrucibleDisk, error) {
	d := record.CrucibleDisk{
		ID: c.ID, Targets: c.Targets, ExtentBlocks: c.ExtentBlocks, Extents: c.Extents,
		ReadOnly: c.ReadOnly, Key: c.Key, KeyFile: c.KeyFile, Above: c.Above,
	}
	if c.Block == nil {
		return d, errors.New("block_size: want that with which the region was created")
	}
	if c.Key != "" && c.KeyFile != "" {
		return d, errors.New("want key or key_file, not both")
	}
	var err error
	if d.BlockSize, err = readSize(c.Block, parseSize); err != nil {
		return d, fmt.Errorf("block_size: %w", err)
	}
	return d, record.ValidateCrucible([]record.CrucibleDisk{d})
}

func hasKeys(disks []record.CrucibleDisk) bool {
	return slices.ContainsFunc(disks, func(d record.CrucibleDisk) bool { return d.Key != "" })
}

func writeCrucible(b *strings.Builder, disks []record.CrucibleDisk) {
	for _, d := range disks {
		fmt.Fprintf(b, "\n[[crucible]]\nid = %s\ntargets = [\"%s\"]\nblock_size = %d\nblocks_per_extent = %d\nextents = %d\n",
			quoted(d.ID), strings.Join(d.Targets, `", "`), d.BlockSize, d.ExtentBlocks, d.Extents)
		if d.ReadOnly {
			b.WriteString("readonly = true\n")
		}
		if d.Key != "" {
			fmt.Fprintf(b, "key = %s\n", quoted(d.Key))
		}
		if d.Above != 0 {
			fmt.Fprintf(b, "above = %d\n", d.Above)
		}
	}
}
