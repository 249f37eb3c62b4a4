package zone

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
)

// Dir is where zonecfg keeps configurations and zoneadm its index.
const Dir = "/etc/zones"

// IncompleteError is a listing from which zones are missing: zoneadm leaves out
// a zone that vanishes or whose configuration is broken while it walks, says so
// on standard error, and exits 0 (zone_print_list of zoneadm.c).
type IncompleteError struct {
	Skipped []string // the zones that it named
	// Unclear is set when it said something that names no zone: then any zone
	// may be missing.
	Unclear bool
	Words   string // standard error
}

// Error repeats zoneadm's words.
func (e *IncompleteError) Error() string {
	return "the zone listing is incomplete: " + strings.Join(strings.Fields(e.Words), " ")
}

func (*IncompleteError) Kind() fault.Kind { return fault.Failed }

// Hides says whether the zone may exist although the listing lacks it.
func (e *IncompleteError) Hides(name string) bool {
	return e.Unclear || slices.Contains(e.Skipped, name)
}

// listAttempts bounds how often List repeats a listing that lacks zones: one
// that vanished is gone in the next.
const listAttempts = 3

// List lists every zone, the global one first, whatever its state. If zones are
// missing, what is there is returned together with an *IncompleteError; any
// other error comes with no zones. Errors: host.ErrPrivileges outside the
// global zone, where a zone sees only itself; ErrSyntax; a *host.CommandError.
func List(ctx context.Context, h host.Host) ([]Zone, error) {
	var zones []Zone
	var err error
	for range listAttempts {
		if zones, err = list(ctx, h); !isIncomplete(err) {
			break
		}
	}
	return zones, err
}

func list(ctx context.Context, h host.Host) ([]Zone, error) {
	c := listCommand()
	r, err := h.Run(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("list zones: %w", err)
	}
	if r.Exit != 0 {
		return nil, fmt.Errorf("list zones: %w", failure(c, r))
	}
	zones, err := ParseList(r.Stdout)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(zones, func(z Zone) bool { return z.Name == Global }) {
		return nil, fmt.Errorf("list zones: the global zone is not among them: %w", host.ErrPrivileges)
	}
	if len(r.Stderr) > 0 {
		return zones, incomplete(string(r.Stderr))
	}
	return zones, nil
}

// incomplete finds the zones that lines of the form "zoneadm: NAME: …" name.
func incomplete(words string) *IncompleteError {
	e := &IncompleteError{Words: words}
	for line := range strings.Lines(words) {
		rest, isZoneadm := strings.CutPrefix(line, "zoneadm: ")
		name, _, named := strings.Cut(rest, ": ")
		if _, odd := outside(name, "._-"); !isZoneadm || !named || odd {
			e.Unclear = true
			continue
		}
		e.Skipped = append(e.Skipped, name)
	}
	return e
}

// Find looks one zone up in a listing of all. Not found and no error means that
// this one listing lacks it: see Gone.
func Find(ctx context.Context, h host.Host, name string) (Zone, bool, error) {
	zones, err := List(ctx, h)
	for _, z := range zones {
		if z.Name == name {
			return z, true, nil
		}
	}
	if gap, ok := errors.AsType[*IncompleteError](err); ok && !gap.Hides(name) {
		err = nil
	}
	return Zone{}, false, err
}

// Gone says whether two listings in a row lack the zone. One is not enough: a
// zone whose files are being replaced can slip through a listing.
//
// Guess zone-listing-complete: no listing of zoneadm lacks a zone that exists without a message on
// standard error (zone_print_list); two in a row are asked for all the same.
// Check: `while :; do zoneadm list -cp | wc -l; done` while zones come and go
func Gone(ctx context.Context, h host.Host, name string) (bool, error) {
	for range 2 {
		_, found, err := Find(ctx, h, name)
		if err != nil || found {
			return false, err
		}
	}
	return true, nil
}

// ConfigError is a configuration that could not be read.
type ConfigError struct {
	Zone string
	Err  error
}

// Error names the zone.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("configuration of zone %s: %v", e.Zone, e.Err)
}

func (*ConfigError) Kind() fault.Kind { return fault.Failed }

// Unwrap gives the cause.
func (e *ConfigError) Unwrap() error { return e.Err }

// Configs reads the configurations of all zones that /etc/zones/index names,
// but for the global one, from /etc/zones/NAME.xml; where wanted is given, those of the
// zones that it picks. It runs no command. The
// templates that lie there too (SUNWblank.xml) are in no index. If some cannot
// be read, the others are returned together with their *ConfigErrors, joined:
// those zones are unknown, not absent.
func Configs(f host.Files, wanted func(name string) bool) (map[string]Config, error) {
	entries, err := readIndex(f)
	if err != nil {
		return nil, err
	}
	if wanted != nil {
		entries = slices.DeleteFunc(entries, func(e Entry) bool { return !wanted(e.Name) })
	}
	// Many are read side by side: a thousand take longer than all listings of the host.
	const each, most = 64, 4
	read, errs, readers := make([]Config, len(entries)), make([]error, len(entries)), min(1+len(entries)/each, most)
	var all sync.WaitGroup
	for n := range readers {
		all.Go(func() {
			for i := n; i < len(entries); i += readers {
				read[i], errs[i] = ReadConfig(f, entries[i].Name)
			}
		})
	}
	all.Wait()
	configs := make(map[string]Config, len(entries))
	for i, e := range entries {
		switch {
		case errors.Is(errs[i], fs.ErrNotExist) && vanished(f, e.Name):
			errs[i] = nil
		case errs[i] == nil:
			configs[e.Name] = read[i]
		}
	}
	return configs, errors.Join(errs...)
}

// vanished says whether a zone has left the index since it was read.
func vanished(f host.Files, name string) bool {
	entries, err := readIndex(f)
	return err == nil && !slices.ContainsFunc(entries, func(e Entry) bool { return e.Name == name })
}

func readIndex(f host.Files) ([]Entry, error) {
	data, err := host.ReadFile(f, path.Join(Dir, "index"))
	if err != nil {
		return nil, fmt.Errorf("read the zone index: %w", err)
	}
	entries, err := ParseIndex(data)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(entries, func(e Entry) bool { return e.Name == Global }), nil
}

// ReadConfig reads one zone's configuration from its file. Errors are
// *ConfigErrors, of fs.ErrNotExist if there is no file.
func ReadConfig(f host.Files, name string) (Config, error) {
	data, err := host.ReadFile(f, configFile(name))
	if err != nil {
		return Config{}, &ConfigError{Zone: name, Err: err}
	}
	owner, c, err := ParseConfig(data)
	if err == nil && owner != name {
		err = fmt.Errorf("the file is of zone %q: %w", owner, ErrSyntax)
	}
	if err != nil {
		return Config{}, &ConfigError{Zone: name, Err: err}
	}
	sum := sha256.Sum256(data)
	c.Sum = hex.EncodeToString(sum[:16])
	return c, nil
}

func isIncomplete(err error) bool {
	_, ok := errors.AsType[*IncompleteError](err)
	return ok
}
