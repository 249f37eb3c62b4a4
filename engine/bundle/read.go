package bundle

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/sledctl/sledctl/host"
)

// Read is the file of a bundle that has this name, root/var/svc/log/x.log for one of the
// zone's; fs.ErrNotExist if it has none.
func Read(f host.Files, b Bundle, name string) ([]byte, error) {
	data, err := read(f, b.Path, name)
	if err != nil {
		return nil, fmt.Errorf("read %s of bundle %s: %w", name, b.ID, err)
	}
	return data, nil
}

func read(f host.Files, file, name string) ([]byte, error) {
	in, err := f.Open(file, 0, 0)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	zipped, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	for archive := tar.NewReader(zipped); ; {
		head, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, fs.ErrNotExist
		case err != nil:
			return nil, err
		case head.Name == name:
			return io.ReadAll(io.LimitReader(archive, memberMax))
		}
	}
}
