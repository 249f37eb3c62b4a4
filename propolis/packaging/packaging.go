// Package packaging decides how Propolis comes into a zone. There are two ways:
// lofs, a clone of a small base zone into which a directory of the host is
// mounted; and image, the zone image that Oxide ships today, which its brand
// installs again for every zone.
package packaging

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
)

// Kind is a way.
type Kind string

// The ways, and Auto: what the host has.
const (
	Auto  Kind = "auto"
	Lofs  Kind = "lofs"
	Image Kind = "image"
)

// Settings are what the configuration says.
type Settings struct {
	Kind      Kind     // empty: Auto
	Directory string   // lofs: Propolis' own on the host
	Images    []string // image: what the brand installs a zone from, in this order
}

// Observed is what each way lacks on a host, as paths; nothing: it can be gone.
type Observed struct {
	Lofs, Image []string
	// Without are images that a zone can be installed without, and that are absent.
	Without []string
}

// overlay is the name of an image that holds only the rotation of logs and root's profile
// (oxidecomputer/omicron, package-manifest.toml, overlay): a workstation need not have it.
const overlay = "overlay.tar.gz"

// What the ways need next to what the settings name. The sparse brand runs
// pkg(1) to install (omniosorg/pkg5, src/brand/sparse).
const (
	sparse   = "/usr/lib/brand/sparse"
	pkg      = "/usr/bin/pkg"
	omicron1 = "/usr/lib/brand/" + Brand
)

// What a zone image brings with it: its brand (oxidecomputer/helios-omicron-brand),
// and the service in it, which makes the control interface again with an address
// that it calls AddressObject, of the length that ipadm(8) gives an IPv6 address
// by itself, and MTU bytes (propolis, packaging/smf).
const (
	Brand         = "omicron1"
	Service       = "svc:/system/illumos/propolis-server:default"
	AddressObject = "omicron6"
	PrefixLength  = 64
	MTU           = 9000
)

// Look sees what there is.
func (s Settings) Look(files host.Files) (Observed, error) {
	lofs, err := missing(files, sparse, pkg, path.Clean(s.Directory))
	if err != nil {
		return Observed{}, err
	}
	image, err := missing(files, append([]string{omicron1}, s.Images...)...)
	seen := Observed{Lofs: lofs}
	for _, name := range image {
		if path.Base(name) == overlay && len(s.Images) > 1 {
			seen.Without = append(seen.Without, name)
		} else {
			seen.Image = append(seen.Image, name)
		}
	}
	return seen, err
}

func missing(files host.Files, names ...string) ([]string, error) {
	var absent []string
	for _, name := range names {
		_, err := files.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			absent = append(absent, name)
		case err != nil:
			return nil, fmt.Errorf("look how Propolis is packaged: %w", err)
		}
	}
	return absent, nil
}

// Decide chooses the way: the wanted one, or for Auto image where it can be
// gone, else lofs. It is pure. A way that cannot be gone is a *MissingError.
func (s Settings) Decide(seen Observed) (Kind, error) {
	switch {
	case s.Kind != Lofs && len(seen.Image) == 0:
		return Image, nil
	case s.Kind != Image && len(seen.Lofs) == 0:
		return Lofs, nil
	}
	return "", &MissingError{Wanted: s.Kind, Observed: seen}
}

// MissingError is a host on which the wanted way cannot be gone.
type MissingError struct {
	Wanted   Kind
	Observed Observed
}

// Error names what is missing.
func (e *MissingError) Error() string {
	var ways []string
	for _, way := range []struct {
		kind Kind
		less []string
	}{{Image, e.Observed.Image}, {Lofs, e.Observed.Lofs}} {
		if e.Wanted != way.kind && (e.Wanted == Image || e.Wanted == Lofs) {
			continue
		}
		ways = append(ways, fmt.Sprintf("%s lacks %s", way.kind, strings.Join(way.less, ", ")))
	}
	return "Propolis cannot be brought into a zone on this host: " + strings.Join(ways, "; ")
}

func (*MissingError) Kind() fault.Kind { return fault.Refused }

// Hint says what would be right.
func (e *MissingError) Hint() string {
	if e.Wanted != Image && slices.Contains(e.Observed.Lofs, sparse) && slices.Contains(e.Observed.Image, omicron1) {
		return "use OmniOS for zones of the sparse brand, or Helios for zone images"
	}
	return "install what is missing, or set propolis.packaging, propolis.directory and propolis.images; then run: sledctl bootstrap"
}
