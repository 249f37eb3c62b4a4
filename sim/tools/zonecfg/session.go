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
	words    *words
	out, err strings.Builder

	zone   string        // whose configuration this is
	saved  string        // its name as it is saved, what revert goes back to
	config *world.Config // nil: nothing loaded or created
	got    bool          // there was a configuration

	global bool // the scope: all of the zone, or a resource
	kind   string
	work   *world.Resource // the resource of the scope
	old    *world.Resource // the one it replaces; nil: it is new

	changed     bool // to be committed
	sawError    bool
	leave       bool // exit
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
		fmt.Fprintf(&s.err, "On line %d of %s:\n", s.line-1, s.fileName)
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
	s.sawError, s.dead = true, true
}

// feed reads commands and carries them out.
func (s *cfgSession) feed(text string) {
	lex := &cfgLexer{in: text, line: 1, outer: cfgTokens, words: s.words, mode: s.mode()}
	for !s.dead {
		st := parseStatement(lex)
		s.line = st.line
		switch {
		case st.last && st.bad != nil && st.bad.Kind != cfgEnd: // a word that does not fit is reported at its place
			s.syntaxError(st)
			return
		case st.last:
			return // a last line without its end is not carried out
		case st.usage:
			s.shortUsage(st.name)
			s.err.WriteString("\n")
			s.usageOfResources()
			s.usageOfProperties()
		case st.bad != nil:
			s.syntaxError(st)
		case !st.empty:
			s.execute(st)
		}
		if s.sawError && s.fileMode {
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
	where := ""
	if s.fileMode {
		where = fmt.Sprintf(" on line %d", st.line)
	}
	fmt.Fprintf(&s.err, "syntax error%s at '%s'\n", where, st.bad.Text)
	s.usageOfCommands()
}

// finish is cleanup(): what was changed is saved, errors or not.
func (s *cfgSession) finish() int {
	if s.dead {
		return 1
	}
	if !s.global {
		cli.Simulated(!s.leave)
		s.zerr("Resource incomplete.")
		return 1
	}
	if s.changed && s.config != nil {
		s.verify(true)
		if s.changed {
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
	do, known := map[string]func(*cfgSession, cfgStatement){
		"add": (*cfgSession).add, "cancel": (*cfgSession).cancel, "clear": (*cfgSession).clear, "commit": (*cfgSession).commit,
		"create": (*cfgSession).create, "delete": (*cfgSession).delete, "end": (*cfgSession).end, "exit": (*cfgSession).exitCommand,
		"export": (*cfgSession).export, "info": (*cfgSession).info, "remove": (*cfgSession).remove, "revert": (*cfgSession).revert,
		"select": (*cfgSession).selectResource, "set": (*cfgSession).set, "verify": (*cfgSession).check,
	}[st.name]
	// A template is only asked.
	cli.Simulated(known && (!strings.HasPrefix(s.zone, "SUNW") || st.name == "info" || st.name == "export"))
	do(s, st)
}

// options reads the options of a command that takes only options.
func (s *cfgSession) options(st cfgStatement, spec string) map[byte]bool {
	found := map[byte]bool{}
	options, operands := cli.Getopt(st.args, spec, nil)
	for _, o := range options {
		cli.Simulated(o.Bad == "")
		found[o.Letter] = true
	}
	cli.Simulated(len(operands) == 0)
	return found
}

func (s *cfgSession) exitCommand(st cfgStatement) {
	if s.options(st, "F")['F'] || s.global {
		s.leave = true
		return
	}
	s.die("Resource incomplete, input not from terminal and -F not specified:\n%s command ignored, but exiting anyway.", st.name)
}
