package record

import (
	"encoding/base64"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/propolis/spec"
)

// CrucibleDisk is a volume in a Crucible that the guest sees as a disk: it lies on no sled's own
// disks. In a record, digests stand for its key and its request.
type CrucibleDisk struct {
	ID           string   `json:"id"`      // of the volume
	Targets      []string `json:"targets"` // where the downstairs of its region listen, IP:PORT
	BlockSize    uint64   `json:"block_size"`
	ExtentBlocks uint64   `json:"blocks_per_extent"`
	Extents      uint32   `json:"extents"`
	ReadOnly     bool     `json:"readonly,omitempty"`
	Key          string   `json:"key,omitempty"` // in base64; empty: the volume is not encrypted
	// Above is the highest generation with which others have opened the volume.
	Above uint64 `json:"above,omitempty"`
	// Generation is that with which the last incarnation opens it, and Request what its Propolis is asked for.
	Generation uint64 `json:"generation,omitempty"`
	Request    string `json:"request,omitempty"`
	// KeyFile, of what is wanted, is where the key is to be read.
	KeyFile string `json:"-"`
}

// keyBytes is the length of a key: that of AES-GCM-SIV with 256 bits (oxidecomputer/crucible,
// crucible-client-types/src/lib.rs: an upstairs panics at another length).
const keyBytes = 32

// ValidateCrucible checks what is bounded by itself, keys too, if no digests stand for them yet.
func ValidateCrucible(disks []CrucibleDisk) error {
	for i, d := range disks {
		if err := d.validate(); err != nil {
			return err
		}
		if slices.ContainsFunc(disks[:i], func(e CrucibleDisk) bool { return e.ID == d.ID }) {
			return &InputError{Field: "crucible id", Value: d.ID, Want: "each volume once"}
		}
	}
	return nil
}

func (d CrucibleDisk) validate() error {
	if id, err := uuid.Parse(d.ID); err != nil || id.String() != d.ID {
		return &InputError{Field: "crucible id", Value: d.ID, Want: "the UUID of the volume, in lower case"}
	}
	if len(d.Targets) != spec.RegionTargets {
		return &InputError{Field: "crucible targets", Value: strings.Join(d.Targets, " "), Want: fmt.Sprintf("the %d addresses of its downstairs, each IP:PORT", spec.RegionTargets)}
	}
	for i, target := range d.Targets {
		at, err := netip.ParseAddrPort(target)
		if err != nil || at.Port() == 0 {
			return &InputError{Field: "crucible targets", Value: target, Want: "IP:PORT, e.g. [fd00:1122:3344:101::5]:19000"}
		}
		if slices.Contains(d.Targets[:i], target) {
			return &InputError{Field: "crucible targets", Value: target, Want: "each downstairs once"}
		}
	}
	switch key, err := base64.StdEncoding.DecodeString(d.Key); {
	case d.BlockSize < 512 || d.BlockSize > 128<<10 || d.BlockSize&(d.BlockSize-1) != 0:
		return &InputError{Field: "crucible block_size", Value: fmt.Sprint(d.BlockSize), Want: "a power of two from 512 to 131072, as the region was created"}
	case d.ExtentBlocks == 0:
		return &InputError{Field: "crucible blocks_per_extent", Value: "0", Want: "more than 0, as the region was created"}
	case d.Extents == 0:
		return &InputError{Field: "crucible extents", Value: "0", Want: "more than 0, as the region was created"}
	case d.Above >= MaxGeneration:
		return &InputError{Field: "crucible above", Value: fmt.Sprint(d.Above), Want: fmt.Sprintf("less than %d", uint64(MaxGeneration))}
	case d.Key != "" && !spec.IsSealed(d.Key) && (err != nil || len(key) != keyBytes): // a key is not quoted
		return &InputError{Field: "crucible key", Value: "…", Want: fmt.Sprintf("%d bytes in base64", keyBytes)}
	}
	return nil
}

// volume is the disk as Propolis is asked for it.
func (d CrucibleDisk) volume(generation uint64) spec.CrucibleVolume {
	return spec.CrucibleVolume{
		ID: d.ID, Targets: d.Targets, BlockSize: d.BlockSize, ExtentBlocks: d.ExtentBlocks, Extents: d.Extents,
		Key: d.Key, ReadOnly: d.ReadOnly, Generation: generation,
	}
}

// RequestAt is what Propolis is asked for to open the volume with a generation.
func (d CrucibleDisk) RequestAt(generation uint64) string { return d.volume(generation).Request() }

// text is the disk in a sentence; a digest stands for its key.
func (d CrucibleDisk) text() string {
	text := fmt.Sprintf("%s,targets=%s,block-size=%d,blocks-per-extent=%d,extents=%d", d.ID, strings.Join(d.Targets, "+"), d.BlockSize, d.ExtentBlocks, d.Extents)
	if d.ReadOnly {
		text += ",readonly"
	}
	if spec.IsSealed(d.Key) {
		text += ",key=" + d.Key
	}
	return text
}

