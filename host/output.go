package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// output is where a command that changes something reads and prints: files,
// since a pipe would end with sledctl. Each is locked while a process has it
// open, the command included: so sweep recognises what a killed sledctl left.
type output struct {
	stdout, stderr *os.File
	input          *os.File // nil: /dev/null, or a pipe
	// The ends of the pipe in which input comes from a reader, and what came of reading; nil: it does not.
	pipe, from *os.File
	fed        chan error
}

// openPipe has input come from a reader (feed).
func (o *output) openPipe() (err error) {
	if o.from, o.pipe, err = os.Pipe(); err != nil {
		o.close()
	}
	return err
}

// feed gives a command that has begun what a reader reads, until the context ends. The reader may not notice that: it
// is not waited for then.
func (o *output) feed(ctx context.Context, in io.Reader) {
	o.from.Close() // its own is open: without it, writing would not notice its end
	o.fed = make(chan error, 1)
	var once sync.Once
	say := func(err error) {
		once.Do(func() {
			if err != nil {
				o.fed <- err
			}
			close(o.fed)
		})
	}
	ended := context.AfterFunc(ctx, func() {
		o.pipe.Close()
		say(context.Cause(ctx))
	})
	go func() {
		r := &noting{in: in}
		_, err := io.Copy(o.pipe, r)
		switch {
		case !ended():
			err = context.Cause(ctx)
		case r.err != nil:
			err = r.err
		case err != nil: // the command has ended before
			err = errUnread
		}
		say(err)
		o.pipe.Close()
	}()
}

// errUnread is input that a command has not read to its end.
var errUnread = errors.New("the command did not read all of it")

// broken is why the input of a command that has ended was not all that there is; nil: it was. One that
// failed may have left it, and its reader is not waited for.
func (o *output) broken(exit int) error {
	if o.fed == nil {
		return nil
	}
	if exit == 0 {
		return <-o.fed
	}
	select {
	case err := <-o.fed:
		if !errors.Is(err, errUnread) {
			return err
		}
	default:
	}
	return nil
}

// noting remembers how reading has failed.
type noting struct {
	in  io.Reader
	err error
}

func (n *noting) Read(p []byte) (int, error) {
	got, err := n.in.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		n.err = err
	}
	return got, err
}

func (h *Illumos) openOutput(program string, stdin []byte) (*output, error) {
	dir, err := h.outputDir()
	if err != nil {
		return nil, err
	}
	o := &output{}
	if o.stdout, err = lockedTemp(dir, program+"-*.stdout"); err == nil {
		o.stderr, err = lockedTemp(dir, program+"-*.stderr")
	}
	if err == nil && stdin != nil {
		o.input, err = lockedTemp(dir, program+"-*.stdin")
		if err == nil {
			_, err = o.input.WriteAt(stdin, 0)
		}
	}
	if err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

// stdin is nil without input, not a nil *os.File.
func (o *output) stdin() io.Reader {
	if o.from != nil {
		return o.from
	}
	if o.input == nil {
		return nil
	}
	return o.input
}

// result reads what was printed.
func (o *output) result(c Command) (Result, error) {
	stdout, err := readAll(o.stdout, maxStdout)
	if err == nil && len(stdout) > maxStdout {
		err = errTooLong(c, "stdout", maxStdout)
	}
	stderr, rerr := readAll(o.stderr, maxStderr)
	if rerr == nil && len(stderr) > maxStderr {
		rerr = errTooLong(c, "stderr", maxStderr)
	}
	if err := errors.Join(err, rerr); err != nil {
		return Result{}, fmt.Errorf("%s ended, but what it said is lost: %w", c.Program, err)
	}
	return Result{Stdout: stdout, Stderr: stderr}, nil
}

// readAll reads at most one byte more than limit. Nothing is nil.
func readAll(file *os.File, limit int64) ([]byte, error) {
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(file, 0, limit+1))
}

func (o *output) close() {
	for _, f := range []*os.File{o.stdout, o.stderr, o.input} {
		if f != nil {
			os.Remove(f.Name())
			f.Close()
		}
	}
	if o.fed == nil && o.pipe != nil { // no command has begun
		o.from.Close()
		o.pipe.Close()
	}
}

func lockedTemp(dir, pattern string) (*os.File, error) {
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	// No other process has the file open, unless a sweep has just found it. The
	// sweep then removes the name, which is not needed.
	_ = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	return f, nil
}

// outputDir makes the directory on first use and removes the files in it
// that no process has open.
func (h *Illumos) outputDir() (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := path.Join(h.options.RunDir, "output")
	dir := filepath.Join(h.options.Root, name)
	if h.swept {
		return dir, nil
	}
	if err := MkdirAll(h.files, name, 0o700); err != nil {
		return "", err
	}
	sweep(dir)
	h.swept = true
	return dir, nil
}

// sweep removes the output of commands that have ended after the sledctl that
// started them was killed. What it cannot remove, the next boot does.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			os.Remove(name)
		}
		f.Close()
	}
}
