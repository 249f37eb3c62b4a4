// Package reservoir drives the VMM reservoir of an illumos host: memory that
// the kernel has set aside for guests, so that a guest's start neither waits
// for memory nor fails for lack of it (usr/src/uts/intel/io/vmm/vmm_reservoir.c).
package reservoir

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// State is the reservoir as the kernel tells it, in bytes, which are whole MiB.
type State struct {
	Free      uint64
	Allocated uint64 // to guests, from the reservoir
	Transient uint64 // to guests, next to the reservoir
	Limit     uint64 // of all three
}

// Size is what the reservoir holds, free or not.
func (s State) Size() uint64 { return s.Free + s.Allocated }

// ErrSyntax is output that is not rsrvrctl's.
var ErrSyntax = errors.New("output of rsrvrctl that cannot be understood")

// ErrMemory is output that does not tell the host's memory.
var ErrMemory = errors.New("output of prtconf -m that tells no memory")

// ErrLimit is a size that the kernel does not let the reservoir have: more than
// its limit, or less than guests have taken (ENOSPC of vmmr_set_target).
var ErrLimit = fmt.Errorf("%w: beyond what the kernel allows, or below what guests have taken", host.ErrRefused)

func queryCommand() host.Command {
	return host.Command{Program: "rsrvrctl", Args: []string{"-q"}, ReadOnly: true}
}

func memoryCommand() host.Command {
	return host.Command{Program: "prtconf", Args: []string{"-m"}, ReadOnly: true}
}

func setCommand(size uint64) host.Command {
	return host.Command{Program: "rsrvrctl", Args: []string{"-s", strconv.FormatUint(size>>20, 10)}}
}

// Parse reads the output of rsrvrctl -q (usr/src/cmd/rsrvrctl/rsrvrctl.c,
// do_query). Errors: ErrSyntax.
func Parse(out []byte) (State, error) {
	var s State
	fields := map[string]*uint64{
		"Free MiB": &s.Free, "Allocated MiB": &s.Allocated, "Transient Allocated MiB": &s.Transient, "Size limit MiB": &s.Limit,
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		to := fields[name]
		n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 44) // MiB that fit into 64 bits of bytes
		if to == nil || err != nil {
			return State{}, fmt.Errorf("%w: %q", ErrSyntax, lines.Text())
		}
		*to = n << 20
		delete(fields, name)
	}
	if len(fields) > 0 {
		return State{}, fmt.Errorf("%w: lines are missing", ErrSyntax)
	}
	return s, nil
}

// Query asks for the state. Errors: ErrSyntax, a *host.CommandError.
func Query(ctx context.Context, h host.Host) (State, error) {
	out, err := run(ctx, h, queryCommand())
	if err != nil {
		return State{}, fmt.Errorf("query the VMM reservoir: %w", err)
	}
	return Parse(out)
}

// Memory is the host's memory, in bytes, which are whole MiB (usr/src/cmd/prtconf/prtconf.c).
// Errors: ErrMemory, a *host.CommandError.
func Memory(ctx context.Context, h host.Host) (uint64, error) {
	out, err := run(ctx, h, memoryCommand())
	if err != nil {
		return 0, fmt.Errorf("query the memory: %w", err)
	}
	return parseMemory(out)
}

func parseMemory(out []byte) (uint64, error) {
	n, err := strconv.ParseUint(strings.TrimSuffix(string(out), "\n"), 10, 44)
	if err != nil || n == 0 { // prtconf prints 0 where it cannot tell
		return 0, fmt.Errorf("%w: %q", ErrMemory, out)
	}
	return n << 20, nil
}

// Set gives the reservoir a size, in bytes, of which parts of a MiB do not
// count. It takes as long as the kernel needs to free so much memory. Errors:
// ErrLimit, a *host.CommandError.
type Set struct {
	Size uint64
	Old  uint64 // what it was, for the undo
}

// Verb names the step.
func (Set) Verb() string { return "reservoir.set" }

// Undo gives it the old size.
func (s Set) Undo() any { return Set{Size: s.Old, Old: s.Size} }

// Explain shows the command.
func (s Set) Explain() []host.Line { return []host.Line{host.CommandLine(setCommand(s.Size))} }

// Do runs it.
func (s Set) Do(ctx context.Context, h host.Host) error {
	_, err := run(ctx, h, setCommand(s.Size))
	return err
}

func run(ctx context.Context, h host.Host, c host.Command) ([]byte, error) {
	result, err := h.Run(ctx, c)
	if err != nil {
		return nil, err
	}
	if result.Exit == 0 {
		return result.Stdout, nil
	}
	failed := &host.CommandError{Command: c, Result: result}
	if strings.HasSuffix(strings.TrimSpace(string(result.Stderr)), ": No space left on device") {
		failed.Means = ErrLimit
	}
	return nil, failed
}
