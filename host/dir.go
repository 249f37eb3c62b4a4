package host

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/sledctl/sledctl/host/lock"
)

// Dir is the real file system below root ("" is "/"). Names are joined to root
// without resolving links, so an absolute link below another root than "/"
// leads out of it; a view from In never leaves its directory.
//
// Modes are exact: the umask does not apply to Mkdir, nor to a file that Open
// makes with O_EXCL.
func Dir(root string) Files {
	if root == "" {
		root = "/"
	}
	return &dirFiles{
		enter: func() (tree, error) { return plainTree(root), nil },
		full:  "/",
		locks: &lockTable{fair: map[string]*lock.Fair{}},
	}
}

// dirFiles is Dir and its views. A view opens its directory again for each
// call: a descriptor that stayed open would keep the file system under it from
// being unmounted.
type dirFiles struct {
	enter    func() (tree, error)
	full     string // "/", or where the view begins, for messages and lock names
	confined bool
	locks    *lockTable
}

var _ Files = (*dirFiles)(nil)

// name is the name from the top, for messages and locks.
func (d *dirFiles) name(name string) string { return path.Join(d.full, path.Clean("/"+name)) }

// rel turns an absolute name into one relative to the tree. What ".." would
// lead above the top is cut off.
func rel(name string) string {
	return cmp.Or(strings.TrimPrefix(path.Clean("/"+name), "/"), ".")
}

// pathError puts the name that the caller knows into an error.
func (d *dirFiles) pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	} else if e, ok := errors.AsType[*os.LinkError](err); ok {
		err = e.Err
	}
	return &fs.PathError{Op: op, Path: d.name(name), Err: err}
}

// do runs one operation in the directory.
func (d *dirFiles) do(op, name string, work func(tree) error) error {
	t, err := d.enter()
	if err == nil {
		defer t.Close()
		err = work(t)
	}
	return d.pathError(op, name, err)
}

func (d *dirFiles) Open(name string, flag int, perm fs.FileMode) (File, error) {
	var file *os.File
	err := d.do("open", name, func(t tree) (err error) {
		// Without O_NONBLOCK a pipe that a guest made would hold us forever.
		file, err = t.OpenFile(rel(name), flag|syscall.O_NONBLOCK, perm)
		if err != nil {
			return err
		}
		if err := d.accept(file, flag, perm); err != nil {
			file.Close()
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &dirFile{File: file, name: path.Base(path.Clean("/" + name))}, nil
}

// accept refuses what is no file, and sets the mode of a new one.
func (d *dirFiles) accept(file *os.File, flag int, perm fs.FileMode) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return syscall.EISDIR
	case d.confined && !info.Mode().IsRegular():
		return syscall.EINVAL
	}
	made := os.O_CREATE | os.O_EXCL
	if flag&made == made && info.Mode().Perm() != perm.Perm() {
		return file.Chmod(perm.Perm())
	}
	return nil
}

func (d *dirFiles) Append(name string, data []byte) error {
	return d.do("append", name, func(t tree) error {
		file, err := t.OpenFile(rel(name), os.O_WRONLY|os.O_APPEND|syscall.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		_, err = file.Write(data)
		return errors.Join(err, file.Close())
	})
}

func (d *dirFiles) Rename(from, to string) error {
	return d.do("rename", from, func(t tree) error {
		if info, err := t.Lstat(rel(to)); err == nil && info.IsDir() {
			return syscall.EEXIST
		}
		return t.Rename(rel(from), rel(to))
	})
}

func (d *dirFiles) Remove(name string) error {
	return d.do("remove", name, func(t tree) error { return t.Remove(rel(name)) })
}

func (d *dirFiles) Mkdir(name string, perm fs.FileMode) error {
	return d.do("mkdir", name, func(t tree) error {
		if err := t.Mkdir(rel(name), perm.Perm()); err != nil {
			return err
		}
		info, err := t.Lstat(rel(name))
		if err != nil || info.Mode().Perm() == perm.Perm() {
			return err
		}
		return t.Chmod(rel(name), perm.Perm())
	})
}

func (d *dirFiles) Chmod(name string, mode fs.FileMode) error {
	return d.do("chmod", name, func(t tree) error { return t.Chmod(rel(name), mode.Perm()) })
}

func (d *dirFiles) Stat(name string) (Info, error) {
	var info Info
	err := d.do("stat", name, func(t tree) error {
		fi, err := t.Lstat(rel(name))
		if err == nil {
			info = infoOf(fi, baseOf(name))
		}
		return err
	})
	return info, err
}

// ReadDir looks at each entry through the tree, not through the directory's
// own name: that one could lead elsewhere by now.
func (d *dirFiles) ReadDir(name string) ([]Info, error) {
	var list []Info
	err := d.do("readdir", name, func(t tree) error {
		dir, err := t.OpenFile(rel(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer dir.Close()
		names, err := dir.Readdirnames(-1)
		if err != nil {
			return err
		}
		slices.Sort(names)
		list = make([]Info, 0, len(names))
		for _, n := range names {
			fi, err := t.Lstat(path.Join(rel(name), n))
			if errors.Is(err, fs.ErrNotExist) {
				continue // gone since
			}
			if err != nil {
				return err
			}
			list = append(list, infoOf(fi, n))
		}
		return nil
	})
	return list, err
}

func (d *dirFiles) Sync(name string) error    { return d.flush("sync", name, false) }
func (d *dirFiles) SyncDir(name string) error { return d.flush("syncdir", name, true) }

// Guess fsync-on-read-descriptor: a file or directory is flushed also through a descriptor that was
// opened for reading, as on Linux; fsync(3C) does not say otherwise.
// Check: `truss -t fdsync sledctl bootstrap`: no call fails
// State: settled by usr/src/uts/common/syscall/fdsync.c:52-75
func (d *dirFiles) flush(op, name string, dir bool) error {
	return d.do(op, name, func(t tree) error {
		file, err := t.OpenFile(rel(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer file.Close()
		info, err := file.Stat()
		switch {
		case err != nil:
			return err
		case dir && !info.IsDir():
			return syscall.ENOTDIR
		case !dir && info.IsDir():
			return syscall.EISDIR
		}
		return file.Sync()
	})
}

func (d *dirFiles) In(dir string) (Files, error) {
	view := &dirFiles{
		full:     d.name(dir),
		confined: true,
		locks:    d.locks,
		enter: func() (tree, error) {
			above, err := d.enter()
			if err != nil {
				return nil, err
			}
			defer above.Close()
			root, err := above.OpenRoot(rel(dir))
			if err == nil {
				return root, nil
			}
			if fi, lerr := above.Lstat(rel(dir)); lerr == nil && fi.Mode().IsRegular() {
				err = syscall.ENOTDIR // os has a text of its own for it
			}
			return nil, err
		},
	}
	return view, view.do("open", "/", func(tree) error { return nil })
}

// dirFile is an open file of Dir.
type dirFile struct {
	*os.File
	name string
}

func (f *dirFile) Stat() (Info, error) {
	fi, err := f.File.Stat()
	if err != nil {
		return Info{}, err
	}
	return infoOf(fi, f.name), nil
}

func infoOf(fi fs.FileInfo, name string) Info {
	info := Info{Name: name, Size: fi.Size(), Mode: fi.Mode(), Time: fi.ModTime()}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		info.Device, info.Inode = uint64(st.Dev), uint64(st.Ino)
	}
	return info
}

// baseOf is the last element of a name.
func baseOf(name string) string { return path.Base(path.Clean("/" + name)) }
