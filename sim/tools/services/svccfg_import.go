package services

import (
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world/scf"
	"github.com/sledctl/sledctl/sim/world/smf"
)

// importFiles is engine_import() of usr/src/cmd/svc/svccfg/svccfg_engine.c:
// files, and directories with all manifests below them.
func (s *svccfg) importFiles(words []string) error {
	options, operands := cli.Getopt(words, "np:V", nil)
	for _, o := range options {
		if o.Bad != "" {
			return s.fail("Syntax error.\n")
		}
	}
	if len(operands) == 0 {
		return s.fail("Syntax error.\n")
	}
	directory := false
	var names []string
	for _, operand := range operands {
		info, err := s.tx.Files.Stat(s.path(operand))
		switch {
		case err != nil:
			return s.fail("Unable to stat file %s.  %s\n", operand, strerror(err))
		case info.Mode.IsDir():
			directory = true
			outside := s.path(operand)
			for _, name := range smf.Manifests(s.tx.Files, outside) {
				names = append(names, operand+strings.TrimPrefix(name, outside))
			}
		case info.Mode.IsRegular():
			names = append(names, operand)
		default:
			return s.fail("%s is not a directory or regular file\n", operand)
		}
	}
	names = s.unhashed(names)
	if len(names) == 0 {
		if s.verbose {
			s.complain("No changes were necessary\n")
		}
		return nil
	}
	return s.importAll(names, directory)
}

// unhashed leaves out files that were imported as they are now; only with
// SVCCFG_CHECKHASH (mhash_test_file in usr/src/cmd/svc/common/manifest_hash.c).
func (s *svccfg) unhashed(names []string) []string {
	if s.env["SVCCFG_CHECKHASH"] == "" {
		return names
	}
	var changed []string
	for _, name := range names {
		data, err := host.ReadFile(s.tx.Files, s.path(name))
		if err != nil || s.Hash(s.inRoot(name)) != scf.Sum(data) {
			changed = append(changed, name)
		}
	}
	return changed
}

// inRoot is a file's name for the zone that will boot with the repository:
// without PKG_INSTALL_ROOT.
func (s *svccfg) inRoot(name string) string {
	return "/" + strings.TrimPrefix(strings.TrimPrefix(name, s.env["PKG_INSTALL_ROOT"]), "/")
}

// importAll imports manifests. One that fails ends the run only if it is the
// only one; a directory is followed by a count, on standard error.
func (s *svccfg) importAll(names []string, directory bool) error {
	s.keepOn = len(names) > 1
	failed := 0
	for _, name := range names {
		if err := s.importFile(name); err != nil {
			failed++
			if !s.keepOn {
				return err
			}
		}
	}
	s.keepOn = false
	if directory {
		s.complain("Loaded %d smf(7) service descriptions\n", len(names))
		if failed > 0 {
			s.complain("%d smf(7) service descriptions failed to load\n", failed)
		}
	}
	if failed > 0 {
		// engine_import returns -1 and the grammar goes on: exit 0.
		return nil
	}
	if s.verbose {
		s.complain("Successful import.\n")
	}
	return nil
}

func (s *svccfg) importFile(name string) error {
	bundle, data, err := s.read(name)
	if err != nil {
		return errStop
	}
	for _, fmri := range s.Import(bundle, s.inRoot(name)) {
		s.refresh[fmri] = true
	}
	s.changed = true
	if s.env["SVCCFG_CHECKHASH"] != "" {
		s.SetHash(s.inRoot(name), scf.Sum(data))
	}
	return nil
}

// read parses a file. What is wrong with it is told; the error is then errStop
// also where the run goes on.
func (s *svccfg) read(name string) (*scf.Bundle, []byte, error) {
	data, err := host.ReadFile(s.tx.Files, s.path(name))
	if err != nil {
		_ = s.fail("unable to open file: %s\n", strerror(err))
		return nil, nil, errStop
	}
	if dtd := s.env["SVCCFG_DTD"]; dtd != "" {
		if _, err := s.tx.Files.Stat(s.path(dtd)); err != nil {
			_ = s.fail("Could not parse DTD \"%s\".\n", dtd)
			return nil, nil, errStop
		}
	}
	bundle, err := scf.Parse(data, "manifest")
	if err != nil {
		s.document(name, err)
		return nil, nil, errStop
	}
	return bundle, data, nil
}

// document passes on what is wrong with a document: the XML library's lines
// with the file before them, svccfg's own with its name.
func (s *svccfg) document(name string, err error) {
	lines := strings.Split(err.Error(), "\n")
	for _, line := range lines[:len(lines)-1] {
		s.out.Stderr += name + ":" + line + "\n"
	}
	s.complain("%s\n", lines[len(lines)-1])
}
