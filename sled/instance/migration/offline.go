package migration

import (
	"context"
	"io"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// Feed runs another sled's sledctl as Remote does, and has it read what in reads, to its end.
type Feed func(ctx context.Context, words []string, in io.Reader) (Answer, error)

// Asked is what another sled's sledctl has printed, if it has succeeded. Errors: *RemoteError.
func Asked(m record.Migration, a Answer, err error) ([]byte, error) {
	if err != nil || a.Exit != 0 {
		return nil, refusalOf(m.Sled(), a, err)
	}
	return a.Stdout, nil
}

// Foreign is an answer that is none to what was asked.
func Foreign(m record.Migration, a Answer) error {
	e := refusalOf(m.Sled(), a, errForeign)
	e.Said = false
	return e
}

// Command is the command that runs a sledctl of another sled.
func Command(m record.Migration, words []string, stdin []byte) host.Command {
	line := commandLine(m.Target, words)
	return host.Command{Program: line[0], Args: line[1:], Stdin: stdin}
}

// Words are those of Command, in one list.
func Words(m record.Migration, words []string) []string { return commandLine(m.Target, words) }

// HasArrivedBy is nil if what a sledctl has printed is the instance, arrived by the migration.
func HasArrivedBy(printed []byte, id, migration string) error {
	return arrivalOf(Answer{Stdout: printed}, id, migration)
}

// IsNotFound reports whether another sled's sledctl has said that it does not have what it was asked for.
func (e *RemoteError) IsNotFound() bool { return e.Said && e.Exit == exitMissing }

// GivesUp has the target drop what it has on record of an arrival, and reports whether there is none any longer.
func GivesUp(ctx context.Context, run Remote, m record.Migration, id string) error {
	s := Send{ID: id, Migration: m}
	answer, err := run(ctx, commandLine(m.Target, s.giveUp()), nil)
	_, err = Asked(m, answer, err)
	return err
}

// InTransitError is an instance that is stopped here and departs, and of which the target has not said whether it is there.
type InTransitError struct {
	Name string
	Err  error // what the target said last
	Why  string
}

// Error says what is known.
func (e *InTransitError) Error() string {
	return "instance \"" + e.Name + "\" is stopped here, and departs: " + e.Why + ": " + e.Err.Error()
}

func (*InTransitError) Kind() fault.Kind { return fault.Partial }

// Unwrap gives what the target said.
func (e *InTransitError) Unwrap() error { return e.Err }

// Hint says what finishes it.
func (e *InTransitError) Hint() string {
	return "to finish it, run: sledctl instance migrate " + e.Name + "; to start it here again, add --cancel"
}
