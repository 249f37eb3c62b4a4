// Package system asks an illumos host what it is: its distribution, the kernel that runs,
// the zone that sledctl is in, and the privileges that it has there.
package system

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/privilege"
)

// Distribution is a distribution of illumos.
type Distribution string

// The distributions that sledctl knows; others are Unknown.
const (
	OmniOS  Distribution = "OmniOS"
	Helios  Distribution = "Helios"
	SmartOS Distribution = "SmartOS"
	Unknown Distribution = ""
)

// Kernel is the kernel that runs.
type Kernel struct {
	Version      string // as uname -v prints it
	Distribution Distribution
	// Release is the number of OmniOS' release, e.g. 151058; 0: the kernel does not name one.
	Release int
}

// Privileges are the effective user of a process and its sets of privileges.
type Privileges struct {
	User                 int
	Effective, Permitted privilege.Set
}

// All reports whether the process may do everything.
func (p Privileges) All() bool { return p.Effective.Has(privilege.All) }

// ErrSyntax is output that cannot be understood.
var ErrSyntax = errors.New("output that cannot be understood")

func kernelCommand() host.Command {
	return host.Command{Program: "uname", Args: []string{"-v"}, ReadOnly: true}
}

func nameCommand() host.Command {
	return host.Command{Program: "uname", Args: []string{"-n"}, ReadOnly: true}
}

func zoneCommand() host.Command { return host.Command{Program: "zonename", ReadOnly: true} }

func privilegesCommand(pid int) host.Command {
	return host.Command{Program: "ppriv", Args: []string{strconv.Itoa(pid)}, ReadOnly: true}
}

func userCommand(pid int) host.Command {
	return host.Command{Program: "pcred", Args: []string{strconv.Itoa(pid)}, ReadOnly: true}
}

// QueryKernel asks for the kernel. Errors: a *host.CommandError.
func QueryKernel(ctx context.Context, h host.Host) (Kernel, error) {
	out, err := run(ctx, h, kernelCommand())
	return ParseKernel(out), err
}

// QueryHostName asks for the name of the host. Errors: ErrSyntax, a *host.CommandError.
func QueryHostName(ctx context.Context, h host.Host) (string, error) {
	out, err := run(ctx, h, nameCommand())
	name := strings.TrimSuffix(out, "\n")
	if err == nil && (name == "" || strings.ContainsAny(name, " \n")) {
		err = fmt.Errorf("uname: %w: %q", ErrSyntax, out)
	}
	return name, err
}

// RunsVMs says whether sledctl can run VMs on the host: SmartOS has no brand for them, and
// sledctl keeps NIC records alone there. Errors: a *host.CommandError.
func RunsVMs(ctx context.Context, h host.Host) (bool, error) {
	kernel, err := QueryKernel(ctx, h)
	return kernel.Distribution != SmartOS, err
}

// ParseKernel reads the output of uname -v. A kernel of an unknown distribution is no
// error.
func ParseKernel(out string) Kernel {
	k := Kernel{Version: strings.TrimSpace(out)}
	words := strings.Split(k.Version, "-")
	switch {
	case words[0] == "omnios" && len(words) > 1:
		k.Distribution = OmniOS
		if release, ok := strings.CutPrefix(words[1], "r"); ok {
			k.Release, _ = strconv.Atoi(release) // 0: it is no number
		}
	case words[0] == "helios":
		k.Distribution = Helios
	case strings.HasPrefix(k.Version, "joyent_"):
		k.Distribution = SmartOS
	}
	return k
}

// QueryZone asks for the zone that sledctl is in; "global" is the global zone. Errors: a
// *host.CommandError.
func QueryZone(ctx context.Context, h host.Host) (string, error) {
	out, err := run(ctx, h, zoneCommand())
	return strings.TrimSpace(out), err
}

// QueryPrivileges asks for sledctl's own privileges. Errors: ErrSyntax, a
// *host.CommandError.
func QueryPrivileges(ctx context.Context, h host.Host) (Privileges, error) {
	out, err := run(ctx, h, privilegesCommand(os.Getpid()))
	if err != nil {
		return Privileges{}, err
	}
	p, err := ParsePrivileges(out)
	if err == nil {
		out, err = run(ctx, h, userCommand(os.Getpid()))
	}
	if err == nil {
		p.User, err = ParseUser(out)
	}
	return p, err
}

// ParseUser reads the effective user of a process from the output of pcred, which is
// "PID: euid=N ruid=N suid=N ..." or, if all three are one, "PID: e/r/suid=N ...". Errors: ErrSyntax.
func ParseUser(out string) (int, error) {
	for word := range strings.FieldsSeq(out) {
		name, value, _ := strings.Cut(word, "=")
		if name == "euid" || name == "e/r/suid" {
			if user, err := strconv.Atoi(value); err == nil && user >= 0 {
				return user, nil
			}
		}
	}
	return 0, fmt.Errorf("pcred: %w: %q", ErrSyntax, out)
}

// ParsePrivileges reads the output of ppriv of one process. Errors: ErrSyntax.
//
// Guess root-has-all-privileges: root's effective set in the global zone is printed as `E: all`,
// also with the privileges that a distribution adds.
// Check: `ppriv $$` as root
func ParsePrivileges(out string) (Privileges, error) {
	var p Privileges
	for line := range strings.Lines(out) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), ": "); name {
		case "E":
			p.Effective = privilege.Set(value)
		case "P":
			p.Permitted = privilege.Set(value)
		}
	}
	if p.Effective == "" || p.Permitted == "" {
		return p, fmt.Errorf("ppriv: %w: %q", ErrSyntax, out)
	}
	return p, nil
}

// Release is the first line of /etc/release, with single blanks.
func Release(files host.Files) (string, error) {
	text, err := host.ReadFile(files, "/etc/release")
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return strings.Join(strings.Fields(first), " "), nil
}

func run(ctx context.Context, h host.Host, c host.Command) (string, error) {
	result, err := h.Run(ctx, c)
	switch {
	case err != nil:
		return "", err
	case result.Exit != 0:
		return "", &host.CommandError{Command: c, Result: result}
	}
	return string(result.Stdout), nil
}
