// Package kstat reads counters of an illumos kernel (usr/src/cmd/stat/kstat/kstat.c): what
// its processors are, when it booted, the processor time of its zones, and the bytes that its links have moved.
package kstat

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sledctl/sledctl/host"
)

// ErrSyntax is output that is not kstat's.
var ErrSyntax = errors.New("output of kstat that cannot be understood")

// Bytes are those that a link has moved since it was created.
type Bytes struct{ In, Out uint64 }

// Usage is what zones and links have used so far. Each counter only grows while its zone
// runs, or its link exists.
//
// Guess zone-time-includes-guests: nsec_sys of a zone has the time that its guest's virtual CPUs
// run: they are threads of Propolis in an ioctl(2).
// Check: `kstat -p zones:::nsec_sys` twice while a guest is busy
//
// Guess links-count-viona: obytes64 and rbytes64 of a VNIC have what viona moves for a guest.
// Check: `kstat -p link:0:VNIC:obytes64` while a guest sends
type Usage struct {
	CPU   map[string]time.Duration // by the name of the zone
	Links map[string]Bytes         // by the name of the link
}

func command(selectors ...string) host.Command {
	return host.Command{Program: "kstat", Args: append([]string{"-p"}, selectors...), ReadOnly: true}
}

func bootCommand() host.Command { return command("unix:0:system_misc:boot_time") }

// usageCommand names the fields that are read: a sled has tens of thousands.
func usageCommand() host.Command {
	return command("zones:::nsec_sys", "zones:::nsec_user", "zones:::zonename", "link:0::obytes64", "link:0::rbytes64")
}

// Booted asks when the kernel booted. Errors: ErrSyntax, a *host.CommandError.
func Booted(ctx context.Context, h host.Host) (time.Time, error) {
	out, err := run(ctx, h, bootCommand())
	if err != nil {
		return time.Time{}, err
	}
	all, err := parse(out)
	if err != nil {
		return time.Time{}, err
	}
	if len(all) != 1 || all[0].Statistic != "boot_time" {
		return time.Time{}, fmt.Errorf("%w: %q", ErrSyntax, out)
	}
	seconds, err := all[0].number()
	return time.Unix(int64(seconds&(1<<62-1)), 0).UTC(), err
}

// Processor is what the first processor says that it is.
type Processor struct {
	Vendor        string // e.g. "AuthenticAMD"
	Family, Model uint64
}

func processorCommand() host.Command {
	return command("cpu_info:0:cpu_info0:vendor_id", "cpu_info:0:cpu_info0:family", "cpu_info:0:cpu_info0:model")
}

// QueryProcessor asks what the first processor is (usr/src/uts/common/os/cpu.c, cpu_info_kstat_update).
// Errors: ErrSyntax, a *host.CommandError.
func QueryProcessor(ctx context.Context, h host.Host) (p Processor, err error) {
	out, err := run(ctx, h, processorCommand())
	if err != nil {
		return Processor{}, err
	}
	all, err := parse(out)
	for _, c := range all {
		var nerr error
		switch c.Statistic {
		case "vendor_id":
			p.Vendor = c.Value
		case "family":
			p.Family, nerr = c.number()
		case "model":
			p.Model, nerr = c.number()
		}
		err = errors.Join(err, nerr)
	}
	if err == nil && p.Vendor == "" {
		err = fmt.Errorf("%w: %q", ErrSyntax, out)
	}
	return p, err
}

// Query asks for the usage of all zones and links. Errors: ErrSyntax, a *host.CommandError.
func Query(ctx context.Context, h host.Host) (Usage, error) {
	out, err := run(ctx, h, usageCommand())
	if err != nil {
		return Usage{}, err
	}
	return Parse(out)
}

// Parse reads the output of kstat -p. Errors: ErrSyntax.
func Parse(out string) (Usage, error) {
	all, err := parse(out)
	if err != nil {
		return Usage{}, err
	}
	u := Usage{CPU: map[string]time.Duration{}, Links: map[string]Bytes{}}
	zones := map[string]string{} // names by instance: that of the counter is cut off at 30 letters
	for _, v := range all {
		if v.Statistic == "zonename" {
			zones[v.Instance] = v.Value
		}
	}
	for _, v := range all {
		if v.Statistic == "zonename" {
			continue
		}
		n, err := v.number()
		if err != nil {
			return Usage{}, err
		}
		bytes := u.Links[v.Name]
		switch zone, known := zones[v.Instance]; {
		case v.Module == "zones" && known:
			u.CPU[zone] += time.Duration(n & (1<<62 - 1))
		case v.Module == "zones": // it began meanwhile
		case v.Statistic == "rbytes64":
			u.Links[v.Name] = Bytes{In: n, Out: bytes.Out}
		case v.Statistic == "obytes64":
			u.Links[v.Name] = Bytes{In: bytes.In, Out: n}
		}
	}
	return u, nil
}

// Counter is one statistic, as kstat -p prints it.
type Counter struct{ Module, Instance, Name, Statistic, Value string }

// String is its line.
func (c Counter) String() string {
	return strings.Join([]string{c.Module, c.Instance, c.Name, c.Statistic}, ":") + "\t" + c.Value
}

func (c Counter) number() (uint64, error) {
	n, err := strconv.ParseUint(c.Value, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %s of %s is %q", ErrSyntax, c.Statistic, c.Name, c.Value)
	}
	return n, nil
}

// ParseCounter reads a line like "zones:3:web1:nsec_user\t12", or says that it is none.
// Names have no colon.
func ParseCounter(line string) (c Counter, ok bool) {
	key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
	parts := strings.Split(key, ":")
	if !ok || len(parts) != 4 {
		return Counter{}, false
	}
	return Counter{parts[0], parts[1], parts[2], parts[3], value}, true
}

func parse(out string) (all []Counter, err error) {
	for line := range strings.Lines(out) {
		c, ok := ParseCounter(line)
		if !ok {
			return nil, fmt.Errorf("%w: %q", ErrSyntax, line)
		}
		all = append(all, c)
	}
	return all, nil
}

// run runs a command. Exit 1 is that nothing fits.
func run(ctx context.Context, h host.Host, c host.Command) (string, error) {
	result, err := h.Run(ctx, c)
	if err == nil && result.Exit != 0 {
		err = &host.CommandError{Command: c, Result: result}
	}
	if err != nil {
		return "", fmt.Errorf("read the kernel's counters: %w", err)
	}
	return string(result.Stdout), nil
}
