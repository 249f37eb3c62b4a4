package key

import (
	"context"
	"crypto/sha3"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// DefaultDir is where key files lie. /var/run is a tmpfs on illumos: what is
// there never gets to a disk, and does not survive a boot. Another directory
// must be on such a file system too; that is not checked.
//
// Guess var-run-is-private-tmpfs: /var/run is a tmpfs, and nobody but root can look into a
// directory of mode 0700 there.
// Check: `df -n /var/run`
const DefaultDir = "/var/run/sledctl/key"

// suffix ends the name of every key file, and of nothing else there.
const suffix = ".key"

// dirMode is the mode of the directory.
const dirMode fs.FileMode = 0o700

// Location is what zfs's keylocation is set to. It is the same for every use of
// the key.
func (k Key) Location() string { return "file://" + k.file() }

// file is named after the disk, so that a leftover file shows its disk. What
// cannot stand in a name is replaced, so a piece of the identity's digest keeps
// two disks apart.
func (k Key) file() string {
	const longest = 80
	readable := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '_'
	}, k.identity)
	digest := sha3.Sum256([]byte(k.identity))
	name := fmt.Sprintf("%s-%s-%d%s", readable[:min(len(readable), longest)], hex.EncodeToString(digest[:4]), k.Epoch, suffix)
	return path.Join(k.dir, strings.TrimLeft(name, ".-"))
}

// Around explains what Lend does before use and after it.
func (k Key) Around() (before, after []host.Line) {
	return []host.Line{host.MkdirLine(k.dir, dirMode), host.SecretLine(k.file(), k.String())}, host.WipeLines(k.file())
}

// Lend writes the key's file, mode 0600, runs use, and wipes the file: whatever
// use did, panic included, and whether or not the context has ended. A file that
// a killed run has left is wiped first; two runs that use one key must exclude
// each other.
//
// Guess wiped-key-is-too-long: zfs reads a raw key of 33 bytes as too long: so a key file that is
// being wiped is never taken for a key of zeros (get_key_material_raw reads 33).
// Check: `zfs load-key -L` with such a file
func (k Key) Lend(ctx context.Context, files host.Files, use func() error) (err error) {
	if k.reveal == nil || !path.IsAbs(k.dir) {
		return fmt.Errorf("%v: there is no key, or no directory for it", k)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%v: %w", k, err)
	}
	if err := makeDir(files, k.dir); err != nil {
		return fmt.Errorf("%v: %w", k, err)
	}
	key := k.reveal()
	err = host.WriteSecret(files, k.file(), key[:], k.String())
	if errors.Is(err, fs.ErrExist) {
		if err = host.WipeSecret(files, k.file()); err == nil {
			key := k.reveal()
			err = host.WriteSecret(files, k.file(), key[:], k.String())
		}
	}
	if err != nil {
		return fmt.Errorf("%v: %w", k, err)
	}
	defer func() {
		if wiped := host.WipeSecret(files, k.file()); wiped != nil {
			err = errors.Join(err, fmt.Errorf("%v lies in %s: %w", k, k.file(), wiped))
		}
	}()
	return use()
}

// makeDir makes the directory of key files, and refuses one that others can
// look into.
func makeDir(files host.Files, dir string) error {
	if err := host.MkdirAll(files, dir, dirMode); err != nil {
		return err
	}
	info, err := files.Stat(dir)
	if err == nil && (!info.Mode.IsDir() || info.Mode.Perm()&0o077 != 0) {
		err = fmt.Errorf("%s has the mode %v: it must be a directory that nobody else can look into: %w", dir, info.Mode, host.ErrRefused)
	}
	return err
}

// Left lists the key files in dir: those of an operation that was killed, or is
// running. A missing directory has none.
func Left(files host.Files, dir string) ([]string, error) {
	list, err := files.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for key files: %w", err)
	}
	var left []string
	for _, f := range list {
		if strings.HasSuffix(f.Name, suffix) && !f.Mode.IsDir() {
			left = append(left, path.Join(dir, f.Name))
		}
	}
	return left, nil
}
