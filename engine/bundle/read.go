package bundle

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/sledctl/sledctl/host"
)

// File is one of a bundle.
type File struct {
	Name string // root/var/svc/log/x.log for one of the zone's
	Data []byte
}

// Read are the files of a bundle whose names fit, in the order in which it has them.
func Read(f host.Files, b Bundle, fits func(name string) bool) ([]File, error) {
	files, err := read(f, b.Path, fits)
	if err != nil {
		return nil, fmt.Errorf("read bundle %s: %w", b.ID, err)
	}
	return files, nil
}

func read(f host.Files, file string, fits func(name string) bool) (files []File, err error) {
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
			return files, nil
		case err != nil:
			return nil, err
		case !fits(head.Name):
			continue
		}
		data, err := io.ReadAll(io.LimitReader(archive, memberMax))
		if err != nil {
			return nil, err
		}
		files = append(files, File{head.Name, data})
	}
}
