package host

import (
	"fmt"
	"io/fs"
	"strings"
)

// Line is one thing that a step will do to the host, or wait for, written as
// text for a shell: what --explain prints. Lines of Mutates kinds are compared
// with the trace of the same run.
type Line struct {
	Kind LineKind `json:"kind"`
	Text string   `json:"text"`
}

// LineKind says how a line touches the host.
type LineKind string

// The kinds. LineRun, LineFile and LineRequest change something.
const (
	LineRun     LineKind = "run"     // a command that changes something
	LineQuery   LineKind = "query"   // a command that only looks
	LineFile    LineKind = "file"    // a file written, removed, renamed or chmodded
	LineRequest LineKind = "request" // an HTTP request that changes something
	LineWait    LineKind = "wait"    // a comment: "# waits until …"
	LineRemote  LineKind = "remote"  // a command that changes something on another sled
)

// Mutates says whether the line changes something.
func (l Line) Mutates() bool {
	return l.Kind == LineRun || l.Kind == LineFile || l.Kind == LineRequest
}

// CommandLine is the line of a command: LineQuery if it is read-only.
func CommandLine(c Command) Line {
	kind := LineRun
	if c.ReadOnly {
		kind = LineQuery
	}
	return Line{Kind: kind, Text: c.Shell()}
}

// Program is what a line of a command runs, behind a pipe the last; "" for other lines.
func (l Line) Program() string {
	if l.Kind != LineRun && l.Kind != LineQuery {
		return ""
	}
	program := ""
	for rest := l.Text; rest != ""; {
		var word string
		word, rest = firstWord(rest)
		switch {
		case word == "|":
			program = ""
		case strings.HasPrefix(word, "<<"): // what follows is its input
			return program
		case program == "" && !isAssignment(word):
			program = word
		}
	}
	return program
}

// firstWord cuts off a word as Quote writes it, quotes included.
func firstWord(s string) (word, rest string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\'':
			quoted = !quoted
		case c == '\\' && !quoted:
			i++
		case c == ' ' && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

// isAssignment tells a variable that Shell puts before the program.
func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// FileLine is the line of a file that is written whole, as a here-document.
func FileLine(name string, data []byte) Line {
	return Line{Kind: LineFile, Text: "cat > " + Quote(name) + hereDocument(data)}
}

// AppendLine is the line of data that is added to a file.
func AppendLine(name string, data []byte) Line {
	return Line{Kind: LineFile, Text: "cat >> " + Quote(name) + hereDocument(data)}
}

// hereDocument ends with a word that is not in the data. A shell cannot leave
// out the last line break, so it is there even if the data has none.
func hereDocument(data []byte) string {
	body := string(data)
	if body != "" && !strings.HasSuffix(body, "\n") {
		body += "\n"
	}
	end := "EOF"
	for strings.Contains(body, end) {
		end += "_"
	}
	return fmt.Sprintf(" <<'%s'\n%s%s", end, body, end)
}

// DeviceLine is the line of what is written to a device: what says what it is.
func DeviceLine(name, what string) Line {
	return Line{Kind: LineFile, Text: "dd of=" + Quote(name) + " # " + what}
}

// ReceiveLine is the line of what another machine sends and a file takes, all or the rest of it.
func ReceiveLine(name, from string) Line {
	return Line{Kind: LineFile, Text: "curl -C - -o " + Quote(name) + " " + Quote(from)}
}

// ChmodLine is the line of a change of mode.
func ChmodLine(name string, mode fs.FileMode) Line {
	return Line{Kind: LineFile, Text: fmt.Sprintf("chmod %04o %s", mode.Perm(), Quote(name))}
}

// CopyLine is the line of a file that is replaced by a copy of another.
func CopyLine(from, to string) Line {
	return Line{Kind: LineFile, Text: "cp " + Quote(from) + " " + Quote(to)}
}

// RemoveLine is the line of a file or empty directory that is removed.
func RemoveLine(name string) Line {
	return Line{Kind: LineFile, Text: "rm -d " + Quote(name)}
}

// MkdirLine is the line of a directory that is made, with its parents.
func MkdirLine(name string, mode fs.FileMode) Line {
	return Line{Kind: LineFile, Text: fmt.Sprintf("mkdir -p -m %04o %s", mode.Perm(), Quote(name))}
}

// RenameLine is the line of a rename.
func RenameLine(from, to string) Line {
	return Line{Kind: LineFile, Text: "mv " + Quote(from) + " " + Quote(to)}
}

// RequestLine is the line of an HTTP request that changes something, as curl
// would send it. Body may be nil.
func RequestLine(method, url string, header []string, body []byte) Line {
	var b strings.Builder
	b.WriteString("curl -sS -X " + method)
	for _, h := range header {
		b.WriteString(" -H " + Quote(h))
	}
	if body != nil {
		b.WriteString(" --data " + Quote(string(body)))
	}
	b.WriteString(" " + Quote(url))
	return Line{Kind: LineRequest, Text: b.String()}
}

// WaitLine is the line of a wait; what completes "waits until …".
func WaitLine(what string) Line { return Line{Kind: LineWait, Text: "# waits until " + what} }

// Shell is the command as a shell would run it where sledctl runs: Env first,
// then Argv, quoted; stdin as a here-document, or what comes from another command behind that.
func (c Command) Shell() string {
	var b strings.Builder
	if c.From != "" {
		b.WriteString(c.From + " | ")
	}
	for _, e := range c.Env {
		k, v, _ := strings.Cut(e, "=")
		b.WriteString(k + "=" + Quote(v) + " ")
	}
	for i, a := range c.Argv() {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(Quote(a))
	}
	if c.Stdin != nil {
		b.WriteString(hereDocument(c.Stdin))
	}
	return b.String()
}

// statusMark opens the last line that a command in a zone prints: its exit
// status. zlogin(1) reports 0 if a signal killed the shell, so only this line
// counts.
//
// Guess zlogin-passes-output: zlogin(1) passes standard output through unchanged where it is no
// terminal, so that the line with the status comes last.
// Check: `zlogin ZONE 'printf "a\nb"; echo x' | od -c`
const statusMark = "sledctl-status"

// Argv is the command line as it is executed, program first. It is the one
// place that makes zlogin words: zlogin joins them with blanks and gives the
// string to the zone's login shell, so they are quoted here, and a last
// command prints the status (see statusMark). -n keeps zlogin from our stdin.
func (c Command) Argv() []string {
	own := append([]string{c.Program}, c.Args...)
	if c.Zone == "" {
		return own
	}
	words := make([]string, 0, len(own)+len(c.Env))
	for _, e := range c.Env {
		k, v, _ := strings.Cut(e, "=")
		words = append(words, k+"="+Quote(v))
	}
	for _, a := range own {
		words = append(words, Quote(a))
	}
	script := strings.Join(words, " ") + `; printf '\n` + statusMark + ` %d\n' "$?"`
	return []string{"zlogin", "-n", c.Zone, script}
}

// Quote renders s as one word of a POSIX shell.
func Quote(s string) string {
	if s == "" {
		return "''"
	}
	plain := strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("@%_+=:,./-", r))
	}) < 0
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
