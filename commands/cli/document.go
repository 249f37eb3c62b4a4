package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/sledctl/sledctl/commands/terminal"
)

// maxDocument bounds what an operator has a command read, in bytes: a spec, a
// saved plan of 100,000 objects, a configuration. A device never ends.
const maxDocument = 64 << 20

// ReadDocument reads a file, or standard input for "-". The error is one of the
// flag that named it.
func ReadDocument(streams *terminal.Streams, flag, name string) ([]byte, error) {
	data, err := ReadNamed(streams, name)
	if err != nil {
		return nil, &UsageError{Text: fmt.Sprintf("%s: %v", flag, err)}
	}
	return data, nil
}

// ReadNamed is document, without the flag.
func ReadNamed(streams *terminal.Streams, name string) ([]byte, error) {
	if name == "-" {
		return bounded("standard input", streams.In)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory", name)
	}
	return bounded(name, f)
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
