package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
)

// temporarySuffix ends the name of a file that is not finished. There is one
// such name for each file, so what a killed writer left is replaced by the
// next one, and nothing piles up.
const temporarySuffix = ".sledctl-new"

// Temporary is the name under which WriteFile writes a file before it is
// whole.
func Temporary(name string) string {
	return path.Join(path.Dir(name), "."+path.Base(name)+temporarySuffix)
}

// wholeFiles is a Files to which a file written whole, or a directory made
// with its parents, is one event: the traced one.
type wholeFiles interface {
	writeFile(name string, data []byte, perm fs.FileMode) error
	mkdirAll(name string, perm fs.FileMode) error
}

// WriteFile replaces a file: a reader, also after a power cut, finds the old
// contents or the new, and after WriteFile returned nil the new ones.
// Its mode is exactly perm. Two writers of one name must exclude each other,
// as those who hold the lock of what the file is about do.
func WriteFile(f Files, name string, data []byte, perm fs.FileMode) error {
	if w, ok := f.(wholeFiles); ok {
		return w.writeFile(name, data, perm)
	}
	return writeFile(f, name, data, perm)
}

// fileCopier is a Files to which a copied file is one event: the traced one.
type fileCopier interface {
	copyFile(from, to string, perm fs.FileMode) error
}

// CopyFile replaces the file to with the contents of from, as WriteFile does.
func CopyFile(f Files, from, to string, perm fs.FileMode) error {
	if c, ok := f.(fileCopier); ok {
		return c.copyFile(from, to, perm)
	}
	data, err := ReadFile(f, from)
	if err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	return WriteFile(f, to, data, perm)
}

func writeFile(f Files, name string, data []byte, perm fs.FileMode) error {
	temporary := Temporary(name)
	if err := writeNew(f, temporary, data, perm); err != nil {
		if !errors.Is(err, fs.ErrExist) {
			_ = f.Remove(temporary)
		}
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err := f.Rename(temporary, name); err != nil {
		_ = f.Remove(temporary)
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err := f.SyncDir(path.Dir(name)); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// writeNew writes and flushes a file that is new.
func writeNew(f Files, name string, data []byte, perm fs.FileMode) error {
	const flag = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	file, err := f.Open(name, flag, perm)
	if errors.Is(err, fs.ErrExist) {
		if err := f.Remove(name); err != nil {
			return err
		}
		file, err = f.Open(name, flag, perm)
	}
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}
