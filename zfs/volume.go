package zfs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
)

// Volumes: made at a size, or cloned from a snapshot of one, grown, and renamed. None is ever made
// smaller: what lies behind its new end would be lost.

// The sizes of a volume's blocks in bytes, powers of 2: what zfs takes
// (SPA_MINBLOCKSIZE and SPA_OLD_MAXBLOCKSIZE of usr/src/uts/common/sys/spa.h), and what it takes
// where nobody says (ZVOL_DEFAULT_BLOCKSIZE of usr/src/uts/common/sys/fs/zfs.h).
const (
	LeastBlock   = 512
	DefaultBlock = 8 << 10
	MostBlock    = 128 << 10
)

// MostVolume is the largest size of a volume: that of an off_t (zvol_check_volsize of
// usr/src/uts/common/fs/zfs/zvol.c).
const MostVolume = math.MaxInt64 / MostBlock * MostBlock

// VolumeSize is a size rounded up to whole blocks, of whichever size: older libraries round
// by themselves, others refuse what is no multiple (zfs_create of libzfs_dataset.c).
func VolumeSize(size uint64) uint64 { return (size + MostBlock - 1) / MostBlock * MostBlock }

// Reservation is what is kept back for a volume of this size that is not sparse, in bytes:
// its blocks, and twice the blocks that point to them (zvol_volsize_to_reservation of
// usr/src/lib/libzfs/common/libzfs_dataset.c).
//
// Guess reservation-of-single-vdevs: the reservation of a volume is that of a pool without
// raidz, where newer libraries add what parity and padding take, and of copies=1.
// Check: `zfs create -V 1G POOL/v; zfs get -Hp -o value refreservation POOL/v` is 1109393408
func Reservation(size, block uint64) uint64 {
	const perIndirect, indirect, levels, copies = 1 << 10, 128 << 10, 7, 2
	blocks := uint64(levels)
	for n := size / block; n > 1; {
		n = (n + perIndirect - 1) / perIndirect
		blocks += n
	}
	return size + blocks*copies*indirect
}

// CreateVolume makes a volume. One of its name must not exist (host.ErrExists), its parent
// must. ErrSpace: there is no room for it. Where its parent is encrypted it is, too, and the
// key must be loaded (ErrKeyNotLoaded).
type CreateVolume struct {
	Dataset     string
	Size, Block uint64     // bytes: of all, whole blocks, and of a block
	Thin        bool       // nothing is kept back for it
	Properties  []Property // set in the same command
}

// CloneVolume makes a volume that begins as a snapshot of another of its pool, with the size and the
// blocks of that; nothing is kept back for it. One of its name must not exist (host.ErrExists), the
// snapshot must (host.ErrNotFound).
type CloneVolume struct {
	Snapshot, Dataset string
	Properties        []Property // set in the same command
}

// GrowVolume makes a volume larger, also one that is in use. What is kept back for it grows
// with it (zfs_add_synthetic_resv of libzfs_dataset.c). GUID must be the dataset's
// (*OtherError); a size below the present one is a *ShrinkError.
type GrowVolume struct {
	Dataset, GUID string
	Size          uint64
}

// RenameVolume gives a volume that is not in use another name in its pool. GUID must be the
// dataset's (*OtherError); one that has the new name is host.ErrExists.
type RenameVolume struct{ Dataset, GUID, To string }

// ShrinkError is a volume that is larger than it is to become. Its kind is host.ErrRefused.
type ShrinkError struct {
	Dataset  string
	Is, Want uint64
}

// Error shows both sizes.
func (e *ShrinkError) Error() string {
	return fmt.Sprintf("volume %s has %d bytes, which is more than %d: it is not made smaller", e.Dataset, e.Is, e.Want)
}

// Kind is that it is refused.
func (*ShrinkError) Kind() fault.Kind { return fault.Refused }

// Unwrap is the kind.
func (e *ShrinkError) Unwrap() error { return host.ErrRefused }

// Verb names the step.
func (CreateVolume) Verb() string { return "zfs.create-volume" }

// Verb names the step.
func (CloneVolume) Verb() string { return "zfs.clone-volume" }

// Verb names the step.
func (GrowVolume) Verb() string { return "zfs.grow-volume" }

// Verb names the step.
func (RenameVolume) Verb() string { return "zfs.rename-volume" }

// Undo is Destroy.
func (s CreateVolume) Undo() any { return Destroy{Dataset: s.Dataset, Type: TypeVolume} }

// Undo is Destroy.
func (s CloneVolume) Undo() any { return Destroy{Dataset: s.Dataset, Type: TypeVolume} }

// Undo is nil: it is not made smaller again.
func (GrowVolume) Undo() any { return nil }

// Undo is the way back.
func (s RenameVolume) Undo() any { return RenameVolume{Dataset: s.To, GUID: s.GUID, To: s.Dataset} }

// Explain is the zfs create.
func (s CreateVolume) Explain() []host.Line {
	if s.check() != nil {
		return nil
	}
	return []host.Line{host.CommandLine(createVolumeCommand(s))}
}

// Explain is the zfs clone.
func (s CloneVolume) Explain() []host.Line {
	if s.check() != nil {
		return nil
	}
	return []host.Line{host.CommandLine(cloneVolumeCommand(s))}
}

