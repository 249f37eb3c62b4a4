package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/propolis"
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

// StartServers starts the processes that stand-in commands would have left, for
// what was brought up without them.
func (s *Sled) StartServers(ctx context.Context) error {
	if err := s.world.Update(ctx, func(tx *world.Tx) error { s.tend(tx); return nil }); err != nil {
		return err
	}
	return s.keepTime(ctx)
}

// tend is done after every transaction of a stand-in: servers are started for
// the processes that can be listened for, and those whose server was killed
// have died.
func (s *Sled) tend(tx *world.Tx) {
	for _, p := range slices.Clone(tx.State.Processes) {
		switch {
		case p.OSPID == 0 && len(listenOn(tx, p)) > 0:
			if pid, err := s.spawn(serverName, strconv.Itoa(p.PID)); err == nil {
				p.OSPID = pid
			}
		case p.OSPID != 0 && dead(p.OSPID):
			tx.Exit(p.PID)
		}
	}
}

// dead tells whether a process has ended, also if nobody has waited for it: in
// a container its parent may be a program that never does.
func dead(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // elsewhere than on Linux it is not text
	if err != nil {
		return false
	}
	_, state, ok := bytes.Cut(stat, []byte(") "))
	return ok && bytes.HasPrefix(state, []byte("Z"))
}

// listenOn are the addresses that a stand-in server can have.
func listenOn(tx *world.Tx, p *world.Process) []netip.AddrPort {
	own, err := netip.ParseAddrPort(p.Listen)
	if err != nil {
		return nil
	}
	var all []netip.AddrPort
	if isUnderlay(own.Addr()) {
		all = append(all, own)
	}
	if stack := tx.State.Stacks[p.Zone]; stack != nil && own.Addr().IsUnspecified() {
		for _, a := range stack.Addresses {
			prefix, err := netip.ParsePrefix(a.Address)
			if err == nil && isUnderlay(prefix.Addr()) && world.At(a.Timeline, tx.Now).State == "ok" {
				all = append(all, netip.AddrPortFrom(prefix.Addr(), own.Port()))
			}
		}
	}
	return all
}

// spawn starts this program again, under another name and on its own.
func (s *Sled) spawn(name string, args ...string) (pid int, err error) {
	executable, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(executable, args...)
	cmd.Args[0] = name
	cmd.Env = append(os.Environ(), DirVariable+"="+s.world.Dir())
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	closeInherited()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	go func() { _ = cmd.Wait() }() // Whoever lives longer sees no zombie.
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
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

// serve listens for a process of the sled until it is gone, or the sled is.
func (s *Sled) serve(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("wants the number of a process of the simulated sled")
	}
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	// Whoever started us has not stored that before its lock is free.
	if err := s.world.Update(ctx, func(*world.Tx) error { return nil }); err != nil {
		return err
	}
	addresses, err := s.awaitStart(ctx, pid)
	if err != nil || len(addresses) == 0 {
		return err
	}
	srv := &http.Server{Handler: propolis.Handler(s.world, pid), ReadHeaderTimeout: time.Minute}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer srv.Close()
	for _, a := range addresses {
		l, err := net.Listen("tcp", a.String())
		if err != nil {
			// What listens on the real machine cannot be told to the sled.
			_ = s.world.Update(ctx, func(tx *world.Tx) error {
				if served(tx, pid) != nil {
					tx.Exit(pid)
				}
				return nil
			})
			return err
		}
		wg.Go(func() { _ = srv.Serve(l) })
	}
	err = s.world.Wait(ctx, func(tx *world.Tx) bool { return served(tx, pid) == nil })
	if errors.Is(err, os.ErrNotExist) {
		return nil // The sled is gone.
	}
	return err
}

// awaitStart waits until a process has begun to listen, and returns where; none
// if it is gone.
func (s *Sled) awaitStart(ctx context.Context, pid int) (addresses []netip.AddrPort, err error) {
	err = s.world.Wait(ctx, func(tx *world.Tx) bool {
		p := served(tx, pid)
		if p != nil && p.Started.After(tx.Now) {
			return false
		}
		if p != nil {
			addresses = listenOn(tx, p)
		}
		return true
	})
	return addresses, err
}

// served is a process of the sled, if it is ours: another sled may have taken
// the place of one that was removed, and its processes have the same numbers.
func served(tx *world.Tx, pid int) *world.Process {
	i := slices.IndexFunc(tx.State.Processes, func(p *world.Process) bool { return p.PID == pid && p.OSPID == os.Getpid() })
	if i < 0 {
		return nil
	}
	return tx.State.Processes[i]
}

// keepTime starts a keeper if something is scheduled and none is there. One
// that is there looks again after it has let go of its lock.
func (s *Sled) keepTime(ctx context.Context) error {
	due, err := s.due(ctx)
	if err != nil || !due {
		return err
	}
	l, err := host.Dir(s.world.Dir()).Lock(ctx, "/"+world.KeeperFile, host.TryExclusive)
	if errors.Is(err, host.ErrLocked) {
		return nil
	}
	if err == nil {
		err = l.Unlock()
	}
	if err == nil {
		_, err = s.spawn(keeperName)
	}
	return err
}

// keep carries out what is scheduled until nothing is.
func (s *Sled) keep(ctx context.Context) error {
	for {
		l, err := host.Dir(s.world.Dir()).Lock(ctx, "/"+world.KeeperFile, host.TryExclusive)
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
