package zonecfg

import (
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// cfgSession is zonecfg at work: its globals.
type cfgSession struct {
	tx       *world.Tx
	out, err strings.Builder

	zone     string // whose configuration this is
	saved    string // its name as it is saved, what revert goes back to
	isGlobal bool
	config   *world.Config // nil: nothing loaded or created
	got      bool          // there was a configuration

	global bool // the scope: all of the zone, or a resource
	kind   string
	work   *world.Resource // the resource of the scope
	old    *world.Resource // the one it replaces; nil: it is new

	changed     bool // to be committed
	sawError    bool
	leave       bool // exit
	force       bool // exit -F
	dead        bool // left at once
	interactive bool
	fileMode    bool
	fileName    string
	line        int // lex_lineno
	lastLine    int
}

func (s *cfgSession) reply(exit int) cli.Reply {
	return cli.Reply{Stdout: s.out.String(), Stderr: s.err.String(), Exit: exit}
}

func (s *cfgSession) mode() world.Mode { return s.tx.State.Mode }

// zerr prints a message. In a file it says on which line, once per line.
func (s *cfgSession) zerr(format string, args ...any) {
	if s.fileMode && s.line > s.lastLine {
		if s.fileName == "-" {
			fmt.Fprintf(&s.err, "On line %d:\n", s.line-1)
		} else {
			fmt.Fprintf(&s.err, "On line %d of %s:\n", s.line-1, s.fileName)
		}
		s.lastLine = s.line
	}
	fmt.Fprintf(&s.err, format+"\n", args...)
}

// fail is zerr for errors that count.
func (s *cfgSession) fail(format string, args ...any) {
	s.zerr(format, args...)
	s.sawError = true
}

// die prints a message and leaves at once: nothing is saved.
func (s *cfgSession) die(format string, args ...any) {
	s.zerr(format, args...)
	s.dead = true
}

// ask is ask_yesno without a terminal: no answer, and that is an error.
func (s *cfgSession) ask() bool {
	s.sawError = true
	return false
}

// feed reads commands and carries them out.
func (s *cfgSession) feed(text string) {
	lex := newCfgLexer(text, s.mode())
	for !s.dead {
		st := parseStatement(lex)
		s.line = st.line
		switch {
		case st.last && st.bad != nil && st.bad.Kind != cfgEnd: // what does not fit is told where it stands
			s.syntaxError(st)
			return
		case st.last:
			return // a last line without its end is not carried out
		case st.usage:
			s.shortUsage(st.name)
			s.err.WriteString("\n")
			s.usage(&s.err, cfgHelpResourceProperties, false)
		case st.bad != nil:
			s.syntaxError(st)
		case !st.empty:
			s.execute(st)
		}
		if s.sawError && s.fileMode && !s.interactive {
			s.leave = true
		}
		if s.leave && (s.fileMode || s.interactive) {
			return
		}
	}
}

// syntaxError is yyerror.
func (s *cfgSession) syntaxError(st cfgStatement) {
	s.sawError = true
	text := st.bad.Text
	if st.bad.Kind == "\n" {
		text = `\n`
	}
	if s.fileMode {
		fmt.Fprintf(&s.err, "syntax error on line %d at '%s'\n", st.line, text)
	} else {
		fmt.Fprintf(&s.err, "syntax error at '%s'\n", text)
	}
	s.usage(&s.err, cfgHelpSubcommands, false)
}

// finish is cleanup(): what was changed is saved, errors or not.
func (s *cfgSession) finish() int {
	if s.dead {
		return 1
	}
	if !s.global {
		if !s.leave {
			s.ask()
			s.zerr("Resource incomplete.")
			return 1
		}
		s.sawError = true
	}
	if s.changed && s.config != nil {
		s.verify(true)
		if s.changed {
			if !s.force {
				s.ask()
			}
			s.zerr("Configuration not saved.")
			return 1
		}
	}
	if s.changed || s.sawError {
		return 1
	}
	return 0
}

// execute carries out one command.
func (s *cfgSession) execute(st cfgStatement) {
	switch st.name {
	case "add":
		s.add(st)
	case "cancel":
		s.cancel(st)
	case "clear":
		s.clear(st)
	case "commit":
		s.commit(st)
	case "create":
		s.create(st)
	case "delete":
		s.delete(st)
	case "end":
		s.end(st)
	case "exit":
		s.exitCommand(st)
	case "export":
		s.export(st)
	case "help":
		s.help(st)
	case "info":
		s.info(st)
	case "remove":
		s.remove(st)
	case "revert":
		s.revert(st)
	case "select":
		s.selectResource(st)
	case "set":
		s.set(st)
	case "verify":
		if s.options(st, "?") != nil {
			s.verify(false)
		}
	}
}

// options reads the options of a command that takes only options; nil if it
// was asked wrongly, and then its usage has been shown.
func (s *cfgSession) options(st cfgStatement, spec string) map[byte]string {
	found := map[byte]string{}
	options, operands := cli.Getopt(st.args, spec, nil)
	for _, o := range options {
		switch {
		case o.Bad != "":
			s.err.WriteString(cli.Complaint(st.args[0], o)) // getopt(3C) takes it for the program
			s.shortUsage(st.name)
			return nil
		case o.Letter == '?':
			s.longerUsage(st.name)
			return nil
		}
		found[o.Letter] = o.Value
	}
	if len(operands) > 0 {
		s.shortUsage(st.name)
		return nil
	}
	return found
}

// readOnly refuses to change a template.
func (s *cfgSession) readOnly() bool {
	if strings.HasPrefix(s.zone, "SUNW") {
		s.fail("%s: zones beginning with SUNW are read-only.", s.zone)
		return true
	}
	return false
}

func (s *cfgSession) exitCommand(st cfgStatement) {
	o := s.options(st, "?F")
	if o == nil {
		return
	}
	_, s.force = o['F']
	if s.global || s.force {
		s.leave = true
		return
	}
	s.ask()
	s.die("Resource incomplete, input not from terminal and -F not specified:\n%s command ignored, but exiting anyway.", st.name)
}
