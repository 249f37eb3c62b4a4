package napi

import "time"

// NIC is a NIC record, as far as a sled has to do with it.
type NIC struct {
	MAC           string // 90:b8:d0:00:00:02
	BelongsToType string // one of the types
	BelongsToUUID string // of the VM; of the sled, for a server's
	OwnerUUID     string
	CNUUID        string // of the sled that the VM is on; empty: not said
	State         string // one of the states
	Primary       bool
	IP            string // empty: it has none
	NetworkUUID   string
	Created       time.Time // zero: NAPI did not keep it then
	Modified      time.Time // zero: NAPI did not keep it then
}

// The types of owners.
const (
	TypeZone   = "zone"
	TypeServer = "server"
	TypeOther  = "other"
)

// The states of a record.
const (
	StateProvisioning = "provisioning"
	StateRunning      = "running"
	StateStopped      = "stopped"
)

// Record is a record that was read by itself, with the tag of its version.
type Record struct {
	NIC
	Etag string // empty: the server has none, which is one from before April 2018
}

// Change is what a record gets; what is empty stays as it is. No field can be
// unset: NAPI has no way to.
type Change struct {
	BelongsToType string
	BelongsToUUID string
	CNUUID        string
	State         string
}

// Empty says whether it changes nothing.
func (c Change) Empty() bool { return c == Change{} }

// field is one of a change's, with NAPI's name, and what a record has there.
type field struct{ name, asked, got string }

func (c Change) fields(n NIC) []field {
	var all []field
	for _, f := range []field{
		{"belongs_to_type", c.BelongsToType, n.BelongsToType}, {"belongs_to_uuid", c.BelongsToUUID, n.BelongsToUUID},
		{"cn_uuid", c.CNUUID, n.CNUUID}, {"state", c.State, n.State},
	} {
		if f.asked != "" {
			all = append(all, f)
		}
	}
	return all
}

// Health is what a server reports about itself.
type Health struct {
	Healthy bool
	Status  string // OK, initializing
}
