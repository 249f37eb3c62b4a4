package zfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sledctl/sledctl/host"
)

// Streams: what zfs send prints and zfs receive reads. A stream is of a snapshot of a volume, of all
// of it or of what has changed since an earlier one. It is not raw: it holds what the volume holds, also of one that
// is encrypted, whose key must be loaded; the volume that receives it is encrypted where its parent is.
//
// Guess receive-below-encrypted: a stream that is not raw is received below an encrypted file system, and
// what is made of it is encrypted by the same key.
// Check: `zfs send POOL/v@s | zfs receive POOL/crypt/w; zfs get encryptionroot POOL/crypt/w`

// Source is where a stream comes from.
type Source struct {
	Line string // the command that prints it, as a shell has it
	// Open begins it. The stream fails, and does not end, where it is not whole. It is closed when nobody
	// reads it any longer.
	Open func(ctx context.Context, h host.Host) (io.ReadCloser, error)
}

// Sent is the stream of a snapshot of this host.
type Sent struct {
	Snapshot string
	Since    string // an earlier snapshot of the same volume; empty: the stream is of all of it
	Token    string // instead of both: the rest of a stream that another volume has a part of
}

// Source is the zfs send.
func (s Sent) Source() Source {
	return Source{
		Line: sendCommand(s).Shell(),
		Open: func(ctx context.Context, h host.Host) (io.ReadCloser, error) { return s.open(ctx, h) },
	}
}

// stream is a zfs send that runs.
type stream struct {
	*io.PipeReader
	cancel context.CancelFunc
	ended  chan struct{}
}

// Close ends the zfs send, and waits for its end.
func (s *stream) Close() error {
	err := s.PipeReader.Close()
	s.cancel()
	<-s.ended
	return err
}

func (s Sent) open(ctx context.Context, h host.Host) (io.ReadCloser, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	in, out := io.Pipe()
	is := &stream{PipeReader: in, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(is.ended)
		c := sendCommand(s)
		c.Output = out
		err := run(ctx, h, c, s.Snapshot, s.Since)
		if err != nil {
			err = fmt.Errorf("send %s: %w", s.what(), err)
		}
		_ = out.CloseWithError(err) // it never fails
	}()
	return is, nil
}

func (s Sent) what() string {
	if s.Token != "" {
		return "the rest of a stream"
	}
	return "snapshot " + s.Snapshot
}

func (s Sent) check() error {
	switch {
	case s.Token != "" && (strings.HasPrefix(s.Token, "-") || strings.Trim(s.Token, "0123456789abcdef-") != ""):
		return &NameError{What: "resume token", Name: s.Token, Reason: "has others than hexadecimal digits and '-'"}
	case s.Token != "":
		return nil
	case s.Since != "":
		return errors.Join(ValidateSnapshotName(s.Snapshot), ValidateSnapshotName(s.Since))
	}
	return ValidateSnapshotName(s.Snapshot)
}

// ReceiveVolume makes a volume of the stream of all of a snapshot, and removes the snapshot that it was received
// with, unless Keep. One of its name must not exist (host.ErrExists). Nothing is kept back for it. Of a stream that is not whole
// (ErrStream, or what its source says), or of another snapshot (*OtherError), nothing is left.
//
// Guess receive-sets-before: `zfs receive -o` sets the property before the first data, so that what is made
// of a stream that breaks off carries the mark (zfs_ioc_recv_impl of usr/src/uts/common/fs/zfs/zfs_ioctl.c), as on OpenZFS 2.1.11.
// Check: `zfs send POOL/v@s | head -c 100000 | zfs receive -s -o sledctl:volume=1 POOL/w; zfs get sledctl:volume POOL/w`
type ReceiveVolume struct {
	Dataset    string
	Properties []Property // set by the same command
	From       Source
	// Snapshot is what the snapshot is to be named, behind the @, and GUID what it has where it comes from; empty: any.
	Snapshot, GUID string
	Keep           bool   // the snapshot stays: for ReceiveChanges
	Size           uint64 // bytes of the volume, or 0: for how long it may take
}

// Verb names the step.
func (ReceiveVolume) Verb() string { return "zfs.receive-volume" }

// Limit leaves room for a slow line: an hour, and what the volume needs at 512 KiB in a second.
func (s ReceiveVolume) Limit() (most time.Duration, waits bool) {
	return time.Hour + time.Duration(s.Size>>19)*time.Second, false
}

// Undo is Destroy.
func (s ReceiveVolume) Undo() any { return Destroy{Dataset: s.Dataset, Type: TypeVolume} }

// Explain is the zfs receive, behind what prints the stream, and the zfs destroy of the snapshot.
func (s ReceiveVolume) Explain() []host.Line {
	switch {
	case s.check() != nil:
		return nil
	case s.Keep:
		return []host.Line{host.CommandLine(receiveCommand(s))}
	}
	return []host.Line{host.CommandLine(receiveCommand(s)), host.CommandLine(destroyCommand(s.snapshot()))}
}

func (s ReceiveVolume) snapshot() string { return s.Dataset + "@" + s.Snapshot }

func (s ReceiveVolume) check() error {
	return errors.Join(ValidateName(s.Dataset), ValidateSnapshotName(s.snapshot()), validateProperties(s.Properties))
}

