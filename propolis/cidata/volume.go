// Package cidata is the volume from which cloud-init's data source NoCloud reads its data: a FAT12 file system with the label cidata, as Nexus builds it
// (nexus/src/cidata.rs of oxidecomputer/omicron), and its files.
//
// Build writes one in memory, the same bytes from the same files; Read takes one apart.
// What stands in the files is the caller's.
package cidata

import (
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"github.com/diskfs/go-diskfs/filesystem/fat12"

	"github.com/sledctl/sledctl/host/fault"
)

// Label is how NoCloud knows the volume
// (cloudinit/sources/DataSourceNoCloud.py of canonical/cloud-init).
const Label = "cidata"

// Files are the files of a volume.
type Files struct {
	MetaData      []byte // YAML
	UserData      []byte // whatever cloud-init takes; empty: an empty #cloud-config
	NetworkConfig []byte // YAML; empty: there is no such file
}

// NoUserData is user-data that says nothing.
const NoUserData = "#cloud-config\n"

// The names of the files.
const (
	metaData      = "meta-data"
	userData      = "user-data"
	networkConfig = "network-config"
)

// named lists the files by their names, in the order in which they are written.
func (f Files) named() []file {
	if len(f.UserData) == 0 { // without the file, NoCloud takes the volume for none
		f.UserData = []byte(NoUserData)
	}
	all := []file{{metaData, f.MetaData}, {userData, f.UserData}}
	if len(f.NetworkConfig) > 0 {
		all = append(all, file{networkConfig, f.NetworkConfig})
	}
	return all
}

type file struct {
	name string
	data []byte
}

// MaxSize bounds a volume, in bytes: it goes to Propolis in base64, in a request of at most
// 1 MiB together with the rest of the VM.
const MaxSize = 640 << 10

// TooLargeError is a volume that would not fit into a request.
type TooLargeError struct{ Size int }

// Error says both sizes.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the cloud-init data makes a volume of %d bytes: Propolis takes it within a request, at most %d", e.Size, MaxSize)
}

// Kind is that of what cannot be asked for.
func (*TooLargeError) Kind() fault.Kind { return fault.Usage }

// Hint says what would be right.
func (*TooLargeError) Hint() string {
	return "keep large files elsewhere, and have the user-data fetch them (#include URL)"
}

const (
	sector   = 512
	rootSize = 2 * 112 * 32 // bytes of the root directory, at most
	smallest = 64 << 10     // bytes; tools take a much smaller FAT file system for none
	granule  = 4096         // bytes; a volume is a multiple
)

// size is that of a volume for files: the boot sector, two file allocation tables of 12 bits
// for each sector, the root directory, and whole sectors of each file. The tables are reckoned
// for the whole volume, which is a few sectors too much.
func size(files []file) int {
	content := sector + rootSize
	for _, f := range files {
		content += (len(f.data) + sector - 1) / sector * sector
	}
	content += 2 * (content/sector*3/2 + sector)
	return max(smallest, (content+granule-1)/granule*granule)
}

// Build writes a volume. Its serial number tells it from others in the same guest. Errors:
// *TooLargeError.
func Build(f Files, serial uint32) ([]byte, error) {
	files := f.named()
	n := size(files)
	if n > MaxSize {
		return nil, &TooLargeError{n}
	}
	image := &memory{data: make([]byte, n)}
	volume, err := fat12.Create(image, int64(n), 0, sector, Label, true)
	if err == nil {
		err = volume.Chtimes("/"+Label, epoch(), epoch(), epoch())
	}
	for _, f := range files {
		if err == nil {
			err = write(volume, f)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("write the cloud-init data: %w", err)
	}
	binary.LittleEndian.PutUint32(image.data[serialAt:], serial)
	freeFirst(image.data)
	return image.data, nil
}

// Where the boot sector of FAT12 has what, in bytes.
const (
	bytesPerSectorAt = 0x0b
	reservedAt       = 0x0e // sectors before the first table
	tablesAt         = 0x10
	tableSizeAt      = 0x16 // in sectors
	serialAt         = 0x27
)

// freeFirst marks the first cluster as free in both tables: go-diskfs keeps it for the root
// directory, which FAT12 has elsewhere, so that fsck finds a cluster which no file has.
func freeFirst(image []byte) {
	for table := range int(image[tablesAt]) {
		at := sector * (int(image[reservedAt]) + table*int(image[tableSizeAt]))
		image[at+3], image[at+4] = 0, image[at+4]&0xf0 // cluster 2, the first, has the 12 bits behind two others
	}
}

// epoch is the time of all files: the first that FAT has. Another one would make another
// volume each time.
func epoch() time.Time { return time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC) }

func write(volume *fat12.FileSystem, f file) error {
	to, err := volume.OpenFile("/"+f.name, os.O_CREATE|os.O_RDWR)
	if err != nil {
		return err
	}
	if _, err := to.Write(f.data); err != nil {
		return err
	}
	return volume.Chtimes("/"+f.name, epoch(), epoch(), epoch())
}

// ErrNoVolume is what is no volume of cloud-init data as Build writes one.
var ErrNoVolume = fault.New(fault.Failed, "it is no FAT12 volume with cloud-init data")

// Read reads the files of a volume. Errors: ErrNoVolume.
func Read(image []byte) (Files, error) {
	if len(image) > MaxSize || !sound(image) {
		return Files{}, ErrNoVolume
	}
	volume, err := fat12.Read(&memory{data: image}, int64(len(image)), 0, sector)
	if err != nil {
		return Files{}, ErrNoVolume
	}
	var f Files
	for name, data := range map[string]*[]byte{metaData: &f.MetaData, userData: &f.UserData, networkConfig: &f.NetworkConfig} {
		if *data, err = volume.ReadFile(name); err != nil && name != networkConfig {
			return Files{}, ErrNoVolume
		}
	}
	return f, nil
}

// sound reports whether go-diskfs can be given a volume, which trusts what it reads: it has
// the sizes that Build gives it, and no chain of clusters is a ring.
func sound(image []byte) bool {
	if len(image) < smallest || binary.LittleEndian.Uint16(image[bytesPerSectorAt:]) != sector || image[bytesPerSectorAt+2] != 1 ||
		image[reservedAt] != 1 || image[tablesAt] != 2 {
		return false
	}
	size := int(image[tableSizeAt]) * sector
	if size == 0 || size > len(image)/3 {
		return false
	}
	table := image[sector : sector+size]
	next := func(cluster int) int { // two clusters share three bytes
		at := cluster * 3 / 2
		if at+1 >= len(table) {
			return 0
		}
		return int(binary.LittleEndian.Uint16(table[at:])) >> (4 * (cluster % 2)) & 0xfff
	}
	clusters := size * 2 / 3
	for first := 2; first < clusters; first++ {
		at := first
		for n := 0; at >= 2 && at < clusters; n++ {
			if n > clusters {
				return false
			}
			at = next(at)
		}
	}
	return true
}
