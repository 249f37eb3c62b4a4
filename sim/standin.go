package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/tools"
	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/tools/shell"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/smf"
)

// DirVariable names the environment variable that tells a stand-in command
// which directory its sled lives in.
const DirVariable = "SLEDCTL_SIM"

// IsStandIn tells whether a program that is called by this name is to behave
// as a stand-in: the commands of the sled, and the processes that they start.
func IsStandIn(name string) bool {
	_, ok := tools.Lookup(name)
	return ok || name == serverName || name == keeperName
}

// StandIn is one of the sled's commands as a process: it acts on the sled that
// DirVariable names in env (KEY=VALUE), and returns its exit code. A fault that
// kills the caller kills the parent process.
func StandIn(ctx context.Context, name string, args []string, stdin io.Reader, stdout, stderr io.Writer, env []string) int {
	variables := map[string]string{}
	for _, e := range env {
		key, value, _ := strings.Cut(e, "=")
		variables[key] = value
	}
	dir := variables[DirVariable]
	s, err := Open(cmp.Or(dir, os.DevNull))
	if err != nil {
		fmt.Fprintf(stderr, "%s: %s does not name the directory of a simulated sled: %v\n", name, DirVariable, err)
		return 1
	}
	defer s.Close()
	if name := variables[ExchangesVariable]; name != "" {
		s.Observe = Record(name)
	}
	s.world.AfterUpdate(s.tend)
	switch name {
	case serverName:
		err = s.serve(ctx, args)
	case keeperName:
		err = s.keep(ctx)
	default:
		return s.command(ctx, name, args, stdin, stdout, stderr, variables)
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}

// command runs one command and leaves behind what must outlive it.
func (s *Sled) command(
	ctx context.Context, name string, args []string, stdin io.Reader, stdout, stderr io.Writer, env map[string]string,
) int {
	call := cli.Call{Tool: name, Args: args, Env: env, Zone: world.GlobalZone}
	if stdin != nil && shell.ReadsInput(call) {
		data, err := io.ReadAll(stdin)
		if err != nil {
			fmt.Fprintf(stderr, "%s: %v\n", name, err)
			return 1
		}
		call.Stdin = data
	}
	d := &tools.Dispatcher{World: s.world, Stale: s.untended, Kill: func() { _ = syscall.Kill(os.Getppid(), syscall.SIGKILL) }}
	reply, err := d.Exec(ctx, call)
	_, outErr := io.WriteString(stdout, reply.Stdout)
	_, errErr := io.WriteString(stderr, reply.Stderr)
	if kerr := s.keepTime(ctx); err == nil {
		err = kerr
	}
	switch {
	case errors.Is(err, ErrKilled):
		return 128 + int(syscall.SIGKILL)
	case err != nil:
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return 1
	case outErr != nil || errErr != nil:
		return 1
	}
	return reply.Exit
}

// Root is the directory that stands for / on the sled in dir.
func Root(dir string) string { return filepath.Join(dir, world.RootDir) }

// Tools is the directory of the stand-in commands of the sled in dir, see LinkTools.
func Tools(dir string) string { return filepath.Join(dir, world.BinDir) }

// LinkTools makes a directory with a link to an executable for every command
// of the sled in dir, and for each name of others, and returns it. In a shell
// that has it in front of its PATH, and DirVariable set, the stand-ins take the
// place of the real ones. Commands that the shell needs itself, as ls, are in
// CommonDir of that directory.
func LinkTools(dir, executable string, others ...string) (bin string, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	bin = filepath.Join(dir, world.BinDir)
	if err := os.MkdirAll(filepath.Join(bin, CommonDir), 0o755); err != nil {
		return "", err
	}
	names := append(tools.Names(), others...)
	for _, name := range tools.CommonNames() {
		names = append(names, filepath.Join(CommonDir, name))
	}
	for _, name := range names {
		if err := link(executable, filepath.Join(bin, name)); err != nil {
			return "", err
		}
	}
	return bin, nil
}

// CommonDir is where LinkTools puts the stand-ins of commands that every system
// has.
const CommonDir = "common"

// link makes a symbolic link, or leaves the one that is there.
func link(target, name string) error {
	if there, err := os.Readlink(name); err == nil && there == target {
		return nil
	}
	// By rename, since others may be running it.
	temp := fmt.Sprintf("%s.%d", name, os.Getpid())
	if err := os.Symlink(target, temp); err != nil {
		return err
	}
	return os.Rename(temp, name)
}

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
	own := &methods{sled: s, begun: map[methodKey]bool{}}
	for {
		l, err := s.tryLock(world.KeeperFile)
		if errors.Is(err, host.ErrLocked) {
			return nil
		}
		if err != nil {
			return err
		}
		err = own.carryOut(ctx)
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
	err = s.world.View(ctx, func(tx *world.Tx) error { due = len(tx.State.Due) > 0 || len(smf.Programs(tx)) > 0; return nil })
	return due, err
}
