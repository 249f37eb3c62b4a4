package matrix

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
	"github.com/sledctl/sledctl/test/lattice"
)

// secret is the law that a file of secrets is there if and only if a record names
// it, and that they stand neither in the ledger nor in its history.
func (s *scene) secret(at string) {
	s.T.Helper()
	if s.Laid == nil || !s.Laid.Has(lattice.VMDisks, lattice.Crucible, lattice.Told, lattice.Remote) {
		return
	}
	all := ""
	for key, value := range s.Ledger() {
		if strings.HasPrefix(key, "instance/") {
			all += value
		}
	}
	there := s.SecretFiles()
	for _, name := range there {
		if !strings.Contains(all, `"`+name+`"`) {
			s.T.Errorf("%s: %s is left, which no record names", at, name)
		}
	}
	for _, named := range regexp.MustCompile(`"secrets":"([^"]+)"`).FindAllStringSubmatch(all, -1) {
		if !slices.Contains(there, named[1]) && s.mounted(path.Dir(path.Dir(named[1]))) {
			s.T.Errorf("%s: a record names %s, which does not exist", at, named[1])
		}
	}
	for _, name := range s.Copies() {
		files, _ := s.Host().Files().ReadDir(path.Dir(name))
		for _, f := range files {
			data, err := host.ReadFile(s.Host().Files(), path.Join(path.Dir(name), f.Name))
			if err == nil && strings.Contains(string(data), lattice.CrucibleKey) {
				s.T.Errorf("%s: %s has a secret in the open", at, f.Name)
			}
		}
	}
}

// mounted reports whether the dataset of a U.2's pool that is to be mounted on a
// directory is: after a boot that no bootstrap has followed, it is locked. What lies
// elsewhere always is.
func (s *scene) mounted(dir string) (is bool) {
	s.T.Helper()
	if !strings.HasPrefix(dir, "/pool/ext/") {
		return true
	}
	err := s.World().View(s.T.Context(), func(tx *world.Tx) error { is = zfs.MountedAt(tx, dir) != nil; return nil })
	if err != nil {
		s.T.Fatal(err)
	}
	return is
}
