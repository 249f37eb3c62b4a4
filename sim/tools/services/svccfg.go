package services

import (
	"errors"
	"path"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/scf"
	"github.com/sledctl/sledctl/sim/world/smf"
)

// svccfg is one run of the command.
type svccfg struct {
	*scf.Repository
	tx      *world.Tx
	zone    string // whose files it sees
	env     map[string]string
	refresh map[string]bool // instances that svc.startd is to read again
	out     cli.Reply
}

// Svccfg is svccfg(8), of which validate, apply, and the import of a file or directory, are simulated
// (engine_import of usr/src/cmd/svc/svccfg/svccfg_engine.c). One manifest of several
// that fails does not end the run, and a directory is followed by a count, on
// standard error.
func Svccfg(tx *world.Tx, c cli.Call) cli.Reply {
	s := &svccfg{tx: tx, zone: c.Zone, env: c.Env, refresh: map[string]bool{}}
	if len(c.Args) != 2 || c.Args[0] != "import" && c.Args[0] != "validate" && c.Args[0] != "apply" {
		panic(world.Unsimulated{})
	}
	if c.Args[0] == "validate" {
		return s.validate(c.Args[1])
	}
	if text := s.open(); text != "" {
		return s.out.Die("svccfg", "%s\n", text)
	}
	if c.Args[0] == "apply" {
		return s.apply(c.Args[1])
	}
	names, directory := s.find(c.Args[1])
	failed := 0
	for _, name := range names {
		if err := s.importFile(name); err != nil {
			failed++
			s.complain("%v\n", err)
		}
	}
	switch {
	case len(names) == 0:
		return s.out
	case failed == 1 && len(names) == 1:
		s.out.Exit = 1
		return s.out
	case directory:
		s.complain("Loaded %d smf(7) service descriptions\n", len(names))
		if failed > 0 {
			// engine_import returns -1 and the grammar goes on: exit 0.
			s.complain("%d smf(7) service descriptions failed to load\n", failed)
		}
	}
	if err := s.save(); err != nil {
		return s.out.Die("svccfg", "%v\n", err)
	}
	return s.out
}

// complain is warn().
func (s *svccfg) complain(format string, args ...any) { s.out.Warn("svccfg", format, args...) }

// path is where a file of the command's zone lies. The command runs in "/".
func (s *svccfg) path(name string) string { return s.tx.ZonePathOf(s.zone, path.Join("/", name)) }

// private is the file that it works on instead of the zone's repository, or "".
func (s *svccfg) private() string { return s.env["SVCCFG_REPOSITORY"] }

// open reads the repository: that of the zone through its svc.configd, or the
// file of SVCCFG_REPOSITORY through a private one. It returns what is wrong.
//
// Guess configd-exits-102: svc.configd exits with 102 on a file that is no repository.
// Check: a zone with a broken repository.db
// State: settled by usr/src/cmd/svc/configd/configd_exit.h:37-41
func (s *svccfg) open() string {
	if s.private() == "" {
		h := bindSMF(s.tx, s.zone)
		if h == nil {
			return "Could not connect to repository server: " + scfNoServer + "."
		}
		s.Repository = h.Clone()
		return ""
	}
	var err error
	if s.Repository, err = smf.LoadRepositoryFile(s.tx.Files, s.path(s.private())); err != nil {
		return "Repository server failed (exit 102)."
	}
	return ""
}

// find gives the manifests that an operand stands for, without those that were
// imported as they are now. The latter is told only with SVCCFG_CHECKHASH
// (mhash_test_file in usr/src/cmd/svc/common/manifest_hash.c).
func (s *svccfg) find(operand string) (names []string, directory bool) {
	outside := s.path(operand)
	switch info, err := s.tx.Files.Stat(outside); {
	case err == nil && info.Mode.IsDir():
		directory = true
		for _, name := range smf.Manifests(s.tx.Files, outside) {
			names = append(names, operand+strings.TrimPrefix(name, outside))
		}
	case err == nil && info.Mode.IsRegular():
		names = []string{operand}
	default:
		panic(world.Unsimulated{What: operand + " is no file and no directory"})
	}
	if s.env["SVCCFG_CHECKHASH"] == "" {
		return names, directory
	}
	var changed []string
	for _, name := range names {
		data, err := host.ReadFile(s.tx.Files, s.path(name))
		if err != nil || s.Hash(s.inRoot(name)) != scf.Sum(data) {
			changed = append(changed, name)
		}
	}
	return changed, directory
}

// inRoot is a file's name for the zone that will boot with the repository:
// without PKG_INSTALL_ROOT.
func (s *svccfg) inRoot(name string) string {
	return "/" + strings.TrimPrefix(strings.TrimPrefix(name, s.env["PKG_INSTALL_ROOT"]), "/")
}

// validate is validate of one manifest. Templates are not simulated.
func (s *svccfg) validate(name string) cli.Reply {
	if _, _, err := s.parse(name); err != nil {
		s.complain("%v\n", err)
		s.out.Exit = 1
	}
	return s.out
}

// apply applies a profile, whether it was applied before or not: only with SVCCFG_CHECKHASH
// would that be asked (engine_apply of usr/src/cmd/svc/svccfg/svccfg_engine.c). What it changes
// counts for the next method (apply-counts-at-once).
func (s *svccfg) apply(name string) cli.Reply {
	world.Simulated(s.private() == "" && len(s.env["SVCCFG_CHECKHASH"]) == 0)
	data, err := host.ReadFile(s.tx.Files, s.path(name))
	if err != nil {
		panic(world.Unsimulated{What: err.Error()})
	}
	bundle, err := scf.Parse(data, "profile")
	if err != nil {
		return s.out.Die("svccfg", "%v\n", err)
	}
	for _, fmri := range s.Apply(bundle) {
		s.refresh[fmri] = true
	}
	if err := s.save(); err != nil {
		return s.out.Die("svccfg", "%v\n", err)
	}
	return s.out
}

// parse reads a manifest. The error is svccfg's words.
func (s *svccfg) parse(name string) (bundle []*scf.Service, data []byte, err error) {
	data, err = host.ReadFile(s.tx.Files, s.path(name))
	if dtd := s.env["SVCCFG_DTD"]; err == nil && dtd != "" {
		_, err = s.tx.Files.Stat(s.path(dtd))
	}
	if err != nil {
		panic(world.Unsimulated{What: err.Error()})
	}
	bundle, err = scf.Parse(data, "manifest")
	if e, ok := errors.AsType[*scf.UnsimulatedError](err); ok {
		panic(world.Unsimulated{What: name + ": " + e.What})
	}
	return bundle, data, err
}

// importFile imports a manifest. The error is svccfg's words.
func (s *svccfg) importFile(name string) error {
	bundle, data, err := s.parse(name)
	if err != nil {
		return err
	}
	for _, fmri := range s.Import(bundle, s.inRoot(name)) {
		s.refresh[fmri] = true
	}
	if s.env["SVCCFG_CHECKHASH"] != "" {
		s.SetHash(s.inRoot(name), scf.Sum(data))
	}
	return nil
}

// save writes the repository and tells svc.startd what it is to know.
func (s *svccfg) save() error {
	if s.private() != "" {
		return smf.SaveRepositoryFile(s.tx.Files, s.path(s.private()), s.Repository)
	}
	if err := smf.Adopt(s.tx, s.zone, s.Repository); err != nil {
		return err
	}
	for fmri := range s.refresh {
		if e, ok := s.Lookup(fmri); ok {
			smf.Refresh(s.tx, s.zone, fmri, e)
		}
	}
	return nil
}
