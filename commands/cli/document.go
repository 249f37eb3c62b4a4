package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sledctl/sledctl/commands/terminal"
)

// maxDocument bounds what an operator has a command read, in bytes: a spec, a
// saved plan of 100,000 objects, a configuration. A device never ends.
const maxDocument = 64 << 20

// ReadDocument reads a file, or standard input for "-". Nothing at all is refused: it is what a
// program writes that has failed. The error is one of the flag that named it.
func ReadDocument(streams *terminal.Streams, flag, name string) ([]byte, error) {
	data, err := readFor(streams, flag, name)
	if err == nil && len(bytes.TrimSpace(data)) == 0 {
		return nil, &UsageError{Text: flag + ": " + spoken(name) + " is empty", Advice: "find out why nothing was written to it"}
	}
	return data, err
}

func readFor(streams *terminal.Streams, flag, name string) ([]byte, error) {
	data, err := ReadNamed(streams, name)
	var bad *UsageError
	switch {
	case errors.As(err, &bad):
		return nil, &UsageError{Text: flag + ": " + bad.Text, Advice: bad.Advice}
	case err != nil:
		return nil, &UsageError{Text: fmt.Sprintf("%s: %v", flag, err)}
	}
	return data, nil
}

func spoken(name string) string {
	if name == "-" {
		return "standard input"
	}
	return "file " + name
}

// ReadNamed is ReadDocument without the flag, of what may be empty.
func ReadNamed(streams *terminal.Streams, name string) ([]byte, error) {
	if name == "-" {
		return bounded(spoken(name), streams.In)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, NamedFile(name, err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory", name)
	}
	return bounded(name, f)
}

// NamedFile is why a file that the command line names cannot be opened: a *UsageError if there is none, or
// it may not be read; else the system's error as it is.
func NamedFile(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &UsageError{Text: "file " + name + " does not exist", Advice: "give the path of a file that exists"}
	case errors.Is(err, fs.ErrPermission):
		return &UsageError{Text: "file " + name + ": permission denied", Advice: "choose a file that this user may use"}
	}
	return err
}

// NewFile is NamedFile for one that is to be made.
func NewFile(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrExist):
		return &ExistsError{What: "file " + name, Advice: "give another name, or remove the file"}
	case errors.Is(err, fs.ErrNotExist):
		return &UsageError{Text: "directory " + filepath.Dir(name) + " does not exist", Advice: "choose another one, or make it first"}
	}
	return NamedFile(name, err)
}

func bounded(name string, in io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxDocument+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxDocument:
		return nil, errors.New(name + " is larger than " + terminal.FormatSize(maxDocument) + ", the most that is read")
	}
	return data, nil
}
