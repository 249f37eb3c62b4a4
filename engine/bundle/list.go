package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// List lists the bundles in some places, the oldest first. What else lies there
// is passed by.
func List(f host.Files, places []Place) ([]Bundle, error) {
	var all []Bundle
	for _, p := range places {
		some, err := listIn(f, p.Dir)
		if err != nil {
			return nil, fmt.Errorf("list bundles: %w", err)
		}
		all = append(all, some...)
	}
	oldestFirst(all)
	return all, nil
}

func oldestFirst(all []Bundle) {
	slices.SortStableFunc(all, func(a, b Bundle) int { return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.ID, b.ID)) })
}

func listIn(f host.Files, place string) ([]Bundle, error) {
	top := path.Join(place, topDir)
	zones, err := readDir(f, top)
	if err != nil {
		return nil, err
	}
	var all []Bundle
	for _, z := range zones {
		if !z.Mode.IsDir() {
			continue
		}
		files, err := readDir(f, path.Join(top, z.Name))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			id, ok := strings.CutSuffix(file.Name, suffix)
			at, cause, read := parseID(id)
			if ok && read && file.Mode.IsRegular() {
				all = append(all, Bundle{ID: id, Zone: z.Name, Cause: cause, Time: at, Size: file.Size, Path: path.Join(top, z.Name, file.Name)})
			}
		}
	}
	return all, nil
}

// readDir is ReadDir, except that a missing directory is empty.
func readDir(f host.Files, dir string) ([]host.Info, error) {
	infos, err := f.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return infos, err
}

// Newest is the bundle that an id names, or the newest of a zone; false if
// there is none.
func Newest(all []Bundle, idOrZone string) (Bundle, bool) {
	for _, b := range slices.Backward(all) {
		if b.ID == idOrZone || b.Zone == idOrZone {
			return b, true
		}
	}
	return Bundle{}, false
}
