package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"time"
)

// Metadata is the file metadata.json, the first of a bundle.
type Metadata struct {
	Format   int       `json:"format"` // 1
	ID       string    `json:"id"`
	Zone     string    `json:"zone"`
	Cause    Cause     `json:"cause"`
	Reason   string    `json:"reason"`
	Time     time.Time `json:"time"`
	Zonepath string    `json:"zonepath"`
	Files    []Member  `json:"files"`
	// Problems are what could not be collected, and why.
	Problems []string `json:"problems"`
}

// Member is a file of a bundle.
type Member struct {
	Name string    `json:"name"`
	Time time.Time `json:"time"`
	// Size is that of what is kept; Of, if it is more, that of the file: its
	// beginning is left out. Bytes.
	Size int64 `json:"size"`
	Of   int64 `json:"of"`

	data []byte
}

const metadataName = "metadata.json"

// pack writes the archive: the metadata, then the members in their order.
func pack(m Metadata) ([]byte, error) {
	about, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	archive := tar.NewWriter(zipped)
	about = append(about, '\n')
	members := append([]Member{{Name: metadataName, Time: m.Time, Size: int64(len(about)), data: about}}, m.Files...)
	for _, f := range members {
		head := &tar.Header{Name: f.Name, Mode: 0o600, Size: int64(len(f.data)), ModTime: f.Time.Truncate(time.Second), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(head); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	err = zipped.Close()
	return b.Bytes(), err
}
