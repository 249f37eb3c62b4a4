package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"
)

// file is a file of a package.
type file struct {
	name string
	mode fs.FileMode
	data []byte
}

// sorted are the files by name.
func sorted(all []file) []file {
	return slices.SortedFunc(slices.Values(all), func(a, b file) int { return cmp.Compare(a.name, b.name) })
}

// directories are those that files lie in, the outer ones first.
func directories(all []file) []string {
	var dirs []string
	for _, f := range all {
		for dir := path.Dir(f.name); dir != "." && dir != "/"; dir = path.Dir(dir) {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// tarball packs files. All are root's and of one time, in order, so that the same files
// give the same bytes; ustar is read by every tar.
func tarball(all []file, at time.Time) ([]byte, error) {
	var buf bytes.Buffer
	zip, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	out := tar.NewWriter(zip)
	add := func(h tar.Header, data []byte) error {
		h.ModTime, h.Uname, h.Gname, h.Format, h.Size = at, "root", "root", tar.FormatUSTAR, int64(len(data))
		if err := out.WriteHeader(&h); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
		_, err := out.Write(data)
		return err
	}
	for _, dir := range directories(all) {
		if err := add(tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}, nil); err != nil {
			return nil, err
		}
	}
	for _, f := range sorted(all) {
		if err := add(tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: int64(f.mode)}, f.data); err != nil {
			return nil, err
		}
	}
	if err := out.Close(); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// checksums is what sha256sum -c and digest -a sha256 are compared with.
func checksums(all []file) []byte {
	var out bytes.Buffer
	for _, f := range sorted(all) {
		fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(f.data), f.name)
	}
	return out.Bytes()
}
