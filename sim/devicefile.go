package sim

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// The disks as devices below /dev/dsk and /dev/rdsk. What is read from one is
// what a disk with its label would give: zeros where nobody has written. Nothing
// can be written to one here but by zpool.

// deviceMode is the type of a disk's node, 0 for what is none.
func deviceMode(full string) fs.FileMode {
	switch full[:strings.LastIndexByte(full, '/')] {
	case "/dev/dsk":
		return fs.ModeDevice | 0o640
	case "/dev/rdsk":
		return fs.ModeDevice | fs.ModeCharDevice | 0o640
	}
	return 0
}

// openDevice opens a disk's node.
func (f *mountedFiles) openDevice(full string, flag int) (host.File, error) {
	d := &deviceFile{mounts: f.mounts, name: full}
	err := d.look(func(tx *world.Tx, device zfs.Device) error {
		d.size = zfs.DeviceSize(tx, device)
		return nil
	})
	if err == nil && flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		err = syscall.EROFS
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: full, Err: err}
	}
	return d, nil
}

// statDevice is Stat of a disk's node.
func (f *mountedFiles) statDevice(full string, mode fs.FileMode) (host.Info, error) {
	err := f.mounts.world.View(context.Background(), func(tx *world.Tx) error {
		if _, ok := zfs.FindDevice(tx, full); !ok {
			return &fs.PathError{Op: "stat", Path: full, Err: syscall.ENOENT}
		}
		return nil
	})
	return host.Info{Name: path.Base(full), Mode: mode, Device: 1}, err
}

// readDevices lists the nodes of the disks that are there.
func (f *mountedFiles) readDevices(mode fs.FileMode) []host.Info {
	var infos []host.Info
	_ = f.mounts.world.View(context.Background(), func(tx *world.Tx) error {
		for _, d := range tx.State.Disks {
			for _, m := range zfs.Minors() {
				if !d.Gone {
					infos = append(infos, host.Info{Name: d.Name + m.Suffix, Mode: mode, Device: 1})
				}
			}
		}
		return nil
	})
	slices.SortFunc(infos, func(a, b host.Info) int { return strings.Compare(a.Name, b.Name) })
	return infos
}

// deviceFile is an open disk.
type deviceFile struct {
	mounts *mountTable
	name   string
	size   int64
	at     int64
}

// look finds the device again: it may have gone.
func (d *deviceFile) look(fn func(*world.Tx, zfs.Device) error) error {
	return d.mounts.world.View(context.Background(), func(tx *world.Tx) error {
		device, err := zfs.OpenDevice(tx, d.name)
		if err != nil {
			return err
		}
		return fn(tx, device)
	})
}

func (d *deviceFile) Read(p []byte) (int, error) {
	n, err := d.ReadAt(p, d.at)
	d.at += int64(n)
	return n, err
}

func (d *deviceFile) ReadAt(p []byte, offset int64) (int, error) {
	if offset >= d.size {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), d.size-offset))
	err := d.look(func(tx *world.Tx, device zfs.Device) error { return zfs.ReadDevice(tx, device, p[:n], offset) })
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENXIO):
		err = syscall.EIO // It has gone since it was opened.
	case err == nil && n < len(p):
		return n, io.EOF
	}
	if err != nil {
		return 0, &fs.PathError{Op: "read", Path: d.name, Err: err}
	}
	return n, nil
}

func (d *deviceFile) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: d.name, Err: syscall.EBADF}
}

func (d *deviceFile) WriteAt([]byte, int64) (int, error) { return d.Write(nil) }

func (d *deviceFile) Sync() error  { return nil }
func (d *deviceFile) Close() error { return nil }

func (d *deviceFile) Stat() (host.Info, error) {
	return host.Info{Name: path.Base(d.name), Mode: deviceMode(d.name), Device: 1}, nil
}
