package host

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Check says what no host can run: a program that is not a bare name, a
// variable without a name, input for a command in a zone (zlogin -n has
// none), or a pipe on the wrong side (Input, Output).
func (c Command) Check() error {
	switch {
	case c.Program == "" || strings.ContainsAny(c.Program, "/\x00"):
		return fmt.Errorf("program %q: not a bare name", c.Program)
	case c.Zone != "" && (c.Stdin != nil || c.Input != nil || c.Output != nil):
		return fmt.Errorf("%s in zone %q: a command in a zone has no input, and its output is kept", c.Program, c.Zone)
	case c.Input != nil && (c.ReadOnly || c.Stdin != nil || c.From == ""):
		return fmt.Errorf("%s: input from a reader is for what changes something, has a name, and is all that it has", c.Program)
	case c.Output != nil && !c.ReadOnly:
		return fmt.Errorf("%s: what changes something prints into a file", c.Program)
	}
	for _, e := range c.Env {
		if i := strings.IndexByte(e, '='); i <= 0 {
			return fmt.Errorf("%s: environment %q: not KEY=VALUE", c.Program, e)
		}
	}
	for _, word := range append(c.Args[:len(c.Args):len(c.Args)], c.Env...) {
		if strings.ContainsRune(word, 0) {
			return errors.New(c.Program + ": a zero byte in an argument")
		}
	}
	return nil
}

// FinishZoneResult turns what zlogin gave for a command in a zone into what
// the command itself gave: its status is read from the line that Argv made the
// zone's shell print, and that line goes. Without it Unknown is set. Results of
// other commands are returned as they are.
func FinishZoneResult(c Command, r Result) Result {
	if c.Zone == "" {
		return r
	}
	out, status, found := splitStatus(r.Stdout)
	if !found {
		r.Unknown = true
		return r
	}
	r.Stdout, r.Exit = out, status
	return r
}

// splitStatus takes the status line off the end of what a command printed. The
// line break before it is the line's own.
func splitStatus(stdout []byte) (out []byte, status int, found bool) {
	body, ended := bytes.CutSuffix(stdout, []byte("\n"))
	mark := []byte("\n" + statusMark + " ")
	at := bytes.LastIndex(body, mark)
	if !ended || at < 0 {
		return stdout, 0, false
	}
	number := string(body[at+len(mark):])
	status, err := strconv.Atoi(number)
	if err != nil || status < 0 || status > 255 || strconv.Itoa(status) != number {
		return stdout, 0, false
	}
	return stdout[:at], status, true
}
