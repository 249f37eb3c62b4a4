package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"testing"
	"time"
)

// An id says when a bundle was taken and why, and no other name of a file does.
func FuzzParseID(f *testing.F) {
	f.Add(ID(time.Unix(1e9, 0), StaleZone, "x"))
	f.Add("20010909T014640Z-stale-00000000")
	f.Add("20010909T014640Z--00000000")
	f.Add("20010909T014640.5Z-stale-00000000")
	f.Fuzz(func(t *testing.T, id string) {
		at, cause, ok := parseID(id)
		if !ok {
			return
		}
		rest := "-" + string(cause) + id[len(id)-9:]
		if again := at.UTC().Format(idTime) + rest; again != id && at.UTC().Format(idSeconds)+rest != id {
			t.Errorf("%q is read as %q", id, again)
		}
	})
}

// Whatever a zone's files are called and hold, the archive gives them back, and
// its first member says what there is.
func FuzzPack(f *testing.F) {
	f.Add("var/log/a", []byte("text"), "zone")
	f.Add("../../etc/passwd", []byte{0}, "\x1b")
	f.Add("", []byte(nil), "")
	f.Fuzz(func(t *testing.T, name string, data []byte, reason string) {
		packed, err := pack(Metadata{Format: 1, Reason: reason, Files: []Member{{Name: name, Size: int64(len(data)), Of: int64(len(data)), data: data}}})
		if err != nil {
			return // a name that no archive can hold
		}
		unzipped, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		archive := tar.NewReader(unzipped)
		if head, err := archive.Next(); err != nil || head.Name != metadataName {
			t.Fatalf("the first member is %v, %v", head, err)
		}
		if _, err := archive.Next(); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		if got, err := io.ReadAll(archive); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%q: %d bytes of %d, %v", name, len(got), len(data), err)
		}
	})
}
