package sledtest

import (
	"context"
	"io/fs"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/sledctl/sledctl/host"
)

// HowFails says what fails, and how.
type HowFails string

const (
	Refuses HowFails = "refuses the command"         // it does not do it
	Doubles HowFails = "does and denies the command" // it does it, and says that it did not
	Halves  HowFails = "does half of the command"    // and says that it did not
	Broken  HowFails = "refuses from the command"    // neither this one nor any after it
	Dies    HowFails = "kills the command"           // halfway, where it is more than one change
	Hangs   HowFails = "hangs in the command"        // and goes on when go is closed
	Full    HowFails = "has no room for the change of a file"
	Silent  HowFails = "cannot be dialled from the call" // from then on no connection is made
	Loses   HowFails = "has lost a disk from the change" // see lose
)

// Point is a kind of moments of a verb, which are counted from 1.
type Point string

const (
	AtChange  Point = "change"  // a command, request or file operation that changes something
	AtCommand Point = "command" // a command that does
	AtFile    Point = "file"    // a file operation that takes room
	AtCall    Point = "call"    // a connection
	AtEither  Point = "either"  // a command or a file operation as above
)

// Failing is a host on which the n-th thing of a kind fails: commands that
// change something, changes of files, connections.
type Failing struct {
	host.Host
	How HowFails
	At  int // 0: none, to count them

	Half func(host.Command) // does half of a command
	End  func(host.Command) // kills a command
	Lose func()             // removes the disk
	Let  chan struct{}      // closed: what hangs goes on
	Hung sync.WaitGroup     // what hangs

	mu    sync.Mutex
	Count map[Point]int
}

// fails counts a thing, and says whether it is to fail.
func (f *Failing) fails(kind Point, how ...HowFails) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Count == nil {
		f.Count = map[Point]int{}
	}
	f.Count[kind]++
	n := f.Count[kind]
	further := f.How == Broken || f.How == Silent
	return f.At > 0 && slices.Contains(how, f.How) && (n == f.At || n > f.At && further)
}

func (f *Failing) Run(ctx context.Context, c host.Command) (host.Result, error) {
	if c.ReadOnly {
		return f.Host.Run(ctx, c)
	}
	if f.fails(AtEither, Loses) {
		f.Lose()
	}
	if !f.fails(AtCommand, Refuses, Doubles, Halves, Dies, Broken, Hangs) {
		return f.Host.Run(ctx, c)
	}
	switch f.How {
	case Hangs:
		return f.hang(ctx, c)
	case Halves:
		f.Half(c)
		return f.Host.Run(ctx, c)
	case Dies:
		f.End(c)
		return f.Host.Run(ctx, c)
	case Doubles:
		if r, err := f.Host.Run(ctx, c); err != nil || r.Exit != 0 {
			return r, err
		}
	}
	return host.Result{Exit: 1, Stderr: []byte(c.Program + ": the injected failure\n")}, nil
}

// hang is a command that does nothing until it is let: nobody who waits sees its
// end. It has the locks of its caller meanwhile.
func (f *Failing) hang(ctx context.Context, c host.Command) (host.Result, error) {
	release := host.Retain(ctx)
	f.Hung.Go(func() {
		<-f.Let
		_, _ = f.Host.Run(context.WithoutCancel(ctx), c)
		release()
	})
	<-ctx.Done()
	return host.Result{}, &host.StillRunningError{PID: os.Getpid(), Command: c, Err: ctx.Err()}
}

func (f *Failing) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if f.fails(AtCall, Silent) {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	return f.Host.Dial(ctx, network, address)
}

func (f *Failing) Files() host.Files { return failingFiles{f.Host.Files(), f} }

type failingFiles struct {
	host.Files
	host *Failing
}

func (f failingFiles) change(name string, do func() error) error {
	if f.host.fails(AtEither, Loses) {
		f.host.Lose()
	}
	if f.host.fails(AtFile, Full) {
		return &fs.PathError{Op: "write", Path: name, Err: syscall.ENOSPC}
	}
	return do()
}

func (f failingFiles) Open(name string, flag int, perm fs.FileMode) (file host.File, err error) {
	open := func() error {
		file, err = f.Files.Open(name, flag, perm)
		return err
	}
	if flag&(os.O_CREATE|os.O_TRUNC) == 0 {
		err = open()
	} else {
		err = f.change(name, open)
	}
	return file, err
}

func (f failingFiles) Append(name string, data []byte) error {
	return f.change(name, func() error { return f.Files.Append(name, data) })
}

func (f failingFiles) Rename(from, to string) error {
	return f.change(from, func() error { return f.Files.Rename(from, to) })
}

func (f failingFiles) Chmod(name string, mode fs.FileMode) error {
	return f.change(name, func() error { return f.Files.Chmod(name, mode) })
}

func (f failingFiles) In(dir string) (host.Files, error) {
	in, err := f.Files.In(dir)
	return failingFiles{in, f.host}, err
}