// CrucibleText is what disks in a Crucible are compared by. Generations are left out: they follow
// from the incarnation.
func CrucibleText(disks []CrucibleDisk) string {
	var parts []string
	for _, d := range disks {
		parts = append(parts, d.text())
	}
	return OrNone(parts)
}

// KeepRequests are wanted disks with the requests of those that there are.
func KeepRequests(had, wanted []CrucibleDisk) []CrucibleDisk {
	wanted = slices.Clone(wanted)
	for i := range wanted {
		if n := slices.IndexFunc(had, func(d CrucibleDisk) bool { return d.ID == wanted[i].ID }); n >= 0 {
			wanted[i].Generation, wanted[i].Request = had[n].Generation, had[n].Request
		}
	}
	return wanted
}

// SealCrucible puts digests in the places of keys, and adds the keys by their digests to fresh.
func SealCrucible(disks []CrucibleDisk, key []byte, fresh map[string]string) []CrucibleDisk {
	disks = slices.Clone(disks)
	for i := range disks {
		disks[i].Key = seal(key, disks[i].Key, fresh)
	}
	return disks
}

func unsealCrucible(disks []CrucibleDisk, secrets map[string]string) []CrucibleDisk {
	disks = slices.Clone(disks)
	for i := range disks {
		for _, text := range []*string{&disks[i].Key, &disks[i].Request} {
			if secret, kept := secrets[*text]; kept {
				*text = secret
			}
		}
	}
	return disks
}

func crucibleDigests(disks []CrucibleDisk) (all []string) {
	for _, d := range disks {
		all = append(all, d.Key, d.Request)
	}
	return slices.DeleteFunc(all, func(s string) bool { return !spec.IsSealed(s) })
}

// key is what the disk is reserved by: one that a guest writes to is its alone.
func (d CrucibleDisk) key() string { return naming.KeyAttached + "crucible:" + d.ID }

// CrucibleOwner is the instance that a disk is reserved for; empty when it is free.
func CrucibleOwner(view ledger.View, d CrucibleDisk) string { return Owner(view, d.key()) }

// NextGeneration is the one with which the next incarnation of an instance opens its volumes: that
// of a fleet is the fleet's. Any other is counted here, and is above all that the instance had: it is
// written down before the volumes are opened, and stays, whatever comes after.
func NextGeneration(view ledger.View, r Record) (n uint64, counted []ledger.Fact, err error) {
	if len(r.Spec.Crucible) == 0 {
		return 0, nil, nil
	}
	if r.KeptBy() == Fleet && r.ChosenID() != "" {
		return r.KeeperGeneration, nil, nil
	}
	if n, err = LastGeneration(view, r.ID); err != nil {
		return 0, nil, err
	}
	for _, d := range r.Spec.Crucible {
		n = max(n, d.Above)
	}
	fact, err := GenerationFact(r.ID, n+1)
	return n + 1, []ledger.Fact{fact}, err
}

// Leaving is the record of an instance as it is described to the sled to which its VM moves: its volumes
// are opened there with a generation above the one here. That is counted here, too, before it is sent;
// again says that it was.
func Leaving(view ledger.View, r Record, again bool) (Record, []ledger.Fact, error) {
	n, counted, err := NextGeneration(view, r)
	if err != nil || n == 0 {
		return r, nil, err
	}
	if again {
		n, counted = n-1, nil
	}
	r.Spec.Crucible = slices.Clone(r.Spec.Crucible)
	for i := range r.Spec.Crucible {
		r.Spec.Crucible[i].Above = n - 1
	}
	return r, counted, nil
}

// Obstacle is what keeps a VM that has its volume by a request from taking this one with it to another
// sled: it would be another volume, or be opened with a generation that is not above; empty: nothing.
// A digest with the key stands for the volume's key.
func (d CrucibleDisk) Obstacle(request string, key []byte) string {
	v, ok := spec.ReadCrucible(request)
	if v.Key != "" {
		v.Key = spec.Digest(key, v.Key)
	}
	theirs := CrucibleDisk{
		ID: v.ID, Targets: v.Targets, BlockSize: v.BlockSize, ExtentBlocks: v.ExtentBlocks, Extents: v.Extents, ReadOnly: v.ReadOnly, Key: v.Key,
	}
	switch {
	case !ok:
		return fmt.Sprintf("would be volume %s, and is no volume of one region at the source", d.ID)
	case theirs.text() != d.text():
		return fmt.Sprintf("is %s at the source, and would be %s", theirs.text(), d.text())
	case v.Generation >= d.Generation && !d.ReadOnly:
		return fmt.Sprintf("volume %s is open with generation %d at the source, and would be opened with %d: want one above it", d.ID, v.Generation, d.Generation)
	}
	return ""
}
