package inventory

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zfs"
)

const (
	// Homes is the part that lists plain directories below the directories in
	// which zones lie. A creation of a dataset that fails may leave one, and no
	// listing of zfs shows it.
	Homes Part = "directories of zones"
	// Entries is the part that lists what lies in Want.Directories.
	Entries Part = "files"
)

// Home is a plain directory, no dataset, where a zone would lie.
type Home struct {
	Path  string
	Inode uint64
	// Holds is the first thing found in it that is no directory, or that is
	// mounted there; empty: it holds directories, if anything.
	Holds string
}

// Entry is a file in one of Want.Directories.
type Entry struct {
	Path string
	host.Info
}

// Homes lists the plain directories below the zones' parents.
func (inv *Inventory) Homes() ([]Home, error) { return inv.homes, inv.Know(Homes) }

// Entries lists what lies in Want.Directories. A missing directory
// holds nothing.
func (inv *Inventory) Entries() ([]Entry, error) { return inv.entries, inv.Know(Entries) }

func lookEntries(f host.Files, directories []string) ([]Entry, error) {
	var all []Entry
	for _, dir := range directories {
		infos, err := f.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, info := range infos {
			all = append(all, Entry{Path: path.Join(dir, info.Name), Info: info})
		}
	}
	return all, nil
}

// lookHomes reads the directories in which the zones of these pools lie, where
// their dataset is mounted: what is under a mountpoint is no zone's. What is
// mounted is no plain directory: its device is not its parent's.
func lookHomes(f host.Files, pools []zfs.Pool) ([]Home, error) {
	var homes []Home
	for _, name := range ZonePools(pools) {
		parent, _ := naming.ZoneParent(name)
		own, err := f.Stat(parent.Mountpoint)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if above, err := f.Stat(path.Dir(parent.Mountpoint)); err != nil || above.Device == own.Device {
			continue
		}
		infos, err := f.ReadDir(parent.Mountpoint)
		if err != nil {
			return nil, err
		}
		for _, info := range infos {
			if !info.Mode.IsDir() || info.Device != own.Device {
				continue
			}
			h := Home{Path: path.Join(parent.Mountpoint, info.Name), Inode: info.Inode}
			if h.Holds, err = firstIn(f, h.Path, own.Device, homeDepth); err != nil {
				return nil, err
			}
			homes = append(homes, h)
		}
	}
	return homes, nil
}

// homeDepth is how deep a plain directory is looked into. What lies deeper
// counts as held: mountpoints of a zone's own lie at most this deep.
const homeDepth = 4

// firstIn is the first thing in a directory that is not a directory of the
// same file system.
func firstIn(f host.Files, dir string, device uint64, depth int) (string, error) {
	infos, err := f.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil // gone since
	}
	if err != nil {
		return "", fmt.Errorf("look into %s: %w", dir, err)
	}
	for _, info := range infos {
		name := path.Join(dir, info.Name)
		if !info.Mode.IsDir() || info.Device != device || depth == 0 {
			return name, nil
		}
		if held, err := firstIn(f, name, device, depth-1); held != "" || err != nil {
			return held, err
		}
	}
	return "", nil
}
