// Package bundle keeps what a zone shows about itself before the zone is
// removed: logs, configuration, and, while it runs, services, processes, links and
// addresses. A bundle is a gzipped tar, one for a zone and a moment, below
//
//	<debug dataset>/bundle/zone/<zone>/<id>.tar.gz
//
// which is where the sled agent has its zone bundles (oxidecomputer/omicron,
// sled-agent/src/zone_bundle.rs). New bundles replace the oldest.
package bundle

import (
	"crypto/sha256"
	"fmt"
	"path"
	"strings"
	"time"
)

// Cause is why a bundle was taken.
type Cause string

// The causes.
const (
	Failed    Cause = "failed"    // its instance had failed
	StaleZone Cause = "stale"     // from before the boot of the sled
	Orphan    Cause = "orphan"    // needed by nobody
	Removed   Cause = "removed"   // removed though it was needed
	Requested Cause = "requested" // somebody asked for it
	Start     Cause = "start"     // its instance did not come up
)

// ID names a bundle among all: its time, its cause, and something of its own
// that derives from seed. Of a start that is the instance, whatever zone each try
// made: by it the older ones are found.
func ID(now time.Time, cause Cause, seed string) string {
	sum := sha256.Sum256([]byte(seed + " bundle"))
	return fmt.Sprintf("%s-%s-%x", now.UTC().Format(idTime), cause, sum[:4])
}

// The time within an id. Until 0.1.0 ids had whole seconds, and an instance that
// was started twice within one kept the evidence of the second start alone.
const (
	idTime    = "20060102T150405.000Z"
	idSeconds = "20060102T150405Z"
)

// parseID reads what ID writes.
func parseID(id string) (at time.Time, cause Cause, ok bool) {
	parts := strings.Split(id, "-")
	if len(parts) != 3 || strings.Trim(parts[1], "abcdefghijklmnopqrstuvwxyz") != "" || len(parts[2]) != 8 || strings.Trim(parts[2], "0123456789abcdef") != "" {
		return time.Time{}, "", false
	}
	layout := idTime
	if len(parts[0]) == len(idSeconds) {
		layout = idSeconds
	}
	at, err := time.Parse(layout, parts[0])
	return at, Cause(parts[1]), err == nil && parts[1] != ""
}

// IDOf returns the id of the bundle that a file is.
func IDOf(file string) string { return strings.TrimSuffix(path.Base(file), suffix) }

// Subject is what an operation locks that takes or removes bundles on request.
const Subject = "bundle"

// Bundle is a bundle that was taken.
type Bundle struct {
	ID    string
	Zone  string
	Cause Cause
	Time  time.Time
	Size  int64 // bytes on disk
	Path  string
}

const (
	suffix   = ".tar.gz"
	topDir   = "bundle/zone"
	lockName = "bundles" // no subject of an operation
)

// directory is where the bundles of a zone lie.
func directory(debug, zone string) string { return path.Join(debug, topDir, zone) }

func fileOf(debug, zone, id string) string { return path.Join(directory(debug, zone), id+suffix) }
