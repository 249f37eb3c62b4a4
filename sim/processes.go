package sim

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
)

// The processes that stand-in commands leave behind, by the name that they are
// started under. A server listens for one process of the sled. The keeper lets
// time pass: it carries out what is scheduled when nobody looks, so that a
// service comes up although the script that enabled it only calls curl.
const (
	serverName = "propolis-server"
	keeperName = "sledctl-sim-keeper"
)

// firstFile is the descriptor of the first file that spawn gives.
const firstFile = 3

// spawn starts this program again, under another name and on its own, with the
// files.
func (s *Sled) spawn(name string, files []*os.File, args ...string) (pid int, err error) {
	executable, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(executable, args...)
	cmd.Args[0] = name
	cmd.Env = append(os.Environ(), DirVariable+"="+s.world.Dir())
	cmd.Dir = "/"
	cmd.ExtraFiles = files
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	closeInherited()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	go func() { _ = cmd.Wait() }() // a parent that lives longer sees no zombie.
	return cmd.Process.Pid, nil
}

// closeInherited keeps what our caller let us inherit from those whom we start,
// as zoneadmd does (usr/src/cmd/zoneadmd/zoneadmd.c): a server would hold the
// locks of the run that booted its zone for as long as it lives.
func closeInherited() {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= firstFile {
			unix.CloseOnExec(fd)
		}
	}
}

// tryLock locks a file of the sled's directory, or fails with host.ErrLocked.
func (s *Sled) tryLock(name string) (host.Lock, error) {
	return host.Dir(s.world.Dir()).Lock(context.Background(), "/"+name, host.TryExclusive)
}

// keepTime starts a keeper if something is scheduled and none is there. One
// that is there looks again after it has let go of its lock.
func (s *Sled) keepTime(ctx context.Context) error {
	due, err := s.due(ctx)
	if err != nil || !due {
		return err
	}
	l, err := s.tryLock(world.KeeperFile)
	if errors.Is(err, host.ErrLocked) {
		return nil
	}
	if err == nil {
		err = l.Unlock()
	}
	if err == nil {
		_, err = s.spawn(keeperName, nil)
	}
	return err
}

// keep carries out what is scheduled until nothing is.
func (s *Sled) keep(ctx context.Context) error {
	for {
		l, err := s.tryLock(world.KeeperFile)
		if errors.Is(err, host.ErrLocked) {
			return nil
		}
		if err != nil {
			return err
		}
		err = s.world.Wait(ctx, func(tx *world.Tx) bool { return len(tx.State.Due) == 0 })
		if err == nil { // What others have carried out may need a server.
			err = s.world.Update(ctx, func(*world.Tx) error { return nil })
		}
		if uerr := l.Unlock(); err == nil {
			err = uerr
		}
		if errors.Is(err, os.ErrNotExist) {
			return nil // The sled is gone.
		}
		if err != nil {
			return err
		}
		if due, err := s.due(ctx); err != nil || !due {
			return err
		}
	}
}

func (s *Sled) due(ctx context.Context) (due bool, err error) {
	err = s.world.View(ctx, func(tx *world.Tx) error { due = len(tx.State.Due) > 0; return nil })
	return due, err
}
