package host

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// output is where a command that changes something reads and prints: files,
// since a pipe would end with sledctl. Each is locked while a process has it
// open, the command included: so sweep recognises what a killed sledctl left.
type output struct {
	stdout, stderr *os.File
	input          *os.File // nil: /dev/null
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
