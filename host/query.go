package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// How much a command may print, in bytes. 10,000 zones are a few MB of
// listings; more than this is a command gone wild.
const (
	maxStdout = 64 << 20
	maxStderr = 1 << 20
)

// killGrace is how long we wait for the pipes of a killed query: a child of
// its own may hold them open.
const killGrace = time.Second

// query runs a command that only looks, and kills it with its context.
func query(ctx context.Context, c Command, prepared *exec.Cmd) (Result, error) {
	inner, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	cmd := exec.CommandContext(inner, prepared.Path)
	cmd.Args, cmd.Env, cmd.Dir, cmd.SysProcAttr = prepared.Args, prepared.Env, prepared.Dir, prepared.SysProcAttr
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killGrace
	if c.Stdin != nil {
		cmd.Stdin = bytes.NewReader(c.Stdin)
	}
	stdout := &capped{max: maxStdout, over: func() { kill(errTooLong(c, "stdout", maxStdout)) }}
	stderr := &capped{max: maxStderr, over: func() { kill(errTooLong(c, "stderr", maxStderr)) }}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if c.Output != nil { // its reader may be slower than the command
		cmd.Stdout, cmd.WaitDelay = &failing{out: c.Output, over: kill}, 0
	}

	err := cmd.Run()
	switch {
	case err == nil || inner.Err() == nil:
	case ctx.Err() != nil:
		return Result{}, fmt.Errorf("%s was killed: %w", c.Program, ctx.Err())
	default:
		return Result{}, context.Cause(inner)
	}
	exit, err := exitOf(cmd, err)
	if err != nil {
		return Result{}, fmt.Errorf("running %s: %w", c.Program, err)
	}
	return Result{Exit: exit, Stdout: stdout.data, Stderr: stderr.data}, nil
}

// exitOf is the exit code as a shell has it: 128 and the signal's number for a
// process that one ended.
func exitOf(cmd *exec.Cmd, err error) (int, error) {
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		return 0, err
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return cmd.ProcessState.ExitCode(), nil
}

// failing hands on what is written, and notes that it cannot.
type failing struct {
	out  io.Writer
	over func(error)
}

func (f *failing) Write(p []byte) (int, error) {
	n, err := f.out.Write(p)
	if err != nil {
		f.over(err)
	}
	return n, err
}

func errTooLong(c Command, stream string, limit int64) error {
	return fmt.Errorf("%s printed more than %d MiB on %s", c.Program, limit>>20, stream)
}

// capped keeps what is written to it, up to max bytes.
type capped struct {
	data []byte
	max  int
	over func()
}

func (b *capped) Write(p []byte) (int, error) {
	if len(b.data)+len(p) > b.max {
		b.over()
		return 0, errors.New("too much output")
	}
	b.data = append(b.data, p...)
	return len(p), nil
}
