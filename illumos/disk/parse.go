package disk

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/illumos/devtree"
)

// ErrSyntax is output that fstyp does not print, or a disk in the device tree that is not told
// as disks are.
var ErrSyntax = errors.New("not in the form of prtconf or fstyp")

// whole is the link of the whole disk: the one below /dev/dsk without a slice or
// partition.
func whole(n *devtree.Node) (string, bool) {
	for _, link := range n.Links {
		short, found := strings.CutPrefix(link, deviceDir)
		at := strings.LastIndexByte(short, 'd')
		if found && at > 0 && at < len(short)-1 && strings.Trim(short[at+1:], "0123456789") == "" {
			return link, true
		}
	}
	return "", false
}

// file is the output of `fstyp -a` for a device.
type file struct {
	system     string // "zfs", "ufs" …
	name, guid string // of a pool
}

// parseContent reads `fstyp -a`: the name of the file system, then what its
// module tells; that of ZFS prints the configuration in a label (dump_nvlist of
// usr/src/cmd/fs.d/zfs/fstyp/fstyp.c). A label without a name and identity is an
// error. Errors are ErrSyntax.
func parseContent(out []byte) (file, error) {
	system, rest, ended := strings.Cut(string(out), "\n")
	f := file{system: system}
	if !ended || strings.Trim(system, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || system == "" {
		return file{}, fmt.Errorf("%q is no file system: %w", system, ErrSyntax)
	}
	if system != "zfs" {
		return f, nil
	}
	for line := range strings.Lines(rest) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch key {
		case "name":
			f.name = strings.Trim(value, "'")
		case "pool_guid":
			f.guid = value
		}
	}
	if _, err := strconv.ParseUint(f.guid, 10, 64); err != nil || f.name == "" {
		return file{}, fmt.Errorf("a label of ZFS without name and guid: %w", ErrSyntax)
	}
	return f, nil
}
