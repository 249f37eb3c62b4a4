package sim

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/sim"
)

func newShell(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "shell [-- COMMAND [ARG ...]]",
		Short: "Open a shell with the simulated sled's commands",
		Long: `Open a shell with the simulated sled's commands (zoneadm, zfs, dladm and so on) first on PATH, or run one command: raw commands and
sledctl act on the same sled. In the shell sledctl runs with --host illumos, through real processes, and Propolis is a process that listens
on a loopback address: the underlay is 127.77.0.0/16. The configuration is the sled's, as outside the shell. Two sleds whose shells are
open at once on one computer need different underlays in their configurations, e.g. 127.77.8.0/24.`,
		Example: `  sledctl sim shell
  sledctl sim shell -- sh -c 'zoneadm list -cv; dladm show-vnic'`,
		RunE: env.Run(func(ctx context.Context, args []string) error { return runShell(ctx, env, args) }),
	}
	cmd.Flags().SetInterspersed(false)
	return cmd
}

func runShell(ctx context.Context, e *cli.Env, args []string) error {
	sled, dir, err := simulatedSled(e)
	if err != nil {
		return err
	}
	bin, environ, err := shellEnviron(e, dir)
	if err != nil {
		return err
	}
	if err := sled.StartServers(ctx); err != nil {
		return err
	}
	if len(args) == 0 {
		args = []string{cmp.Or(cli.Variable(e.Environ, "SHELL"), "/bin/sh")}
	}
	e.Close() // the processes in the shell have the sled to themselves
	program, err := lookShell(bin, args[0])
	if err != nil {
		return &cli.UsageError{Text: err.Error()}
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.Streams.In.Reader, e.Streams.Out.Writer, e.Streams.Err.Writer
	cmd.Env = environ
	err = cmd.Run()
	exit, ended := errors.AsType[*exec.ExitError](err)
	if !ended {
		return err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return cli.ExitStatus(128 + int(status.Signal())) // as a shell says it
	}
	return cli.ExitStatus(exit.ExitCode())
}

// lookShell finds a program as the shell will: it has another PATH than sledctl.
func lookShell(bin, program string) (string, error) {
	if filepath.Base(program) == program {
		if own, err := exec.LookPath(filepath.Join(bin, program)); err == nil {
			return own, nil
		}
	}
	return exec.LookPath(program)
}

// shellEnviron makes the links to the sled's commands, in bin, and is the
// environment in which they take the place of the real ones. The sled's own
// configuration holds in it too, since host.root leads there.
func shellEnviron(e *cli.Env, dir string) (bin string, environ []string, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return "", nil, err
	}
	if strings.ContainsAny(dir, ":,") {
		return "", nil, &cli.UsageError{Text: dir + ": a colon or comma in the name of the directory cannot stand in PATH and host.command_path"}
	}
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	bin, err = sim.LinkTools(dir, self, "sledctl")
	if err != nil {
		return "", nil, err
	}
	environ = append(slices.Clone(e.Environ), sim.Environ(dir, cli.Variable(e.Environ, "PATH"))...)
	if e.Flags.Config != "" {
		config, err := filepath.Abs(e.Flags.Config)
		if err != nil {
			return "", nil, err
		}
		environ = append(environ, "SLEDCTL_CONFIG="+config)
	}
	return bin, environ, nil
}
