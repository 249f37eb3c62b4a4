package sim

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/smf"
)

// Environ are the variables by which a program finds the sled in dir in the place of the
// real one: its commands, and its root. path is the PATH of the computer.
func Environ(dir, path string) []string {
	bin := Tools(dir)
	return []string{
		"PATH=" + bin + ":" + path, DirVariable + "=" + dir,
		"SLEDCTL_HOST=illumos", "SLEDCTL_HOST_ROOT=" + Root(dir), "SLEDCTL_HOST_COMMAND_PATH=" + bin + "," + filepath.Join(bin, CommonDir),
	}
}

// methods are those of the global zone's services that this process has begun to run.
type methods struct {
	sled  *Sled
	begun map[methodKey]bool
	// ended are closed when the process that a service's start method is has ended.
	ended sync.Map // by FMRI
}

// methodKey is one run of a method: each start has a contract of its own.
type methodKey struct {
	fmri, name string
	contract   int
}

// carryOut lets time pass until nothing is scheduled and no method runs, nor any process that
// a method goes on as.
func (m *methods) carryOut(ctx context.Context) error {
	for {
		var due []smf.MethodCall
		err := m.sled.world.Wait(ctx, func(tx *world.Tx) bool {
			calls := smf.Programs(tx)
			due = due[:0]
			for _, c := range calls {
				if !m.begun[methodKey{c.FMRI, c.Name, c.Contract}] {
					due = append(due, c)
				}
			}
			return len(due) > 0 || len(calls) == 0 && len(tx.State.Due) == 0 && !smf.Lives(tx, 0)
		})
		if err != nil || len(due) == 0 {
			return err
		}
		for _, c := range due {
			m.begun[methodKey{c.FMRI, c.Name, c.Contract}] = true
			go m.run(ctx, c)
		}
	}
}

// run runs a method as svc.startd does: exec_method of usr/src/cmd/svc/startd/method.c
// puts "exec" before it and gives it to a shell. What lies on the sled is found below its
// root: the method itself, and the directories of its PATH that packages add.
func (m *methods) run(ctx context.Context, call smf.MethodCall) {
	dir := m.sled.world.Dir()
	script, path := call.Script, os.Getenv("PATH")
	word, _, _ := strings.Cut(script, " ")
	if info, err := os.Stat(filepath.Join(Root(dir), word)); err == nil && filepath.IsAbs(word) && info.Size() > 0 {
		script = Root(dir) + script
	}
	environ := Environ(dir, path)
	for key, value := range call.Env {
		if key != "PATH" {
			environ = append(environ, key+"="+value)
			continue
		}
		for own := range strings.SplitSeq(value, ":") {
			if strings.HasPrefix(own, "/opt/") {
				environ[0] = strings.Replace(environ[0], "=", "="+Root(dir)+own+":", 1)
			}
		}
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "exec "+script)
	cmd.Dir, cmd.Env = "/", append(os.Environ(), environ...)
	if call.Child {
		m.accompany(ctx, call, cmd)
		return
	}
	output, err := cmd.CombinedOutput()
	if ended, ok := m.ended.Load(call.FMRI); ok && call.Name == "stop" {
		<-ended.(chan struct{}) // svc.startd waits for the process
	}
	exit := 1
	if cmd.ProcessState != nil {
		exit = cmd.ProcessState.ExitCode()
	} else if err != nil {
		output = append(output, err.Error()...)
	}
	_ = m.sled.world.Update(ctx, func(tx *world.Tx) error {
		smf.ProgramEnded(tx, call, exit, string(output))
		return nil
	})
}

// accompany runs a method that goes on as the service's process, until it ends or the sled
// has it no longer, e.g. after a reboot.
func (m *methods) accompany(ctx context.Context, call smf.MethodCall, cmd *exec.Cmd) {
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		_ = m.sled.world.Update(ctx, func(tx *world.Tx) error { smf.ProgramEnded(tx, call, 1, err.Error()); return nil })
		return
	}
	pid, ended := cmd.Process.Pid, make(chan struct{})
	if lock, err := m.sled.tryLock(serverLock(&world.Process{PID: pid})); err == nil { // tells that it lives
		defer func() { _ = lock.Unlock() }()
	}
	m.ended.Store(call.FMRI, ended)
	_ = m.sled.world.Update(ctx, func(tx *world.Tx) error { smf.ProgramBegan(tx, call, pid); return nil })
	go func() {
		_ = m.sled.world.Wait(ctx, func(tx *world.Tx) bool { return !smf.Lives(tx, pid) })
		_ = cmd.Process.Kill()
	}()
	_ = cmd.Wait()
	close(ended)
	_ = m.sled.world.Update(ctx, func(tx *world.Tx) error { smf.ChildEnded(tx, call, pid, output.String()); return nil })
}

// cutPower ends the processes that methods go on as, and waits until they have: none of them
// writes to a root that is about to be emptied.
func cutPower(tx *world.Tx) {
	for _, p := range tx.State.Processes {
		if !smf.Lives(tx, p.PID) {
			continue
		}
		_ = syscall.Kill(p.OSPID, syscall.SIGKILL)
		for try := 0; try < listenTries && syscall.Kill(p.OSPID, 0) == nil; try++ {
			time.Sleep(listenPause)
		}
	}
}
