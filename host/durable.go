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
	writeFile(name string, data []byte, perm fs.FileMode, how keeping) error
	mkdirAll(name string, perm fs.FileMode) error
}

// WriteFile replaces a file: a reader, also after a power cut, finds the old
// contents or the new, and after WriteFile returned nil the new ones.
// Its mode is exactly perm. Two writers of one name must exclude each other,
// as those who hold the lock of what the file is about do.
func WriteFile(f Files, name string, data []byte, perm fs.FileMode) error {
	return replace(f, name, data, perm, flushed)
}

// ReplaceFile is WriteFile for what no one reads after a power cut: that may leave the
// old contents.
func ReplaceFile(f Files, name string, data []byte, perm fs.FileMode) error {
	return replace(f, name, data, perm, unflushed)
}

// keeping says whether what is written waits for the disk.
type keeping bool

const (
	flushed   keeping = true
	unflushed keeping = false
)

func replace(f Files, name string, data []byte, perm fs.FileMode, how keeping) error {
	if w, ok := f.(wholeFiles); ok {
		return w.writeFile(name, data, perm, how)
	}
	return writeFile(f, name, data, perm, how)
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

func writeFile(f Files, name string, data []byte, perm fs.FileMode, how keeping) error {
	temporary := Temporary(name)
	if err := writeNew(f, temporary, data, perm, how); err != nil {
		if !errors.Is(err, fs.ErrExist) {
			_ = f.Remove(temporary)
		}
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err := f.Rename(temporary, name); err != nil {
		_ = f.Remove(temporary)
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if how == unflushed {
		return nil
	}
	if err := f.SyncDir(path.Dir(name)); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// writeNew writes a file that is new.
func writeNew(f Files, name string, data []byte, perm fs.FileMode, how keeping) error {
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
	if err == nil && how == flushed {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}
