package spec

import (
	"encoding/json"

	"github.com/google/uuid"
)

// CrucibleVolume is a volume of one region in a Crucible, as VolumeConstructionRequest has it
// (oxidecomputer/crucible, crucible-client-types/src/lib.rs).
type CrucibleVolume struct {
	ID           string   // a UUID
	Targets      []string // where the three downstairs of the region listen, IP:PORT
	BlockSize    uint64   // bytes
	ExtentBlocks uint64   // in each extent
	Extents      uint32
	Key          string // in base64: 32 bytes; empty: it is not encrypted
	ReadOnly     bool
	// Generation is above the one with which the volume was opened before. A downstairs takes over the
	// volume for the higher one, and tells the other that it is no longer active; it refuses a lower
	// one, and the same one of another upstairs (promote_to_active in downstairs/src/lib.rs). An
	// upstairs refuses one that is not above what the region was last flushed with
	// (check_region_metadata in upstairs/src/downstairs.rs).
	Generation uint64
}

// RegionTargets is how many downstairs keep a region.
const RegionTargets = 3

// Request is what Propolis is asked for to have the volume: it holds the key.
func (v CrucibleVolume) Request() string {
	type opts struct {
		ID           string   `json:"id"`
		Target       []string `json:"target"`
		Lossy        bool     `json:"lossy"`
		FlushTimeout *float32 `json:"flush_timeout"`
		Key          *string  `json:"key"`
		CertPEM      *string  `json:"cert_pem"`
		KeyPEM       *string  `json:"key_pem"`
		RootCertPEM  *string  `json:"root_cert_pem"`
		Control      *string  `json:"control"`
		ReadOnly     bool     `json:"read_only"`
	}
	type region struct {
		Type         string `json:"type"`
		BlockSize    uint64 `json:"block_size"`
		ExtentBlocks uint64 `json:"blocks_per_extent"`
		Extents      uint32 `json:"extent_count"`
		Opts         opts   `json:"opts"`
		Generation   uint64 `json:"gen"`
	}
	o := opts{ID: v.ID, Target: v.Targets, ReadOnly: v.ReadOnly}
	if v.Key != "" {
		o.Key = &v.Key
	}
	data, _ := json.Marshal(struct { // of texts and numbers
		Type      string    `json:"type"`
		ID        uuid.UUID `json:"id"`
		BlockSize uint64    `json:"block_size"`
		Parts     []region  `json:"sub_volumes"`
		Parent    *region   `json:"read_only_parent"`
	}{"volume", uuid.MustParse(v.ID), v.BlockSize, []region{{"region", v.BlockSize, v.ExtentBlocks, v.Extents, o, v.Generation}}, nil})
	return string(data)
}

// ReadCrucible reads what a request asks for; false: it is none for a volume of one region, as
// CrucibleVolume.Request writes it.
func ReadCrucible(request string) (v CrucibleVolume, ok bool) {
	var r struct {
		Type  string `json:"type"`
		ID    string `json:"id"`
		Parts []struct {
			BlockSize    uint64 `json:"block_size"`
			ExtentBlocks uint64 `json:"blocks_per_extent"`
			Extents      uint32 `json:"extent_count"`
			Generation   uint64 `json:"gen"`
			Opts         struct {
				Target   []string `json:"target"`
				Key      string   `json:"key"`
				ReadOnly bool     `json:"read_only"`
			} `json:"opts"`
		} `json:"sub_volumes"`
		Parent json.RawMessage `json:"read_only_parent"`
	}
	if json.Unmarshal([]byte(request), &r) != nil || r.Type != "volume" || len(r.Parts) != 1 || len(r.Parent) > 0 && string(r.Parent) != "null" {
		return v, false
	}
	part := r.Parts[0]
	return CrucibleVolume{
		ID: r.ID, Targets: part.Opts.Target, BlockSize: part.BlockSize, ExtentBlocks: part.ExtentBlocks, Extents: part.Extents,
		Key: part.Opts.Key, ReadOnly: part.Opts.ReadOnly, Generation: part.Generation,
	}, true
}
