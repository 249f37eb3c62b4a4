package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/propolis"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/smf"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// A propolis-server of the sled, where stand-in commands are used, is a process
// of the machine too. It is started with its listeners open, so that an address
// that somebody else listens on is an error of that server and of nobody else;
// and with a lock, which tells as long as it is held that the process lives and
// that its number is still its own.

// tend is done after every transaction of a stand-in: servers are started for
// the processes that can be listened for, those whose process has ended are
// ended, and processes whose server was killed have died.
func (s *Sled) tend(tx *world.Tx, ended []*world.Process) {
	s.endServers(ended)
	for _, p := range slices.Clone(tx.State.Processes) {
		switch {
		case p.OSPID == 0:
			if err := s.startServer(tx, p); err != nil {
				smf.Abort(tx, p.PID, fmt.Sprintf("Error: %v\n", err))
			}
		case !s.lives(p):
			smf.Exit(tx, p.PID)
		}
	}
}

// untended says whether tend has something to do.
func (s *Sled) untended(tx *world.Tx) bool {
	return slices.ContainsFunc(tx.State.Processes, func(p *world.Process) bool { return p.OSPID == 0 || !s.lives(p) })
}

// StartServers starts the processes that stand-in commands would have left, for
// what was brought up without them.
func (s *Sled) StartServers(ctx context.Context) error {
	if err := s.world.Update(ctx, func(tx *world.Tx) error { s.tend(tx, nil); return nil }); err != nil {
		return err
	}
	return s.keepTime(ctx)
}

func (s *Sled) startServer(tx *world.Tx, p *world.Process) error {
	addresses := listenOn(tx, p)
	if len(addresses) == 0 {
		return nil
	}
	l, err := s.tryLock(serverLock(p))
	if errors.Is(err, host.ErrLocked) {
		return nil // One whose parent was killed before it was written down: it will find that out.
	}
	if err != nil {
		return err
	}
	defer func() { _ = l.Unlock() }() // The server has it.
	files := []*os.File{l.(interface{ File() *os.File }).File()}
	for _, a := range addresses {
		listener, err := listenFile(a)
		if err != nil {
			return err
		}
		defer listener.Close()
		files = append(files, listener)
	}
	tx.TouchProcess(p)
	p.OSPID, err = s.spawn(serverName, files, strconv.Itoa(p.PID), strconv.Itoa(len(addresses)))
	return err
}

// listenOn are the addresses that a stand-in server can have.
func listenOn(tx *world.Tx, p *world.Process) []netip.AddrPort {
	own, err := netip.ParseAddrPort(p.Listen)
	if err != nil {
		return nil
	}
	var all []netip.AddrPort
	if zones.IsUnderlay(own.Addr()) {
		all = append(all, own)
	}
	if stack := tx.State.Stacks[p.Zone]; stack != nil && own.Addr().IsUnspecified() {
		for _, a := range stack.Addresses {
			prefix, err := netip.ParsePrefix(a.Address)
			if err == nil && zones.IsUnderlay(prefix.Addr()) && world.At(a.Timeline, tx.Now).State == "ok" {
				all = append(all, netip.AddrPortFrom(prefix.Addr(), own.Port()))
			}
		}
	}
	return all
}

// A server that has been killed is listening for a moment still.
const (
	listenPause = time.Millisecond
	listenTries = 200
)

// listenFile listens on an address. Someone of another sled, or not of any, may
// have it.
func listenFile(a netip.AddrPort) (*os.File, error) {
	for try := 1; ; try++ {
		l, err := net.Listen("tcp", a.String())
		if err == nil {
			defer l.Close()
			return l.(*net.TCPListener).File()
		}
		if !errors.Is(err, syscall.EADDRINUSE) || try == listenTries {
			return nil, err
		}
		time.Sleep(listenPause)
	}
}

func serverLock(p *world.Process) string {
	return path.Join(world.LocksDir, fmt.Sprintf(".server-%d", p.PID)) // No zone's name begins with a dot.
}

// lives tells whether the server of a process does.
func (s *Sled) lives(p *world.Process) bool {
	l, err := s.tryLock(serverLock(p))
	if err == nil {
		_ = l.Unlock()
	}
	return errors.Is(err, host.ErrLocked)
}

// endServers ends the servers of processes that have ended, so that their addresses
// are free.
func (s *Sled) endServers(ended []*world.Process) {
	for _, p := range ended {
		if p.OSPID == 0 {
			continue
		}
		if p.OSPID != os.Getpid() && s.lives(p) {
			_ = syscall.Kill(p.OSPID, syscall.SIGKILL) // If it is another user's, it notices by itself.
		}
		_ = os.Remove(filepath.Join(s.world.Dir(), serverLock(p)))
	}
}

// serve answers for a process of the sled until it is gone, or the sled is.
// Its descriptors are what startServer gives.
func (s *Sled) serve(ctx context.Context, args []string) error {
	pid, listeners, err := serverArgs(args)
	if err != nil {
		return err
	}
	// The process that started this one has not stored that before its lock is free.
	err = s.world.Update(ctx, func(*world.Tx) error { return nil })
	if err == nil {
		err = s.world.Wait(ctx, func(tx *world.Tx) bool { p := served(tx, pid); return p == nil || !p.Started.After(tx.Now) })
	}
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: s.observed(propolis.Handler(s.world, pid)), ReadHeaderTimeout: time.Minute}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer srv.Close()
	for _, l := range listeners {
		wg.Go(func() { _ = srv.Serve(l) })
	}
	err = s.awaitEnd(ctx, pid)
	if errors.Is(err, os.ErrNotExist) {
		return nil // The sled is gone.
	}
	return err
}

func serverArgs(args []string) (pid int, listeners []net.Listener, err error) {
	var n int
	if _, err := fmt.Sscan(strings.Join(args, " "), &pid, &n); err != nil {
		return 0, nil, fmt.Errorf("this server is started by the simulated sled: %w", err)
	}
	for i := range n {
		file := os.NewFile(uintptr(firstFile+1+i), "listener")
		l, err := net.FileListener(file)
		if err != nil {
			return 0, nil, err
		}
		_ = file.Close()
		listeners = append(listeners, l)
	}
	return pid, listeners, nil
}

// endPause is how often a server looks whether its sled is still there, and
// servedPause how often whether it is still one of its processes. A process that ends its
// process ends it too: the latter is for a process that another user ended, and
// costs each of many servers the whole state.
const (
	endPause    = 50 * time.Millisecond
	servedPause = 2 * time.Second
)

func (s *Sled) awaitEnd(ctx context.Context, pid int) error {
	there, err := os.Open(filepath.Join(s.world.Dir(), world.LockFile)) // which no transaction replaces
	if err != nil {
		return err
	}
	defer there.Close()
	tick := time.NewTicker(endPause)
	defer tick.Stop()
	for looked := (time.Time{}); ; {
		stands, err := world.Stands(there)
		if err != nil {
			return err
		}
		if !stands || time.Since(looked) >= servedPause {
			var ended bool
			err := s.world.View(ctx, func(tx *world.Tx) error { ended = served(tx, pid) == nil; return nil })
			if ended || err != nil {
				return err
			}
			looked = time.Now()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// served is a process of the sled, if it is this one: another sled may have taken
// the place of one that was removed, and its processes have the same numbers.
func served(tx *world.Tx, pid int) *world.Process {
	for _, p := range tx.State.Processes {
		if p.PID == pid && p.OSPID == os.Getpid() {
			return p
		}
	}
	return nil
}
