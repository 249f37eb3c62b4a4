package sim

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sledctl/sledctl/sim/world"
)

// InitWeb puts a web server near the sled, which is reached as HOST:PORT and has the files of a directory of this machine.
func (s *Sled) InitWeb(ctx context.Context, address, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: dir, Err: errors.New("it is no directory")}
	}
	if err != nil {
		return err
	}
	return s.world.Update(ctx, func(tx *world.Tx) error {
		tx.State.Web = &world.Web{Address: address, Dir: dir}
		return nil
	})
}
