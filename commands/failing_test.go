package commands_test

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

// howFails says what fails, and how.
type howFails string

const (
	refuses howFails = "refuses the command"         // it does not do it
	doubles howFails = "does and denies the command" // it does it, and says that it did not
	halves  howFails = "does half of the command"    // and says that it did not
	broken  howFails = "refuses from the command"    // neither this one nor any after it
	dies    howFails = "kills the command"           // halfway, where it is more than one change
	hangs   howFails = "hangs in the command"        // and goes on when go is closed
	full    howFails = "has no room for the change of a file"
	silent  howFails = "cannot be dialled from the call" // no connection comes to be any more
	loses   howFails = "has lost a disk from the change" // see lose
)

// point is a kind of moments of a verb, which are counted from 1.
type point string

const (
	change  point = "change"  // a command, request or file operation that changes something
	command point = "command" // a command that does
	file    point = "file"    // a file operation that takes room
	call    point = "call"    // a connection
	either  point = "either"  // a command or a file operation as above
)

// failing is a host on which the n-th thing of a kind fails: commands that
// change something, changes of files, connections.
type failing struct {
	host.Host
	how howFails
	at  int // 0: none, to count them

	half func(host.Command) // sees to it that half of a command is done
	end  func(host.Command) // sees to it that a command is killed
	lose func()             // takes the disk away
	let  chan struct{}      // closed: what hangs goes on
	hung sync.WaitGroup     // what hangs

	mu    sync.Mutex
	count map[point]int
}

// fails counts a thing, and says whether it is to fail.
func (f *failing) fails(kind point, how ...howFails) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count == nil {
		f.count = map[point]int{}
	}
	f.count[kind]++
	n := f.count[kind]
	further := f.how == broken || f.how == silent
	return f.at > 0 && slices.Contains(how, f.how) && (n == f.at || n > f.at && further)
}

func (f *failing) Run(ctx context.Context, c host.Command) (host.Result, error) {
	if c.ReadOnly {
		return f.Host.Run(ctx, c)
	}
	if f.fails(either, loses) {
		f.lose()
	}
	if !f.fails(command, refuses, doubles, halves, dies, broken, hangs) {
		return f.Host.Run(ctx, c)
	}
	switch f.how {
	case hangs:
		return f.hang(ctx, c)
	case halves:
		f.half(c)
		return f.Host.Run(ctx, c)
	case dies:
		f.end(c)
		return f.Host.Run(ctx, c)
	case doubles:
		if r, err := f.Host.Run(ctx, c); err != nil || r.Exit != 0 {
			return r, err
		}
	}
	return host.Result{Exit: 1, Stderr: []byte(c.Program + ": the injected failure\n")}, nil
}

// hang is a command that does nothing until it is let: nobody who waits sees its
// end. It has the locks of its caller meanwhile.
func (f *failing) hang(ctx context.Context, c host.Command) (host.Result, error) {
	release := host.Retain(ctx)
	f.hung.Go(func() {
		<-f.let
		_, _ = f.Host.Run(context.WithoutCancel(ctx), c)
		release()
	})
	<-ctx.Done()
	return host.Result{}, &host.StillRunningError{PID: os.Getpid(), Command: c, Err: ctx.Err()}
}

func (f *failing) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if f.fails(call, silent) {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	return f.Host.Dial(ctx, network, address)
}

func (f *failing) Files() host.Files { return failingFiles{f.Host.Files(), f} }

type failingFiles struct {
	host.Files
	host *failing
}

func (f failingFiles) change(name string, do func() error) error {
	if f.host.fails(either, loses) {
		f.host.lose()
	}
	if f.host.fails(file, full) {
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
