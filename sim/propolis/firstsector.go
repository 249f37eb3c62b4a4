package propolis

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// sector is how much a guest reads of each disk, in bytes.
const sector = 512

// found are the lines of a boot log that tell what the first sectors of disks hold. Of a disk of
// zeros, there is none.
func (g guest) found(spec instanceSpec) (lines []string) {
	for _, key := range sortedKeys(spec.Components) {
		backend := spec.Components[key]
		if backend.Type != "file_storage_backend" {
			continue
		}
		first, zeros := make([]byte, sector), make([]byte, sector)
		switch g.read(backend.contents().File, first); {
		case bytes.Equal(first, zeros):
		case first[sector-2] == 0x55 && first[sector-1] == 0xaa:
			lines = append(lines, "[    0.900000] "+key+": it has a boot record")
		default:
			lines = append(lines, fmt.Sprintf("[    0.900000] %s: it has no boot record, and begins with %x", key, first[:8]))
		}
	}
	return lines
}

// read fills p from a disk. What cannot be read stays zeros: that was an error when it was opened.
func (g guest) read(name string, p []byte) {
	file := name
	if volume := zfs.VolumeAt(name); volume != "" {
		file, _, _ = zfs.OpenVolume(g.tx, volume, false)
	} else if i := slices.IndexFunc(g.tx.State.Processes, func(p *world.Process) bool { return p.VM == g.vm }); i >= 0 && !strings.HasPrefix(name, "/dev/") {
		file = g.tx.ZonePathOf(g.tx.State.Processes[i].Zone, name)
	}
	if file == "" {
		return
	}
	if f, err := g.tx.Files.Open(file, os.O_RDONLY, 0); err == nil {
		defer f.Close()
		_, _ = f.ReadAt(p, 0)
	}
}