// Do receives it.
func (s ReceiveVolume) Do(ctx context.Context, h host.Host) error {
	if err := s.check(); err != nil {
		return fmt.Errorf("receive volume: %w", err)
	}
	in, err := s.From.Open(ctx, h)
	if err != nil {
		return fmt.Errorf("receive volume %s: %w", s.Dataset, err)
	}
	c := receiveCommand(s)
	c.Input = in
	err = makeVolume(ctx, h, "receive", s.Dataset, c, s.Dataset)
	if cerr := in.Close(); err != nil || cerr != nil {
		return errors.Join(err, cerr)
	}
	if s.Keep {
		_, err = the(ctx, h, s.snapshot(), s.GUID)
	} else {
		err = DestroySnapshot{Name: s.snapshot(), GUID: s.GUID}.Do(ctx, h)
	}
	if err == nil || !ended(err) && !errors.Is(err, host.ErrRefused) {
		return err
	}
	return cleanUp(ctx, err, func(ctx context.Context) error { return dismantle(ctx, h, s.Dataset) })
}

// dismantle removes a volume that was made and is not as it should be, with its snapshots.
func dismantle(ctx context.Context, h host.Host, dataset string) error {
	d, below, err := near(ctx, h, dataset)
	for _, name := range below {
		if err == nil {
			err = DestroySnapshot{Name: name}.Do(ctx, h)
		}
	}
	if err != nil {
		return err
	}
	return Destroy{Dataset: dataset, GUID: d.GUID, Type: TypeVolume}.Do(ctx, h)
}

// ReceiveChanges brings a volume that was received from its latest snapshot to a later one, by the stream of what
// has changed in between, and removes the former snapshot. Nothing else may have written to the volume: zfs
// refuses it then (host.ErrRefused), and nothing is lost. Of a stream that is not whole (ErrStream, or what its source
// says) nothing is taken; one of another snapshot is undone (*OtherError).
//
// Guess receive-changes-the-size: a stream of what has changed brings the size of a volume along, and its reservation
// is left as it is, as on OpenZFS 2.1.11.
// Check: `zfs set volsize=2G POOL/v`, a snapshot of it, `zfs send -i @a POOL/v@b | zfs receive POOL/w`; `zfs get volsize POOL/w`
type ReceiveChanges struct {
	Dataset string
	From    Source
	// Since is the snapshot that the volume has, and Snapshot the one that it gets, behind the @; the GUIDs are theirs.
	Since, SinceGUID string
	Snapshot, GUID   string
	Size             uint64 // bytes of the volume: for how long it may take
}

// Verb names the step.
func (ReceiveChanges) Verb() string { return "zfs.receive-changes" }

// Limit is that of ReceiveVolume.
func (s ReceiveChanges) Limit() (most time.Duration, waits bool) {
	return ReceiveVolume{Size: s.Size}.Limit()
}

// Undo is nil: the former snapshot is gone.
func (ReceiveChanges) Undo() any { return nil }

// Explain is the zfs receive, behind what prints the stream, and the zfs destroy of the former snapshot.
func (s ReceiveChanges) Explain() []host.Line {
	if s.check() != nil {
		return nil
	}
	return []host.Line{host.CommandLine(s.command()), host.CommandLine(destroyCommand(s.since()))}
}

func (s ReceiveChanges) since() string    { return s.Dataset + "@" + s.Since }
func (s ReceiveChanges) snapshot() string { return s.Dataset + "@" + s.Snapshot }

func (s ReceiveChanges) check() error {
	return errors.Join(ValidateName(s.Dataset), ValidateSnapshotName(s.since()), ValidateSnapshotName(s.snapshot()))
}

func (s ReceiveChanges) command() host.Command {
	return host.Command{Program: "zfs", Args: []string{"receive", "-u", s.snapshot()}, From: s.From.Line}
}

// Do receives it.
func (s ReceiveChanges) Do(ctx context.Context, h host.Host) error {
	if err := s.check(); err != nil {
		return fmt.Errorf("receive changes: %w", err)
	}
	err := s.receive(ctx, h)
	if err == nil {
		_, err = the(ctx, h, s.snapshot(), s.GUID)
		if errors.As(err, new(*OtherError)) {
			err = cleanUp(ctx, err, func(ctx context.Context) error { return s.back(ctx, h) })
		}
	}
	if err == nil {
		err = DestroySnapshot{Name: s.since(), GUID: s.SinceGUID}.Do(ctx, h)
	}
	if err != nil {
		return fmt.Errorf("receive changes of volume %s: %w", s.Dataset, err)
	}
	return nil
}

func (s ReceiveChanges) receive(ctx context.Context, h host.Host) error {
	if _, err := the(ctx, h, s.since(), s.SinceGUID); err != nil {
		return err
	}
	in, err := s.From.Open(ctx, h)
	if err != nil {
		return err
	}
	c := s.command()
	c.Input = in
	return errors.Join(run(ctx, h, c, s.Dataset, s.snapshot()), in.Close())
}

// back takes the volume to the former snapshot.
func (s ReceiveChanges) back(ctx context.Context, h host.Host) error {
	err := DestroySnapshot{Name: s.snapshot()}.Do(ctx, h)
	if err == nil {
		err = Rollback{Name: s.since(), GUID: s.SinceGUID}.Do(ctx, h)
	}
	return err
}

func sendCommand(s Sent) host.Command {
	args := []string{"send"}
	switch {
	case s.Token != "":
		args = append(args, "-t", s.Token)
	case s.Since != "":
		args = append(args, "-i", s.Since, s.Snapshot)
	default:
		args = append(args, s.Snapshot)
	}
	return host.Command{Program: "zfs", Args: args, ReadOnly: true}
}

// receiveCommand names the snapshot: the stream has the name that it has where it comes from.
func receiveCommand(s ReceiveVolume) host.Command {
	args := append(append([]string{"receive", "-u"}, options(s.Properties)...), s.snapshot())
	return host.Command{Program: "zfs", Args: args, From: s.From.Line}
}
