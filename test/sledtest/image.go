package sledtest

import (
	"context"
	"io/fs"
	"os"

	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
)

// AddToImage lets the system's image of the sled in a directory have the files below
// another directory, from its next boot on.
func AddToImage(ctx context.Context, dir, files string) error {
	s, err := sim.Open(dir)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.World().Update(ctx, func(tx *world.Tx) error {
		return fs.WalkDir(os.DirFS(files), ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := fs.ReadFile(os.DirFS(files), name)
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			tx.State.Image = append(tx.State.Image, "/"+name)
			return world.Put(tx.Files, "/"+name, data, info.Mode().Perm())
		})
	})
}
