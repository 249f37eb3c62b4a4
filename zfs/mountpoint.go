package zfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// A mountpoint whose file system is not mounted is a directory like any other,
// and what is written there lies on whatever is below: on the sled's ramdisk. So
// it is made immutable before something is mounted on it, and what lay there
// before is moved aside (oxidecomputer/omicron#7874, omicron#4203). ZFS mounts
// on an immutable directory.

// Mountpoint is a directory as it was seen, that something is to be mounted on.
type Mountpoint struct {
	Directory string
	Exists    bool
	Mounted   bool // something is mounted on it: the rest is not known then
	Immutable bool
	// Fixable says that its file system has the attribute; a RAM disk's tmpfs has
	// not. It is not known of a directory that does not exist.
	Fixable bool
	Entries []string // what lies in it
}

// Mountpoints looks at directories, in one command, or none if none exists.
// Errors: ErrSyntax; a *host.CommandError; what reading the directories gave.
func Mountpoints(ctx context.Context, h host.Host, directories ...string) ([]Mountpoint, error) {
	all := make([]Mountpoint, len(directories))
	var ask []string
	for i, dir := range directories {
		m, err := seen(h.Files(), dir)
		if err != nil {
			return nil, fmt.Errorf("look at mountpoint: %w", err)
		}
		if all[i] = m; m.Exists && !m.Mounted {
			ask = append(ask, dir)
		}
	}
	if len(ask) == 0 {
		return all, nil
	}
	c := attributesCommand(ask)
	r, err := h.Run(ctx, c)
	if err == nil && r.Exit != 0 {
		err = failure(c, r)
	}
	var found map[string]string
	if err == nil {
		found, err = ParseAttributes(r.Stdout, ask)
	}
	if err != nil {
		return nil, fmt.Errorf("look at mountpoints: %w", err)
	}
	for i := range all {
		words := strings.Split(found[all[i].Directory], ",")
		all[i].Immutable = slices.Contains(words, "immutable")
		all[i].Fixable = all[i].Immutable || slices.Contains(words, "noimmutable")
	}
	return all, nil
}

// seen is what the file system tells by itself.
func seen(files host.Files, dir string) (Mountpoint, error) {
	m := Mountpoint{Directory: dir}
	if err := cleanPath(dir); err != nil {
		return m, err
	}
	info, err := files.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return m, nil
	case err != nil:
		return m, err
	case !info.Mode.IsDir():
		return m, fmt.Errorf("%s is no directory: %w", dir, host.ErrRefused)
	}
	above, err := files.Stat(path.Dir(dir))
	if err != nil {
		return m, err
	}
	m.Exists, m.Mounted = true, above.Device != info.Device
	if m.Mounted {
		return m, nil
	}
	entries, err := files.ReadDir(dir)
	for _, e := range entries {
		m.Entries = append(m.Entries, e.Name)
	}
	return m, err
}

func cleanPath(dir string) error {
	if !path.IsAbs(dir) || path.Clean(dir) != dir || dir == "/" {
		return fmt.Errorf("%q is not a clean absolute path below /", dir)
	}
	return nil
}

// ParseAttributes reads `ls -d/v DIR…`: a line for each, that ends in its name,
// and one of attributes in braces where the file system has them (print_attrs of
// usr/src/cmd/ls/ls.c). It gives them by directory, empty where there are none.
//
// Guess attributes-on-own-line: `ls -d/v` prints the attributes in braces on a line of its own.
// Check: `ls -d/v /var`
func ParseAttributes(out []byte, directories []string) (map[string]string, error) {
	found := map[string]string{}
	current := ""
	for line := range strings.Lines(string(out)) {
		text, ended := strings.CutSuffix(line, "\n")
		if !ended {
			return nil, fmt.Errorf("attributes are cut off: %w", ErrSyntax)
		}
		if strings.HasPrefix(text, " ") {
			text = strings.TrimSpace(text)
			if current == "" || !strings.HasPrefix(text, "{") || !strings.HasSuffix(text, "}") || found[current] != "" {
				return nil, fmt.Errorf("attributes: %q: %w", line, ErrSyntax)
			}
			found[current] = strings.Trim(text, "{}")
			continue
		}
		i := slices.IndexFunc(directories, func(dir string) bool {
			_, seen := found[dir]
			return !seen && strings.HasSuffix(text, " "+dir)
		})
		if i < 0 {
			return nil, fmt.Errorf("attributes: %q is of none that was asked for: %w", line, ErrSyntax)
		}
		current = directories[i]
		found[current] = ""
	}
	if len(found) != len(directories) {
		return nil, fmt.Errorf("attributes: %d of %d directories: %w", len(found), len(directories), ErrSyntax)
	}
	return found, nil
}

// Protected says whether there is nothing to protect: the directory is empty and
// immutable, or it is a mounted file system's.
func (m Mountpoint) Protected() bool {
	return m.Mounted || m.Exists && len(m.Entries) == 0 && (m.Immutable || !m.Fixable)
}

// Protect is the step that makes it so. Suffix tells apart what is moved aside
// from what was moved before.
func (m Mountpoint) Protect(suffix string) Protect {
	p := Protect{Directory: m.Directory, Make: !m.Exists, Unfixable: m.Exists && !m.Fixable}
	if len(m.Entries) > 0 {
		p.Aside = path.Join(path.Dir(m.Directory), "old-under-mountpoint-"+path.Base(m.Directory)+"-"+suffix)
		p.Entries, p.Loosen = m.Entries, m.Immutable
	}
	return p
}
