package host

import (
	"errors"
	"io/fs"
	"os"
	"path"
)

// Files that hold a secret are written and removed here, so that a trace
// says what they hold and never shows it. Devices are opened here for the same reason.

// secretFiles is a Files that shows what is written to it, and passes by what
// is secret; or one that lies over such a one, and passes that on.
type secretFiles interface {
	// openSecret is Open. When the file is closed, line stands for what was
	// written.
	openSecret(name string, flag int, line Line) (File, error)
}

func openSecret(f Files, name string, flag int, line Line) (File, error) {
	if s, ok := f.(secretFiles); ok {
		return s.openSecret(name, flag, line)
	}
	return f.Open(name, flag, secretMode)
}

// OpenDevice opens a device to be written to at offsets. When it is closed, one line stands in a
// trace for all that was written: a disk is too large to be shown.
func OpenDevice(f Files, name, what string) (File, error) {
	return openSecret(f, name, os.O_WRONLY, DeviceLine(name, what))
}

// OpenReceived opens a file that takes what another machine sends: at its end, or in the place of what it holds. It is made if it is absent, with
// mode 0600. When it is closed, one line stands in a trace for all that was written: it may be as large as a disk.
func OpenReceived(f Files, name, from string, more bool) (File, error) {
	flag := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if more {
		flag = os.O_WRONLY | os.O_APPEND
	}
	return openSecret(f, name, flag, ReceiveLine(name, from))
}

// secretMode is the mode of a file that holds a secret.
const secretMode fs.FileMode = 0o600

// SecretLine is the line of a file with a secret that is written whole; what
// says what it holds, as "the key of disk 3".
func SecretLine(name, what string) Line {
	return Line{Kind: LineFile, Text: "(umask 077; cat > " + Quote(name) + ") # " + what}
}

// WriteSecret makes a file of mode 0600, which must not be there (fs.ErrExist),
// and flushes it. If it fails, it removes what it made.
func WriteSecret(f Files, name string, secret []byte, what string) error {
	file, err := openSecret(f, name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, SecretLine(name, what))
	if err != nil {
		return err
	}
	_, err = file.Write(secret)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, WipeSecret(f, name))
	}
	return nil
}

// WipeLines are the lines of WipeSecret.
func WipeLines(name string) []Line { return []Line{wipeLine(name), RemoveLine(name)} }

func wipeLine(name string) Line {
	return Line{Kind: LineFile, Text: "dd if=/dev/zero of=" + Quote(name) + " conv=notrunc # one byte more than it holds"}
}

// WipeSecret overwrites a file with zeros, in place and flushed, and removes
// it. The zeros are one byte more than the file held: a late reader finds a
// secret of the wrong length, and never one of zeros.
func WipeSecret(f Files, name string) error {
	return errors.Join(overwrite(f, name), f.Remove(name), f.SyncDir(path.Dir(name)))
}

func overwrite(f Files, name string) error {
	info, err := f.Stat(name)
	if err != nil {
		return err
	}
	if !info.Mode.IsRegular() {
		return nil // not a file that sledctl wrote: a link is only removed
	}
	file, err := openSecret(f, name, os.O_WRONLY, wipeLine(name))
	if err != nil {
		return err
	}
	_, err = file.Write(make([]byte, info.Size+1))
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}
