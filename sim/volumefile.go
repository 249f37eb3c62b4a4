package sim

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// volumeFile is an open volume: zvol_read and zvol_write of
// usr/src/uts/common/fs/zfs/zvol.c, which take any offset and length within the
// volume, and end at its end.
type volumeFile struct {
	bytes host.File // nil: nobody has written to it
	name  string
	write bool
	size  int64
	at    int64
	wrote uint64               // bytes
	tell  func(n uint64) error // that as much was written
}

// openVolume opens the device of a volume.
func (f *mountedFiles) openVolume(full, volume string, flag int) (host.File, error) {
	tell := func(n uint64) error {
		return f.mounts.world.Update(context.Background(), func(tx *world.Tx) error { return zfs.Wrote(tx, volume, n) })
	}
	v := &volumeFile{name: full, tell: tell, write: flag&(os.O_WRONLY|os.O_RDWR) != 0}
	look := f.mounts.world.View
	if v.write {
		look = f.mounts.world.Update
	}
	err := look(context.Background(), func(tx *world.Tx) error {
		file, size, err := zfs.OpenVolume(tx, volume, v.write)
		if err == nil && file != "" {
			mode := os.O_RDONLY
			if v.write {
				mode = os.O_RDWR
			}
			v.bytes, err = tx.Files.Open(file, mode, 0)
		}
		v.size = size
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: full, Err: err}
	}
	return v, nil
}

func (v *volumeFile) Read(p []byte) (int, error) {
	n, err := v.ReadAt(p, v.at)
	v.at += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

func (v *volumeFile) ReadAt(p []byte, at int64) (int, error) {
	n := int(min(int64(len(p)), max(0, v.size-at)))
	clear(p[:n])
	if v.bytes != nil {
		if _, err := v.bytes.ReadAt(p[:n], at); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (v *volumeFile) Write(p []byte) (int, error) {
	n, err := v.WriteAt(p, v.at)
	v.at += int64(n)
	return n, err
}

func (v *volumeFile) WriteAt(p []byte, at int64) (int, error) {
	switch {
	case !v.write:
		return 0, &fs.PathError{Op: "write", Path: v.name, Err: syscall.EBADF}
	case at < 0 || at >= v.size:
		return 0, &fs.PathError{Op: "write", Path: v.name, Err: syscall.EIO}
	}
	n, err := v.bytes.WriteAt(p[:min(int64(len(p)), v.size-at)], at)
	v.wrote += uint64(n)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return n, err
}

func (v *volumeFile) Sync() error { return v.each(host.File.Sync) }

// Close counts what was written: what is written over counts again, which nobody does here.
func (v *volumeFile) Close() error {
	err := v.each(host.File.Close)
	if v.wrote > 0 {
		err = errors.Join(err, v.tell(v.wrote))
	}
	return err
}

func (v *volumeFile) each(do func(host.File) error) error {
	if v.bytes == nil {
		return nil
	}
	return do(v.bytes)
}

func (v *volumeFile) Stat() (host.Info, error) {
	return host.Info{Name: path.Base(v.name), Mode: fs.ModeDevice | fs.ModeCharDevice | 0o600, Size: 0, Device: 1}, nil
}
