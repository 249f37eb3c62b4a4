package world

import "time"

// NAPI is a networking API of Triton that the sled can reach: its settings, and
// what it keeps. It is a machine of its own, and a reboot of the sled is nothing
// to it.
type NAPI struct {
	Address string `json:"address"` // HOST:PORT, where it answers
	// Era is which releases it is like, see package napi next to this one.
	Era string `json:"era"`
	// Checking is how it takes parameters that it does not know: "" as its era
	// does, "strict" refuses them in bodies, too, "loose" drops them in lists, too.
	Checking string `json:"checking,omitempty"`
	// Shuffled lets the records of a page come in no order: those that need no
	// look-up first. Which page they are on is not changed by it.
	Shuffled bool      `json:"shuffled,omitempty"`
	Ready    time.Time `json:"ready,omitzero"` // before, it is starting

	NICs     map[string]*NAPINIC `json:"nics"` // by MAC, with colons
	Networks []*NAPINetwork      `json:"networks"`
	Tags     []*NAPITag          `json:"tags"`
	IPs      map[string]*NAPIIP  `json:"ips"` // by NETWORK/ADDRESS: those that are or were used
	VLANs    []*NAPIVLAN         `json:"vlans,omitempty"`
}

// NAPINIC is a NIC record.
type NAPINIC struct {
	Etag          string    `json:"etag"`
	BelongsToType string    `json:"belongs_to_type"`
	BelongsToUUID string    `json:"belongs_to_uuid"`
	OwnerUUID     string    `json:"owner_uuid"`
	CNUUID        string    `json:"cn_uuid,omitempty"`
	State         string    `json:"state"`
	Primary       bool      `json:"primary,omitempty"`
	Created       time.Time `json:"created,omitzero"` // zero: from before that was kept
	Modified      time.Time `json:"modified,omitzero"`
	Network       string    `json:"network,omitempty"` // uuid
	IP            string    `json:"ip,omitempty"`
	Model         string    `json:"model,omitempty"`
	Tag           string    `json:"tag,omitempty"`      // its own
	Provided      []string  `json:"provided,omitempty"` // nic_tags_provided
	Allowed       []string  `json:"allowed,omitempty"`  // flags that are true: allow_*, underlay
}

// NAPINetwork is a logical network.
type NAPINetwork struct {
	UUID      string            `json:"uuid"`
	Name      string            `json:"name"`
	Etag      string            `json:"etag"`
	Subnet    string            `json:"subnet"`
	Start     string            `json:"start"`
	End       string            `json:"end"`
	Gateway   string            `json:"gateway,omitempty"`
	Resolvers []string          `json:"resolvers"`
	Routes    map[string]string `json:"routes,omitempty"`
	Tag       string            `json:"tag"`
	VLAN      int               `json:"vlan"`
	MTU       int               `json:"mtu"`
	Owner     string            `json:"owner,omitempty"`  // of a fabric network
	Owners    []string          `json:"owners,omitempty"` // who alone may have NICs on it
	VNet      int               `json:"vnet,omitempty"`   // of a fabric network
}

// NAPITag is a NIC tag.
type NAPITag struct {
	UUID string `json:"uuid"`
	Name string `json:"name"`
	MTU  int    `json:"mtu"`
}

// NAPIVLAN is a VLAN of an owner's fabric.
type NAPIVLAN struct {
	Name  string `json:"name"`
	Owner string `json:"owner"`
	VLAN  int    `json:"vlan"`
	VNet  int    `json:"vnet"`
	Etag  string `json:"etag"`
}

// NAPIIP is an address of a network. Without an owner it is free.
type NAPIIP struct {
	Etag          string `json:"etag"`
	Reserved      bool   `json:"reserved,omitempty"`
	BelongsToType string `json:"belongs_to_type,omitempty"`
	BelongsToUUID string `json:"belongs_to_uuid,omitempty"`
	OwnerUUID     string `json:"owner_uuid,omitempty"`
}

// The faults of a NAPI. Their words are its name, the method and the path:
// "napi GET /nics".
const (
	FaultNAPIDown      = "napi-down"      // breaks the connection off without an answer
	FaultNAPIRestart   = "napi-restart"   // does that, is starting for Delay, and is of the era Text afterwards, if it is set
	FaultNAPIEra       = "napi-era"       // is of the era Text from then on
	FaultNAPIFail      = "napi-fail"      // answers with the status Exit and the message Text
	FaultNAPIEmpty     = "napi-empty"     // answers 200, with nothing
	FaultNAPIHTML      = "napi-html"      // answers 200, with a page of a proxy
	FaultNAPITruncated = "napi-truncated" // leaves out the second half of the answer
	FaultNAPIObject    = "napi-object"    // answers with an object instead of a list
	FaultNAPIForeign   = "napi-foreign"   // adds a record of another sled to the list
	FaultNAPITwice     = "napi-twice"     // lists one record twice
	FaultNAPIOwnerless = "napi-ownerless" // leaves belongs_to_uuid out of a record
	FaultNAPITouch     = "napi-touch"     // somebody changes the record after it was read
	FaultNAPIRace      = "napi-race"      // somebody changes the record between the check of a write and the write
)

// napiFaults are their names.
func napiFaults() []string {
	return []string{
		FaultNAPIDown, FaultNAPIRestart, FaultNAPIEra, FaultNAPIFail, FaultNAPIEmpty, FaultNAPIHTML, FaultNAPITruncated, FaultNAPIObject,
		FaultNAPIForeign, FaultNAPITwice, FaultNAPIOwnerless, FaultNAPITouch, FaultNAPIRace,
	}
}
