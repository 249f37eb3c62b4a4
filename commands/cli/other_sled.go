package cli

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"syscall"
	"time"

	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/sled/instance/migration"
)

// endTime is how long a program is waited for that was told to end: a sledctl
// takes back what it has made.
const endTime = plan.UndoTime + 30*time.Second

// runProgram runs another sled's sledctl, as a process of this one.
func (e *Env) runProgram(ctx context.Context, words []string, stdin []byte) (migration.Answer, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = e.Environ
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &errs
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endTime
	err := cmd.Run()
	answer := migration.Answer{Exit: -1, Stdout: out.Bytes(), Stderr: errs.Bytes()}
	if cmd.ProcessState != nil {
		answer.Exit = cmd.ProcessState.ExitCode()
	}
	if _, ended := errors.AsType[*exec.ExitError](err); ended || cmd.ProcessState != nil && ctx.Err() != nil {
		err = nil
	}
	return answer, err
}
