// Package sleds is the file in which an operator names the sleds that she works on, and
// how each is reached.
package sleds

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
)

// File are the sleds by name. The zero value has none.
type File struct {
	Current string          `toml:"current,omitempty"` // that is meant where none is named
	Sleds   map[string]Sled `toml:"sleds"`
}

// Sled is how one is reached: in exactly one of three ways.
type Sled struct {
	Host  string `toml:"host,omitempty"`  // as --host
	Agent string `toml:"agent,omitempty"` // as --agent
	SSH   string `toml:"ssh,omitempty"`   // what ssh(1) is given: the machine, and the command of its sledctl

	Cert  string `toml:"tls_cert,omitempty"` // as the flags of --agent
	Key   string `toml:"tls_key,omitempty"`
	CA    string `toml:"tls_ca,omitempty"`
	Token string `toml:"token_file,omitempty"`
}

// Local is the name of the machine that sledctl runs on.
const Local = "local"

// All stands for every sled of the file.
const All = "all"

// Error is what is wrong with a file of sleds.
type Error struct{ Name, Problem string }

func (e *Error) Error() string { return e.Name + ": " + e.Problem }

func (*Error) Kind() fault.Kind { return fault.Usage }

// Hint is what to do about it, or what works meanwhile.
func (e *Error) Hint() string { return "correct " + e.Name + ", or add --sled " + Local }

// Parse reads a file; name is for messages. The error is an *Error that names the line or
// the field.
func Parse(name string, data []byte) (File, error) {
	var f File
	decoder := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil {
		return File{}, &Error{name, toldBy(err)}
	}
	if err := f.check(); err != nil {
		return File{}, &Error{name, err.Error()}
	}
	return f, nil
}

// toldBy is the library's error with the line that it is about.
func toldBy(err error) string {
	if unknown, ok := errors.AsType[*toml.StrictMissingError](err); ok && len(unknown.Errors) > 0 {
		row, _ := unknown.Errors[0].Position()
		key := strings.Join(unknown.Errors[0].Key(), ".")
		return fmt.Sprintf("line %d: unknown key %s: a sled has host, agent or ssh, and tls_cert, tls_key, tls_ca, token_file", row, key)
	}
	if wrong, ok := errors.AsType[*toml.DecodeError](err); ok {
		row, _ := wrong.Position()
		return fmt.Sprintf("line %d: not TOML, or a value that is no text", row)
	}
	return "it cannot be read as TOML"
}

func (f File) check() error {
	for _, name := range f.Names() {
		if err := CheckName(name); err != nil {
			return err
		}
		if err := f.Sleds[name].Check(); err != nil {
			return fmt.Errorf("sleds.%s: %w", name, err)
		}
	}
	if _, ok := f.Sleds[f.Current]; f.Current != "" && !ok {
		return fmt.Errorf("current: no sled %q", f.Current)
	}
	return nil
}

// CheckName refuses what cannot name a sled.
func CheckName(name string) error {
	switch {
	case name == Local || name == All:
		return fmt.Errorf("a sled cannot be called %q: that has a meaning of its own", name)
	case !regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`).MatchString(name):
		return fmt.Errorf("sled %q: want lower-case letters, digits, dots and hyphens, at most 63", name)
	}
	return nil
}

// Check refuses what cannot be reached.
func (s Sled) Check() error {
	ways := 0
	for _, way := range []string{s.Host, s.Agent, s.SSH} {
		if way != "" {
			ways++
		}
	}
	switch {
	case ways != 1:
		return errors.New("want one of host, agent and ssh")
	case s.Agent == "" && s.Cert+s.Key+s.CA+s.Token != "":
		return errors.New("tls_cert, tls_key, tls_ca and token_file are for agent")
	case s.SSH != "" && (len(strings.Fields(s.SSH)) == 0 || strings.HasPrefix(strings.TrimSpace(s.SSH), "-")):
		return fmt.Errorf("ssh %q: want the machine first, then the command that runs its sledctl", s.SSH)
	}
	return nil
}

// Way is how it is reached, for people.
func (s Sled) Way() string {
	switch {
	case s.SSH != "":
		return "ssh " + strings.Fields(s.SSH)[0]
	case s.Agent != "":
		return s.Agent
	}
	return s.Host
}

// Names are those of all sleds, sorted.
func (f File) Names() []string { return slices.Sorted(maps.Keys(f.Sleds)) }

// Text is the file as it is written.
func (f File) Text() ([]byte, error) {
	var out bytes.Buffer
	err := toml.NewEncoder(&out).Encode(f)
	return out.Bytes(), err
}

// Command is what runs a command line on the sled by ssh: its sledctl, sledctl if none is
// named, with each word quoted for the shell there. Terminal asks for one there.
func (s Sled) Command(words []string, terminal bool) []string {
	given := strings.Fields(s.SSH)
	line := []string{"ssh"}
	if terminal {
		line = append(line, "-t")
	}
	line = append(line, given[0])
	if given = given[1:]; len(given) == 0 {
		given = []string{"sledctl"}
	}
	line = append(line, given...)
	for _, word := range words {
		line = append(line, host.Quote(word))
	}
	return line
}
