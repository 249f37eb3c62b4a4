package commands_test

import (
	"path"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/lattice"
)

// secretFiles are the files in which secrets of machines lie.
func (s *sled) secretFiles() (names []string) {
	s.t.Helper()
	dirs := []string{}
	pools, _ := s.Host().Files().ReadDir("/pool/ext")
	for _, p := range pools {
		dirs = append(dirs, path.Join("/pool/ext", p.Name, "crypt/sledctl"))
	}
	for _, name := range s.copies() {
		dirs = append(dirs, path.Join(path.Dir(name), "sledctl-secrets"))
	}
	for _, dir := range dirs {
		files, _ := s.Host().Files().ReadDir(dir)
		for _, f := range files {
			names = append(names, path.Join(dir, f.Name))
		}
	}
	return names
}

// secret is the law that a file of secrets is there if and only if a record names
// it, and that they stand neither in the state file nor in its history.
func (s *scene) secret(at string) {
	s.t.Helper()
	if s.laid == nil || s.laid.Is(lattice.VMDisks) != lattice.Crucible {
		return
	}
	all := ""
	for key, value := range s.ledger() {
		if strings.HasPrefix(key, "instance/") {
			all += value
		}
	}
	there := s.secretFiles()
	for _, name := range there {
		if !strings.Contains(all, `"`+name+`"`) {
			s.t.Errorf("%s: %s is left, which no record names", at, name)
		}
	}
	if n := strings.Count(all, `"secrets":"`); n > len(there) {
		s.t.Errorf("%s: records name %d files of secrets, and there are %d", at, n, len(there))
	}
	for _, name := range s.copies() {
		files, _ := s.Host().Files().ReadDir(path.Dir(name))
		for _, f := range files {
			data, err := host.ReadFile(s.Host().Files(), path.Join(path.Dir(name), f.Name))
			if err == nil && strings.Contains(string(data), lattice.CrucibleKey) {
				s.t.Errorf("%s: %s has a secret in the open", at, f.Name)
			}
		}
	}
}
