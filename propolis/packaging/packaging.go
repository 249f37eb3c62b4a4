// Package packaging decides how Propolis comes into a zone. There are two ways:
// lofs, a clone of a small base zone into which a directory of the host is
// mounted; and image, the zone image that Oxide ships today, which its brand
// installs afresh for every zone.
package packaging

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// Kind is a way.
type Kind string

// The ways, and Auto: what the host has.
const (
	Auto  Kind = "auto"
	Lofs  Kind = "lofs"
	Image Kind = "image"
)

// Seen is what each way lacks on a host, as paths; nothing: it can be gone.
type Seen struct{ Lofs, Image []string }

// What the ways need. The image lies where the sled agent looks for it
// (oxidecomputer/omicron, sled-agent/src/instance.rs); it is of the brand of
// oxidecomputer/helios-omicron-brand. The sparse brand runs pkg(1) to install
// (omniosorg/pkg5, src/brand/sparse).
const (
	sparse    = "/usr/lib/brand/sparse"
	pkg       = "/usr/bin/pkg"
	omicron1  = "/usr/lib/brand/omicron1"
	zoneImage = "/opt/oxide/propolis-server.tar.gz"
)

// Look sees what there is. Directory is Propolis' own on the host.
func Look(files host.Files, directory string) (Seen, error) {
	lofs, err := missing(files, sparse, pkg, path.Clean(directory))
	if err != nil {
		return Seen{}, err
	}
	image, err := missing(files, omicron1, zoneImage)
	return Seen{Lofs: lofs, Image: image}, err
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
func Decide(wanted Kind, seen Seen) (Kind, error) {
	switch {
	case wanted != Lofs && len(seen.Image) == 0:
		return Image, nil
	case wanted != Image && len(seen.Lofs) == 0:
		return Lofs, nil
	}
	return "", &MissingError{Wanted: wanted, Seen: seen}
}

// Check says whether zones can be made the wanted way on this host: a
// *MissingError if something is missing, an *ImageError if it is by image.
func Check(wanted Kind, seen Seen) error {
	kind, err := Decide(wanted, seen)
	if err == nil && kind == Image {
		return &ImageError{Wanted: wanted, Lofs: seen.Lofs}
	}
	return err
}

// MissingError is a host on which the wanted way cannot be gone.
type MissingError struct {
	Wanted Kind
	Seen   Seen
}

// Error names what is missing.
func (e *MissingError) Error() string {
	var ways []string
	for _, way := range []struct {
		kind Kind
		less []string
	}{{Image, e.Seen.Image}, {Lofs, e.Seen.Lofs}} {
		if e.Wanted != way.kind && (e.Wanted == Image || e.Wanted == Lofs) {
			continue
		}
		ways = append(ways, fmt.Sprintf("%s lacks %s", way.kind, strings.Join(way.less, ", ")))
	}
	return "Propolis cannot be brought into a zone on this host: " + strings.Join(ways, "; ")
}

// Hint says what would be right.
func (e *MissingError) Hint() string {
	if slices.Contains(e.Seen.Lofs, sparse) {
		return "zones of the sparse brand need OmniOS or another system that has it"
	}
	return "propolis.directory and propolis.packaging in the configuration say where Propolis is"
}

// ImageError is a host where the way is image, which sledctl cannot go yet.
type ImageError struct {
	Wanted Kind
	Lofs   []string // what the other way lacks
}

// Error says so, and what the other way lacks.
func (e *ImageError) Error() string {
	text := "propolis.packaging is image on this host (" + omicron1 + " and " + zoneImage + "), and zones cannot be made from images yet"
	if len(e.Lofs) > 0 {
		text += "; lofs lacks " + strings.Join(e.Lofs, ", ")
	}
	return text
}

// Hint says what would be right.
func (e *ImageError) Hint() string {
	if len(e.Lofs) == 0 {
		return "propolis.packaging = \"lofs\" in the configuration"
	}
	return "zones of the sparse brand need OmniOS or another system that has it"
}
