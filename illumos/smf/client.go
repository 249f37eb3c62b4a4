package smf

import (
	"context"
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// States are the states of all instances of a running zone, by FMRI; zone ""
// is the global one. An instance without a state yet has "-". Errors:
// host.ErrTransient while the zone's svc.configd does not answer, ErrNoZone.
func States(ctx context.Context, h host.Host, zone string) (map[string]string, error) {
	c := listCommand(zone)
	r, err := h.Run(ctx, c)
	if err == nil && r.Exit != 0 {
		err = failure(c, r)
	}
	if err != nil {
		return nil, fmt.Errorf("list the services of zone %q: %w", zone, err)
	}
	return statesOf(r.Stdout)
}

func statesOf(out []byte) (map[string]string, error) {
	services, err := ParseList(out)
	if err != nil {
		return nil, err
	}
	states := make(map[string]string, len(services))
	for _, s := range services {
		states[s.FMRI] = s.State
	}
	return states, nil
}

// Find gives the states of those of the global zone's instances that fit the
// patterns, by FMRI. A pattern that fits nothing gives no entry.
//
// Guess svcs-complains-of-each-pattern: `svcs -H -o state,fmri` of services that do not exist
// complains of each pattern and exits 1, and lists the instances of those that are (svcs.c).
// Check: `svcs -H -o state,fmri svc:/oxide/sled-agent svc:/system/filesystem/local; echo $?`
func Find(ctx context.Context, h host.Host, patterns ...string) (map[string]string, error) {
	c := findCommand(patterns)
	r, err := h.Run(ctx, c)
	if err == nil && r.Exit != 0 && !onlyUnmatched(string(r.Stderr)) {
		err = failure(c, r)
	}
	if err != nil {
		return nil, err
	}
	return statesOf(r.Stdout)
}

// onlyUnmatched says whether svcs complains of nothing but patterns that fit no
// instance.
func onlyUnmatched(stderr string) bool {
	for line := range strings.Lines(stderr) {
		if !strings.HasPrefix(line, "svcs: Pattern '") || !strings.HasSuffix(strings.TrimSpace(line), "' doesn't match any instances") {
			return false
		}
	}
	return stderr != ""
}

// State is the state of one instance. Errors: host.ErrTransient while the
// zone's svc.configd does not answer or the instance has no state yet,
// host.ErrNotFound for an instance that the zone does not have (yet: manifests
// are imported while it boots), ErrNoZone.
func State(ctx context.Context, h host.Host, zone, fmri string) (string, error) {
	return ask(ctx, h, stateCommand(zone, fmri))
}

func ask(ctx context.Context, h host.Host, c host.Command) (string, error) {
	r, err := h.Run(ctx, c)
	if err != nil {
		return "", err
	}
	if r.Exit != 0 {
		return "", failure(c, r)
	}
	return ParseState(r.Stdout)
}
