package key

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// ErrNoEpoch is an epoch that a source has no secret of.
var ErrNoEpoch = fmt.Errorf("no such epoch: %w", host.ErrNotFound)

// Source has the secrets of epochs. An epoch's secret never changes: what was
// encrypted with it must stay readable.
type Source interface {
	// Secret is that of an epoch. Errors: ErrNoEpoch; ErrSyntax; what reading or
	// running it gave.
	Secret(ctx context.Context, h host.Host, epoch uint64) (Secret, error)
	// Latest is the newest epoch: that of new disks, and the one that others are
	// moved to.
	Latest(ctx context.Context, h host.Host) (uint64, error)
	// Warning is what the operator must know before it is used; empty for
	// nothing.
	Warning() string
	// String names the source.
	String() string
}

// File is a file of the sled with a line for each epoch, "EPOCH SECRET", the
// secret as 64 hexadecimal digits; before them there may be "salt SALT". It must
// be a file that nobody else can read, on storage that lasts: without it the
// disks cannot be read any more.
type File struct{ Name string }

// Command is a command of the sled that prints secrets. It is called with one
// more word: an epoch, and prints its secret as 64 hexadecimal digits; or
// "latest", and prints the newest epoch. Its program is a bare name.
type Command struct {
	Argv []string
	// Salt is that of the derivation: SHA3-256 of the rack's id for a sled
	// agent's disks (oxidecomputer/omicron key-manager).
	Salt [Size]byte
}

// Development is the public secret with which a sled agent without trust quorum
// runs (HardcodedSecretRetriever of oxidecomputer/omicron sled-agent): epoch 0
// and no other.
type Development struct{}

var (
	_ Source = File{}
	_ Source = Command{}
	_ Source = Development{}
)

// Warning is empty.
func (File) Warning() string { return "" }

// Warning is empty.
func (Command) Warning() string { return "" }

// Warning says that nothing is protected.
func (Development) Warning() string {
	return "disks are encrypted with the public development key: anyone who has a disk can read it"
}

// String names the file.
func (s File) String() string { return "key file " + s.Name }

// String names the program, not its arguments.
func (s Command) String() string {
	return "key command " + strings.Join(s.Argv[:min(1, len(s.Argv))], "")
}

// String names it.
func (Development) String() string { return "development key" }

// Secret reads the file.
func (s File) Secret(_ context.Context, h host.Host, epoch uint64) (Secret, error) {
	all, err := s.read(h.Files())
	if err != nil {
		return Secret{}, err
	}
	secret, there := all[epoch]
	if !there {
		return Secret{}, fmt.Errorf("%v: epoch %d: %w", s, epoch, ErrNoEpoch)
	}
	return secret, nil
}

// Latest reads the file.
func (s File) Latest(_ context.Context, h host.Host) (uint64, error) {
	all, err := s.read(h.Files())
	if err != nil {
		return 0, err
	}
	return slices.Max(slices.Collect(maps.Keys(all))), nil
}

// maxFile is the size that a key file may have, in bytes: some 10,000 epochs.
const maxFile = 1 << 20

func (s File) read(files host.Files) (secrets, error) {
	info, err := files.Stat(s.Name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%v: %w", s, err)
	case !info.Mode.IsRegular():
		return nil, fmt.Errorf("%v: %v is no file: %w", s, info.Mode, host.ErrRefused)
	case info.Mode.Perm()&0o077 != 0:
		return nil, fmt.Errorf("%v: others can read it, its mode is %04o: chmod 600 it, and think whether its secrets still are: %w",
			s, info.Mode.Perm(), host.ErrRefused)
	case info.Size > maxFile:
		return nil, fmt.Errorf("%v: %d bytes: %w", s, info.Size, ErrSyntax)
	}
	data, err := host.ReadFile(files, s.Name)
	if err == nil {
		var all secrets
		if all, err = parseFile(data); err == nil {
			return all, nil
		}
	}
	return nil, fmt.Errorf("%v: %w", s, err)
}

// Secret runs the command.
func (s Command) Secret(ctx context.Context, h host.Host, epoch uint64) (Secret, error) {
	out, err := s.run(ctx, h, secretCommand(s.Argv, epoch))
	if err == nil {
		var secret [Size]byte
		if secret, err = parseSecret(out); err == nil {
			return newSecret(epoch, secret, s.Salt), nil
		}
	}
	return Secret{}, fmt.Errorf("%v: secret of epoch %d: %w", s, epoch, err)
}

// Latest runs the command.
func (s Command) Latest(ctx context.Context, h host.Host) (uint64, error) {
	out, err := s.run(ctx, h, latestCommand(s.Argv))
	if err == nil {
		var epoch uint64
		if epoch, err = parseLatest(out); err == nil {
			return epoch, nil
		}
	}
	return 0, fmt.Errorf("%v: the newest epoch: %w", s, err)
}

// run gives what the command printed. Of one that failed it is forgotten: it may
// be a secret, and errors show what commands print.
func (s Command) run(ctx context.Context, h host.Host, c host.Command) ([]byte, error) {
	if len(s.Argv) == 0 {
		return nil, errors.New("there is no command")
	}
	r, err := h.Run(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case r.Exit != 0:
		r.Stdout = nil
		return nil, &host.CommandError{Command: c, Result: r}
	}
	return r.Stdout, nil
}

// Secret is that of epoch 0.
func (s Development) Secret(_ context.Context, _ host.Host, epoch uint64) (Secret, error) {
	if epoch != 0 {
		return Secret{}, fmt.Errorf("%v: epoch %d: %w", s, epoch, ErrNoEpoch)
	}
	return newSecret(0, [Size]byte(bytes.Repeat([]byte{0x1d}, Size)), [Size]byte{}), nil
}

// Latest is 0.
func (Development) Latest(context.Context, host.Host) (uint64, error) { return 0, nil }
