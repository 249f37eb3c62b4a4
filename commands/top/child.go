package top

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// start runs sledctl as a process of its own: it goes on if this one ends. What it prints
// goes into a file that has no name. One that lends the terminal has all of it, ^C too.
func start(environ, words []string, lends bool) (<-chan Ended, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, words...)
	cmd.Env = environ
	if lends {
		return lent(cmd)
	}
	printed, err := os.CreateTemp("", "sledctl-top.")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(printed.Name())
	cmd.Stdout, cmd.Stderr = printed, printed
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		printed.Close()
		return nil, err
	}
	ended := make(chan Ended, 1)
	go func() {
		defer printed.Close()
		err := howEnded(cmd.Wait())
		_, _ = printed.Seek(0, io.SeekStart)
		said, _ := io.ReadAll(io.LimitReader(printed, 1<<20))
		ended <- Ended{string(said), err}
	}()
	return ended, nil
}

// howEnded is how a command failed, in a word.
func howEnded(err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		return fmt.Errorf("exit %d", exit.ExitCode())
	}
	return err
}

// lent runs a command in the foreground of the terminal, and takes that back.
func lent(cmd *exec.Cmd) (<-chan Ended, error) {
	fd := int(os.Stdin.Fd())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: fd}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	signal.Ignore(syscall.SIGTTOU) // else taking it back would stop this process; the command has begun without
	defer signal.Reset(syscall.SIGTTOU)
	err := cmd.Wait()
	if own, failed := unix.Getpgid(0); failed == nil {
		_ = unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, own)
	}
	ended := make(chan Ended, 1)
	ended <- Ended{Err: err}
	return ended, nil
}