// Explain is the zfs set.
func (s GrowVolume) Explain() []host.Line {
	return []host.Line{host.CommandLine(setCommand(s.Dataset, s.property()))}
}

// Explain is the zfs rename.
func (s RenameVolume) Explain() []host.Line {
	return []host.Line{host.CommandLine(renameCommand(s.Dataset, s.To))}
}

func (s GrowVolume) property() Property {
	return Property{Name: "volsize", Value: strconv.FormatUint(s.Size, 10)}
}

func (s CreateVolume) check() error {
	switch err := errors.Join(ValidateName(s.Dataset), validateProperties(s.Properties)); {
	case err != nil:
		return err
	case s.Block < LeastBlock || s.Block > MostBlock || s.Block&(s.Block-1) != 0:
		return fmt.Errorf("a block of %d bytes is no power of 2 from %d to %d", s.Block, LeastBlock, MostBlock)
	case s.Size == 0 || s.Size > MostVolume || s.Size%s.Block != 0:
		return fmt.Errorf("a size of %d bytes is no multiple of its blocks of %d, or above %d", s.Size, s.Block, uint64(MostVolume))
	}
	return nil
}

func (s CloneVolume) check() error {
	return errors.Join(ValidateSnapshotName(s.Snapshot), ValidateName(s.Dataset), validateProperties(s.Properties))
}

// Do creates it. Only a volume that did not exist before is removed again.
func (s CreateVolume) Do(ctx context.Context, h host.Host) error {
	if err := s.check(); err != nil {
		return fmt.Errorf("create volume: %w", err)
	}
	pool, _, _ := strings.Cut(s.Dataset, "/")
	return makeVolume(ctx, h, "create", s.Dataset, createVolumeCommand(s), pool)
}

// Do clones it. Only a volume that did not exist before is removed again.
func (s CloneVolume) Do(ctx context.Context, h host.Host) error {
	if err := s.check(); err != nil {
		return fmt.Errorf("clone volume: %w", err)
	}
	return makeVolume(ctx, h, "clone", s.Dataset, cloneVolumeCommand(s), s.Snapshot)
}

// makeVolume makes a volume by a command that names it, and another object.
func makeVolume(ctx context.Context, h host.Host, how, dataset string, c host.Command, other string) error {
	_, err := Get(ctx, h, dataset)
	if err == nil {
		err = fmt.Errorf("%s volume %s: %w", how, dataset, host.ErrExists)
	}
	if !errors.Is(err, host.ErrNotFound) {
		return err
	}
	if err = run(ctx, h, c, dataset, other); err == nil {
		return nil
	}
	err = fmt.Errorf("%s volume %s: %w", how, dataset, err)
	if !ended(err) || errors.Is(err, host.ErrExists) { // another program's, since we looked
		return err
	}
	return cleanUp(ctx, err, func(ctx context.Context) error { return dismantle(ctx, h, dataset) })
}

// Do grows it. One that has the size already is left as it is.
func (s GrowVolume) Do(ctx context.Context, h host.Host) error {
	d, err := the(ctx, h, s.Dataset, s.GUID, "volsize")
	if err == nil && d.Volsize > s.Size {
		err = &ShrinkError{Dataset: s.Dataset, Is: d.Volsize, Want: s.Size}
	}
	if err == nil {
		err = unlessDone(ctx, run(ctx, h, setCommand(s.Dataset, s.property()), s.Dataset), func(ctx context.Context) bool {
			is, err := the(ctx, h, s.Dataset, d.GUID, "volsize")
			return err == nil && is.Volsize == s.Size
		})
	}
	if err != nil {
		return fmt.Errorf("grow volume %s: %w", s.Dataset, err)
	}
	return nil
}

// Do renames it.
func (s RenameVolume) Do(ctx context.Context, h host.Host) error {
	var d Dataset
	err := ValidateName(s.To)
	if err == nil {
		d, err = the(ctx, h, s.Dataset, s.GUID)
	}
	if err == nil {
		err = unlessDone(ctx, run(ctx, h, renameCommand(s.Dataset, s.To), s.Dataset, s.To), func(ctx context.Context) bool {
			_, err := the(ctx, h, s.To, d.GUID)
			return err == nil
		})
	}
	if err != nil {
		return fmt.Errorf("rename volume %s to %s: %w", s.Dataset, s.To, err)
	}
	return nil
}

// the is the dataset of this name, if it is that one.
func the(ctx context.Context, h host.Host, name, guid string, more ...string) (Dataset, error) {
	d, err := Get(ctx, h, name, more...)
	if err == nil && guid != "" && d.GUID != guid {
		err = &OtherError{Name: name, Is: d.GUID, Want: guid}
	}
	return d, err
}

func createVolumeCommand(s CreateVolume) host.Command {
	args := []string{"create"}
	if s.Thin {
		args = append(args, "-s")
	}
	args = append(args, "-V", strconv.FormatUint(s.Size, 10), "-o", "volblocksize="+strconv.FormatUint(s.Block, 10))
	return host.Command{Program: "zfs", Args: append(append(args, options(s.Properties)...), s.Dataset)}
}

func cloneVolumeCommand(s CloneVolume) host.Command {
	return withOptions("clone", s.Properties, s.Snapshot, s.Dataset)
}

func renameCommand(name, to string) host.Command {
	return host.Command{Program: "zfs", Args: []string{"rename", name, to}}
}
