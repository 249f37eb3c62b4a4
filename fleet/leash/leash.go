// Package leash starts processes that end with this one, also when this one is killed. A
// shell holds the leash: it reads from a pipe of which this process has the only other end,
// and kills the processes that it has read when the pipe closes.
package leash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// holder reads "+ PID" and "- PID" and kills the processes that are left. It ignores what a
// terminal sends to all.
const holder = `trap '' INT TERM HUP
all=
while read -r how pid; do
	case $how in
	+) all="$all $pid" ;;
	-) rest=
		for p in $all; do [ "$p" = "$pid" ] || rest="$rest $p"; done
		all=$rest ;;
	esac
done
for p in $all; do kill -9 "$p" 2>/dev/null; done`

// Leash holds processes.
type Leash struct {
	mu     sync.Mutex
	tell   io.WriteCloser
	holder *exec.Cmd
}

// New is a leash with nothing on it.
func New() (*Leash, error) {
	c := exec.Command("sh", "-c", holder)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	tell, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start the shell that ends processes: %w", err)
	}
	return &Leash{tell: tell, holder: c}, nil
}

// Process is one process on the leash.
type Process struct {
	leash *Leash
	cmd   *exec.Cmd
	done  chan struct{}
	err   error // of the process, once done is closed
}

// Start starts a command on the leash. It has a process group of its own, so that an
// interrupt from the terminal does not end it before this process says so.
func (l *Leash) Start(c *exec.Cmd) (*Process, error) {
	if c.SysProcAttr == nil {
		c.SysProcAttr = &syscall.SysProcAttr{}
	}
	c.SysProcAttr.Setpgid = true
	if err := c.Start(); err != nil {
		return nil, err
	}
	p := &Process{leash: l, cmd: c, done: make(chan struct{})}
	told := l.say("+", c.Process.Pid)
	go func() {
		p.err = c.Wait()
		_ = l.say("-", c.Process.Pid) // the holder is gone: it kills nothing more
		close(p.done)
	}()
	if told != nil {
		return nil, errors.Join(told, p.Kill())
	}
	return p, nil
}

func (l *Leash) say(how string, pid int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := fmt.Fprintf(l.tell, "%s %d\n", how, pid)
	return err
}

// Close kills what is still on the leash.
func (l *Leash) Close() error {
	return errors.Join(l.tell.Close(), l.holder.Wait())
}

// ID is the process id.
func (p *Process) ID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is what the process came to. It has ended.
func (p *Process) Err() error { return p.err }

// Kill ends the process at once, and waits for that.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil {
		select {
		case <-p.done: // it was over
			return nil
		default:
			return err
		}
	}
	<-p.done
	return nil
}

// End asks the process to end, and kills it when the context is over.
func (p *Process) End(ctx context.Context) error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may be over
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return p.Kill()
	}
}

// Pause stops the process where it is, until Resume.
func (p *Process) Pause() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume has a paused process go on.
func (p *Process) Resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }
