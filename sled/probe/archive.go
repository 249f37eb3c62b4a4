package probe

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
)

// Archive is a recording: what a sled answered.
type Archive struct {
	Kernel  string // uname -v
	Program string // version of sledctl
	Time    time.Time
	Answers []Answer
}

// Answer is what one command printed, and how it ended.
type Answer struct {
	Argv           []string
	Exit           int
	Stdout, Stderr []byte
	At             time.Time
	Elapsed        time.Duration
	// Failed says why the command did not run to its end; empty: it did.
	Failed string
	// Active says that it was asked while something was made.
	Active bool
}

// Result is the answer as the host gives it.
func (a Answer) Result() host.Result {
	return host.Result{Exit: a.Exit, Stdout: a.Stdout, Stderr: a.Stderr}
}

// format is the version of the archive's layout.
const format = 1

// header is the first line of an archive.
type header struct {
	Kind    string    `json:"kind"`
	Format  int       `json:"format"`
	Program string    `json:"sledctl,omitempty"`
	Kernel  string    `json:"kernel"`
	Time    time.Time `json:"time"`
}

const kind = "sledctl/probe"

// line is a later line: a command. An output that is not text is in Base64.
type line struct {
	Argv       []string  `json:"argv"`
	Exit       int       `json:"exit"`
	Stdout     string    `json:"stdout"`
	Stderr     string    `json:"stderr"`
	StdoutData string    `json:"stdout_base64,omitempty"`
	StderrData string    `json:"stderr_base64,omitempty"`
	At         time.Time `json:"at"`
	Elapsed    int64     `json:"elapsed_us"`
	Failed     string    `json:"failed,omitempty"`
	Active     bool      `json:"active,omitempty"`
}

// Write writes an archive: a JSON object per line, the commands in the order in which
// they ran.
func (a Archive) Write(to io.Writer) error {
	var out bytes.Buffer
	lines := json.NewEncoder(&out)
	lines.SetEscapeHTML(false)
	if err := lines.Encode(header{kind, format, a.Program, a.Kernel, a.Time.UTC()}); err != nil {
		return err
	}
	for _, one := range a.Answers {
		l := line{Argv: one.Argv, Exit: one.Exit, At: one.At.UTC(), Elapsed: one.Elapsed.Microseconds(), Failed: one.Failed, Active: one.Active}
		l.Stdout, l.StdoutData = text(one.Stdout)
		l.Stderr, l.StderrData = text(one.Stderr)
		if err := lines.Encode(l); err != nil {
			return err
		}
	}
	_, err := to.Write(out.Bytes())
	return err
}

func text(data []byte) (plain, encoded string) {
	if utf8.Valid(data) {
		return string(data), ""
	}
	return "", base64.StdEncoding.EncodeToString(data)
}

func bytesOf(plain, encoded string) ([]byte, error) {
	if encoded == "" {
		return []byte(plain), nil
	}
	return base64.StdEncoding.DecodeString(encoded)
}

// ErrArchive is the error of a file that is no archive, or not a complete one.
var ErrArchive = fault.New(fault.Usage, "not an archive of sledctl probe record")

// Read reads what Write has written.
func Read(from io.Reader) (Archive, error) {
	var h header
	in := bufio.NewReader(from)
	first, _ := in.ReadBytes('\n')
	if err := json.Unmarshal(first, &h); err != nil || h.Kind != kind {
		return Archive{}, ErrArchive
	}
	if h.Format != format {
		return Archive{}, fmt.Errorf("%w: format %d, and this sledctl reads %d", ErrArchive, h.Format, format)
	}
	a := Archive{Kernel: h.Kernel, Program: h.Program, Time: h.Time}
	for n := 2; ; n++ {
		data, err := in.ReadBytes('\n')
		if err == io.EOF && len(data) == 0 {
			return a, nil
		}
		one, err := parseLine(data)
		if err != nil {
			return Archive{}, fmt.Errorf("%w: line %d: %w", ErrArchive, n, err)
		}
		a.Answers = append(a.Answers, one)
	}
}

func parseLine(data []byte) (a Answer, err error) {
	var l line
	if err := json.Unmarshal(data, &l); err != nil {
		return a, err
	}
	if len(l.Argv) == 0 || l.Argv[0] == "" {
		return a, fmt.Errorf("it has no command")
	}
	a = Answer{Argv: l.Argv, Exit: l.Exit, At: l.At, Elapsed: time.Duration(l.Elapsed) * time.Microsecond, Failed: l.Failed, Active: l.Active}
	if a.Stdout, err = bytesOf(l.Stdout, l.StdoutData); err != nil {
		return a, err
	}
	a.Stderr, err = bytesOf(l.Stderr, l.StderrData)
	return a, err
}
