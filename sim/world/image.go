package world

import (
	"embed"
	"io/fs"
	"path"
	"strings"
)

// rootFiles are the files of a fresh sled: root/common is the global zone's
// root, root/propolis what lies under root/ in the image of a Propolis zone.
//
//go:embed all:root
var rootFiles embed.FS

// EachFile visits the embedded files below dir, with their absolute names.
func EachFile(dir string, visit func(name string, data []byte) error) error {
	return fs.WalkDir(rootFiles, dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := rootFiles.ReadFile(p)
		if err != nil {
			return err
		}
		return visit(strings.TrimPrefix(p, dir), data)
	})
}

func ModeOf(name string) fs.FileMode {
	switch {
	case path.Ext(name) == ".sh" || path.Base(path.Dir(name)) == "bin":
		return 0o755
	case name == "/etc/shadow":
		return 0o400
	}
	return 0o644
}
