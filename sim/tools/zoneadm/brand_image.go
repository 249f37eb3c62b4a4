package zoneadm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/tools/cli"
)

// unpackImage unpacks a zone image of the omicron1 brand: a gzipped tar whose
// first member is oxide.json, which says what it is, and whose contents lie
// under root/ (brand/src/unpack.rs and utils/src/metadata.rs in
// oxidecomputer/helios-omicron-brand). Kind is "layer" or "baseline".
func unpackImage(files host.Files, image, kind, root string) error {
	data, err := host.ReadFile(files, image)
	if err != nil {
		return errors.New(rustError(err))
	}
	unzip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return errors.New("invalid gzip header")
	}
	in := tar.NewReader(unzip)
	if err := checkLabel(in, kind); err != nil {
		return err
	}
	for {
		member, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpacking %q: %w", image, err)
		}
		if err := unpackMember(files, in, member, root); err != nil {
			return err
		}
	}
}

// checkLabel reads oxide.json.
func checkLabel(in *tar.Reader, kind string) error {
	member, err := in.Next()
	if err != nil || member.Name != "oxide.json" {
		return errors.New("first file in archive must be \"oxide.json\"")
	}
	var label struct {
		Version string `json:"v"`
		Type    string `json:"t"`
	}
	if err := json.NewDecoder(in).Decode(&label); err != nil {
		return fmt.Errorf("oxide.json: %w", err)
	}
	switch {
	case label.Version != "1":
		return fmt.Errorf("unexpected metadata version %q", label.Version)
	case label.Type == kind:
		return nil
	case kind == "baseline":
		return errors.New("archive is not a baseline archive")
	}
	return errors.New("image is not a layer")
}

func unpackMember(files host.Files, in io.Reader, member *tar.Header, root string) error {
	name := path.Clean(member.Name)
	if name == "root" && member.Typeflag == tar.TypeDir {
		return nil
	}
	below, ok := strings.CutPrefix(name, "root/")
	if !ok || strings.HasPrefix(below, "../") {
		return fmt.Errorf("unexpected path in archive: %q", member.Name)
	}
	to := path.Join(root, below)
	switch member.Typeflag {
	case tar.TypeDir:
		return host.MkdirAll(files, to, member.FileInfo().Mode().Perm())
	case tar.TypeReg:
		data, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		if err := mkdirAll(files, path.Dir(to)); err != nil {
			return err
		}
		return cli.WriteFile(files, to, data, member.FileInfo().Mode().Perm())
	}
	return nil // links: the simulated file system has none
}
