package zoneadm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/tools/cli"
)

// unpackImage unpacks a zone image of the omicron1 brand: a gzipped tar whose
// first member is oxide.json, which says what it is, and whose contents lie
// under root/ (brand/src/unpack.rs and utils/src/metadata.rs in
// oxidecomputer/helios-omicron-brand). Kind is "layer" or "baseline". Other files
// are refused.
func unpackImage(files host.Files, image, kind, root string) {
	data, err := host.ReadFile(files, image)
	must(err)
	unzip, err := gzip.NewReader(bytes.NewReader(data))
	must(err)
	in := tar.NewReader(unzip)
	member, err := in.Next()
	cli.Simulated(err == nil && member.Name == "oxide.json")
	var label struct {
		Version string `json:"v"`
		Type    string `json:"t"`
	}
	must(json.NewDecoder(in).Decode(&label))
	cli.Simulated(label.Version == "1" && label.Type == kind)
	for {
		member, err := in.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		must(err)
		must(unpackMember(files, in, member, root))
	}
}

func unpackMember(files host.Files, in io.Reader, member *tar.Header, root string) error {
	name, mode := path.Clean(member.Name), member.FileInfo().Mode().Perm()
	to := path.Join(root, strings.TrimPrefix(name, "root"))
	cli.Simulated(name == "root" || strings.HasPrefix(name, "root/"))
	switch {
	case member.Typeflag == tar.TypeDir && name != "root":
		return host.MkdirAll(files, to, mode)
	case member.Typeflag == tar.TypeReg:
		data, err := io.ReadAll(in)
		return errors.Join(err, mkdirAll(files, path.Dir(to)), cli.WriteFile(files, to, data, mode))
	}
	return nil // links: the simulated file system has none
}
