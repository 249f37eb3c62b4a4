package services

import (
	"errors"
	"io/fs"
	"path"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/scf"
	"github.com/sledctl/sledctl/sim/world/smf"
)

// svccfgUsage is usage() of usr/src/cmd/svc/svccfg/svccfg_main.c.
const svccfgUsage = "Usage:\tsvccfg [-v] [-s FMRI] [-f file]\n\tsvccfg [-v] [-s FMRI] <command> [args]\n"

// svccfg is one run of the command.
type svccfg struct {
	*scf.Repository
	tx      *world.Tx
	zone    string // whose files it sees
	env     map[string]string
	private string // SVCCFG_REPOSITORY: the file that it works on instead of the zone's repository
	verbose bool

	changed bool            // the repository is to be written
	refresh map[string]bool // instances that svc.startd is to read again
	keepOn  bool            // errors do not end the run: several manifests are imported
	out     cli.Reply
}

// errStop ends the run; what it says is in the reply.
var errStop = errors.New("svccfg ends")

// Svccfg is svccfg(8), of which only import is simulated.
func Svccfg(tx *world.Tx, c cli.Call) cli.Reply {
	s := &svccfg{tx: tx, zone: c.Zone, env: c.Env, private: c.Env["SVCCFG_REPOSITORY"], refresh: map[string]bool{}}
	options, words := cli.Getopt(c.Args, "vf:s:", nil)
	for _, o := range options {
		switch o.Letter {
		case 'v':
			s.verbose = true
		case 's', 'f':
			return cli.NotSimulated("svccfg", "option -%c", o.Letter)
		default:
			return cli.Reply{Stderr: svccfgUsage, Exit: 2}
		}
	}
	switch {
	case len(words) == 0:
		return cli.NotSimulated("svccfg", "commands from standard input")
	case words[0] != "import":
		return cli.NotSimulated("svccfg", "subcommand %q", words[0])
	}
	if err := s.open(); err != nil {
		return s.out
	}
	err := s.importFiles(words[1:])
	if s.changed {
		if serr := s.save(); serr != nil {
			s.complain("%v\n", serr)
			err = errStop
		}
	}
	if err != nil {
		s.out.Exit = 1
	}
	return s.out
}

// path is where a file of the command's zone lies. The command runs in "/".
func (s *svccfg) path(name string) string { return s.tx.ZonePathOf(s.zone, path.Join("/", name)) }

// open reads the repository: that of the zone through its svc.configd, or the
// file of SVCCFG_REPOSITORY through a private one.
func (s *svccfg) open() error {
	var err error
	if s.private == "" {
		h, text := changeSMF(s.tx, s.zone)
		if text != "" {
			s.out.Warn("svccfg", "Could not connect to repository server: %s.\n", text)
			s.out.Exit = 1
			return errStop
		}
		s.Repository = h.Repository
		return nil
	}
	s.Repository, err = smf.LoadRepositoryFile(s.tx.Files, s.path(s.private))
	if err != nil {
		// Guess: the exit code of a svc.configd that cannot open its database.
		s.out.Warn("svccfg", "Repository server failed (exit %d).\n", 102)
		s.out.Exit = 1
		return errStop
	}
	return nil
}

// save writes the repository and tells svc.startd what it is to know.
func (s *svccfg) save() error {
	if s.private != "" {
		return smf.SaveRepositoryFile(s.tx.Files, s.path(s.private), s.Repository)
	}
	if err := smf.Adopt(s.tx, s.zone, s.Repository); err != nil {
		return err
	}
	for fmri := range s.refresh {
		if service, instance := s.Lookup(fmri); instance != nil {
			smf.Refresh(s.tx, s.zone, fmri, scf.Entity{Service: service, Instance: instance})
		}
	}
	return nil
}

// complain is warn().
func (s *svccfg) complain(format string, args ...any) { s.out.Warn("svccfg", format, args...) }

// fail is semerr(): the end, as nobody sits at a terminal.
func (s *svccfg) fail(format string, args ...any) error {
	s.complain(format, args...)
	if s.keepOn {
		return nil
	}
	return errStop
}

// strerror is what strerror(3C) says of a file error.
func strerror(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "No such file or directory"
	case errors.Is(err, fs.ErrPermission):
		return "Permission denied"
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return err.Error()
}
