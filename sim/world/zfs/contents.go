package zfs

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
)

// How contents are copied. A file system has a directory of its own. So has a snapshot in
// memory, where files share what they hold until one of them is changed. On a real file
// system the contents of a file system's snapshot are one file, an archive of tar(1): nobody
// changes them, and to make and remove a directory takes longer there than all else that a
// command does. A volume is a file that may be long and empty, and is never packed.

// copyContents gives a new dataset the contents of another, which may be
// mounted. What is mounted below it does not belong to it.
//
// Guess boot-environment-snapshots-are-empty: snapshots of the boot environment hold nothing here.
// Check: nothing: no part of sledctl looks into one
func copyContents(tx *world.Tx, from, to *world.Dataset) error {
	source := from.Tree
	if from.Mounted != "" {
		source = from.Mounted
	}
	if source == "" || source == "/" {
		return nil
	}
	info, err := tx.Files.Stat(source)
	if err != nil {
		return unless(err, fs.ErrNotExist)
	}
	if info.Mode.IsDir() {
		if entries, err := tx.Files.ReadDir(source); err != nil || len(entries) == 0 {
			return unless(err, fs.ErrNotExist)
		}
	}
	tx.TouchDataset(to.Name)
	to.Immutable = slices.Clone(from.Immutable)
	return inTurn(func() error { return ensureTree(tx, to) }, func() error {
		switch {
		case !info.Mode.IsDir():
			return unpack(tx.Files, source, to.Tree)
		case packs(tx, to):
			return pack(tx, from, to.Tree)
		}
		return copyTo(tx, from, to.Tree)
	})
}

// copyTo copies the contents of a dataset, mounted or not, to where nothing is, or an empty directory.
func copyTo(tx *world.Tx, d *world.Dataset, to string) error {
	source, covered := whereOf(tx, d)
	return copyWhole(tx.Files, source, to, covered)
}

// whereOf is where the contents of a dataset lie, and of the directories in it that something is
// mounted on, where what they cover does.
func whereOf(tx *world.Tx, d *world.Dataset) (source string, covered map[string]string) {
	if d.Mounted == "" {
		return d.Tree, nil
	}
	covered = map[string]string{}
	for _, o := range mountsBelow(tx, d.Mounted) {
		covered[o.Mounted] = coveredOf(id(o))
	}
	return d.Mounted, covered
}

// copyWhole copies contents, packed or not.
func copyWhole(files host.Files, from, to string, covered map[string]string) error {
	info, err := files.Stat(from)
	if err == nil && !info.Mode.IsDir() {
		return copyFile(files, from, to, info)
	}
	return inTurn(
		func() error { return err },
		func() error { return host.MkdirAll(files, to, 0o755) },
		func() error { return copyTree(files, from, to, covered) },
	)
}

// copyTree copies what is in a directory to another that is there. A directory
// that something is mounted on is copied as it is below the mount.
func copyTree(files host.Files, from, to string, covered map[string]string) error {
	return walk(files, from, "", covered, func(name, source string, info host.Info) (err error) {
		target := path.Join(to, name)
		if !info.Mode.IsDir() {
			return copyFile(files, source, target, info)
		}
		if name != "" {
			err = files.Mkdir(target, 0o700)
		}
		return errors.Join(err, files.Chmod(target, info.Mode))
	})
}

// walk visits the directories and files below a directory, and first itself: by their names from its
// top, and where they lie.
func walk(files host.Files, from, name string, covered map[string]string, visit func(name, source string, info host.Info) error) error {
	if under, ok := covered[from]; ok {
		from = under
	}
	info, err := files.Stat(from)
	if err != nil {
		return err
	}
	if err := visit(name, from, info); err != nil {
		return err
	}
	entries, err := files.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		source, name := path.Join(from, e.Name), path.Join(name, e.Name)
		switch {
		case e.Mode.IsDir():
			err = walk(files, source, name, covered, visit)
		case e.Mode.IsRegular():
			err = visit(name, source, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// packs says whether the contents of a dataset are kept as one file.
func packs(tx *world.Tx, d *world.Dataset) bool {
	_, shares := tx.Files.(sharer)
	return !shares && Kind(d) == TypeSnapshot && d.Volsize == ""
}

// pack writes the contents of a dataset into an archive, in the place of an empty directory.
func pack(tx *world.Tx, d *world.Dataset, to string) error {
	var packed bytes.Buffer
	out := tar.NewWriter(&packed)
	source, covered := whereOf(tx, d)
	err := walk(tx.Files, source, "", covered, func(name, source string, info host.Info) (err error) {
		h := tar.Header{Typeflag: tar.TypeDir, Name: path.Join(".", name) + "/", Mode: int64(info.Mode.Perm())}
		var data []byte
		if !info.Mode.IsDir() {
			data, err = host.ReadFile(tx.Files, source)
			h.Typeflag, h.Name, h.Size = tar.TypeReg, name, int64(len(data))
		}
		if err == nil {
			err = out.WriteHeader(&h)
		}
		if err == nil {
			_, err = out.Write(data)
		}
		return err
	})
	return inTurn(
		func() error { return errors.Join(err, out.Close()) },
		func() error { return tx.Files.Remove(to) },
		func() error { return world.Put(tx.Files, to, packed.Bytes(), 0o600) },
	)
}

// unpack copies what is in an archive to a directory that is there.
func unpack(files host.Files, from, to string) error {
	packed, err := host.ReadFile(files, from)
	if err != nil {
		return err
	}
	in := tar.NewReader(bytes.NewReader(packed))
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		target, mode := path.Join(to, h.Name), h.FileInfo().Mode()
		if !mode.IsDir() {
			var data []byte
			if data, err = io.ReadAll(in); err == nil {
				err = world.Put(files, target, data, mode.Perm())
			}
		} else {
			if target != to {
				err = files.Mkdir(target, 0o700)
			}
			err = errors.Join(err, files.Chmod(target, mode.Perm()))
		}
		if err != nil {
			return err
		}
	}
}

// sharer are files that can share their contents until one of them is changed. Its errors are
// those of Open, and errors.ErrUnsupported.
type sharer interface {
	ShareFile(from, to string, mode fs.FileMode) error
}

// copyFile copies a file. The bytes of a volume are as long as it is, and mostly zeros: where
// there are none, none are written.
func copyFile(files host.Files, from, to string, is host.Info) error {
	if s, can := files.(sharer); can {
		if err := s.ShareFile(from, to, is.Mode); !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	if path.Base(from) != volumeFile {
		data, err := host.ReadFile(files, from)
		if err != nil {
			return err
		}
		return world.Put(files, to, data, is.Mode)
	}
	if err := world.Put(files, to, nil, is.Mode); err != nil {
		return err
	}
	in, err := files.Open(from, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := files.Open(to, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	buffer, zeros := make([]byte, 1<<20), make([]byte, 1<<20)
	for at := int64(0); at < is.Size; at += int64(len(buffer)) {
		n, err := in.ReadAt(buffer, at)
		if err == nil || errors.Is(err, io.EOF) {
			err = nil
			if !bytes.Equal(buffer[:n], zeros[:n]) || at+int64(n) == is.Size {
				_, err = out.WriteAt(buffer[:n], at)
			}
		}
		if err != nil {
			return errors.Join(err, out.Close())
		}
	}
	return out.Close()
}
