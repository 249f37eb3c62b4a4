package opte

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// Check says whether opteadm is of a version that this package knows. Errors: *VersionError,
// ErrSyntax, a *host.CommandError.
func Check(ctx context.Context, h host.Host) error {
	out, err := run(ctx, h, versionCommand())
	if err != nil {
		return fmt.Errorf("ask for opteadm's version: %w", err)
	}
	return ParseVersion(out)
}

// List lists the ports of the sled. Errors: ErrSyntax, ErrNoDriver, a *host.CommandError.
func List(ctx context.Context, h host.Host) ([]Listed, error) {
	out, err := run(ctx, h, listCommand())
	if err != nil {
		return nil, fmt.Errorf("list OPTE's ports: %w", err)
	}
	return ParsePorts(out)
}

// Inside is what a port was told since it was made.
type Inside struct{ Firewall, Router []Row }

// Look reads the firewall and the routes of a port. Errors: host.ErrNotFound, ErrSyntax, a
// *host.CommandError.
func Look(ctx context.Context, h host.Host, port string) (in Inside, err error) {
	if in.Firewall, err = layer(ctx, h, port, "firewall"); err == nil {
		in.Router, err = layer(ctx, h, port, "router")
	}
	return in, err
}

func layer(ctx context.Context, h host.Host, port, name string) ([]Row, error) {
	out, err := run(ctx, h, layerCommand(port, name))
	if err != nil {
		return nil, fmt.Errorf("read the %s of port %s: %w", name, port, err)
	}
	return ParseLayer(out, port, name)
}

// HasRules reports whether a port's firewall has exactly these rules.
func (in Inside) HasRules(rules []Rule) bool {
	var want, has []string
	for _, r := range rules {
		want = append(want, r.row().key())
	}
	for _, row := range in.Firewall {
		has = append(has, row.key())
	}
	slices.Sort(want)
	slices.Sort(has)
	return slices.Equal(want, has)
}

// HasRoute reports whether a port has a route.
func (in Inside) HasRoute(r Route) bool {
	return slices.ContainsFunc(in.Router, func(row Row) bool { return row.key() == r.row().key() })
}

// run gives what a command printed, or its typed error.
func run(ctx context.Context, h host.Host, c host.Command) ([]byte, error) {
	r, err := h.Run(ctx, c)
	if err != nil {
		return nil, err
	}
	if r.Exit == 0 {
		return r.Stdout, nil
	}
	return nil, failure(c, r)
}

// failure is the error of a command that ended badly. The texts are those of opteadm's main, with the
// errors of opte-ioctl and of the driver (lib/opte-ioctl/src/lib.rs, crates/opte-api/src/cmd.rs, xde/src/xde.rs) and
// those of libnet (oxidecomputer/netadm-sys). A text that follows another has no kind.
func failure(c host.Command, r host.Result) error {
	e := &host.CommandError{Command: c, Result: r}
	text, ok := strings.CutPrefix(strings.TrimSuffix(string(r.Stderr), "\n"), "Error: ")
	if !ok || strings.Contains(text, "\n") {
		return e
	}
	for form, kind := range map[string]error{
		`netadm failed not found: link [^ ]+ not found`:                                                                   host.ErrNotFound,
		`command [A-Za-z]+ failed: PortNotFound\("[^"]*"\)`:                                                               host.ErrNotFound,
		`could not delete entry -- no matching rule found`:                                                                host.ErrNotFound,
		`netadm failed dlmgmtd: link id creation failed: 17`:                                                              host.ErrExists,
		`command CreateXde failed: PortExists\("[^"]*"\)`:                                                                 host.ErrExists,
		`command CreateXde failed: MacExists \{ .* \}`:                                                                    ErrMACInUse,
		`command CreateXde failed: System \{ errno: 22, msg: "underlay not initialized" \}`:                               ErrNoUnderlay,
		`command SetXdeUnderlay failed: System \{ errno: 17, msg: "underlay already initialized" \}`:                      host.ErrExists,
		`command DeleteXde failed: System \{ errno: 16, msg: "failed to (destroy DLS devnet|unregister mac): 16" \}`:      host.ErrBusy,
		`OPTE driver is not attached`:                                                                                     ErrNoDriver,
		`(ioctl [A-Za-z0-9]+ failed: permission denied|error interacting with device: Permission denied \(os error 13\))`: host.ErrPrivileges,
	} {
		if regexp.MustCompile(`^(?:` + form + `)$`).MatchString(text) {
			e.Means = kind
		}
	}
	return e
}
