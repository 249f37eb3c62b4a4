package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"

	"github.com/google/uuid"
)

// ExternalIP is an address of a VM outside its VPC.
type ExternalIP struct {
	Type  string     `json:"type"` // ephemeral, floating
	Value netip.Addr `json:"value"`
}

// UnmarshalJSON refuses what is no such address.
func (e *ExternalIP) UnmarshalJSON(data []byte) error {
	type plain ExternalIP
	if err := json.Unmarshal(data, (*plain)(e)); err != nil {
		return err
	}
	if e.Type != "ephemeral" && e.Type != "floating" {
		return fmt.Errorf("type %q: want ephemeral or floating", e.Type)
	}
	if !e.Value.IsValid() {
		return missing("value")
	}
	return nil
}

// Multicast is a group that a VM joins or leaves: one of the two is set.
type Multicast struct {
	Join  *Group `json:"join,omitempty"`
	Leave *Group `json:"leave,omitempty"`
}

// Group is a multicast group.
type Group struct {
	IP      netip.Addr   `json:"group_ip"`
	Sources []netip.Addr `json:"sources"`
}

// UnmarshalJSON refuses what is neither, and both.
func (m *Multicast) UnmarshalJSON(data []byte) error {
	type plain Multicast
	if err := json.Unmarshal(data, (*plain)(m)); err != nil {
		return err
	}
	if (m.Join == nil) == (m.Leave == nil) {
		return errors.New("want either join or leave")
	}
	return nil
}

// Subnets are all that a VM has.
type Subnets struct {
	Subnets []Subnet `json:"subnets"`
}

// Empty says whether there are none.
func (s Subnets) Empty() bool { return len(s.Subnets) == 0 }

// UnmarshalJSON refuses a body without them.
func (s *Subnets) UnmarshalJSON(data []byte) error {
	type plain Subnets
	if err := json.Unmarshal(data, (*plain)(s)); err != nil {
		return err
	}
	if s.Subnets == nil {
		return missing("subnets")
	}
	return nil
}

// Subnet is one that is attached to a VM.
type Subnet struct {
	Subnet netip.Prefix `json:"subnet"`
	Kind   string       `json:"kind"` // vpc, external
}

// UnmarshalJSON refuses what is no subnet.
func (s *Subnet) UnmarshalJSON(data []byte) error {
	type plain Subnet
	if err := json.Unmarshal(data, (*plain)(s)); err != nil {
		return err
	}
	if !s.Subnet.IsValid() {
		return missing("subnet")
	}
	if s.Kind != "vpc" && s.Kind != "external" {
		return fmt.Errorf("kind %q: want vpc or external", s.Kind)
	}
	return nil
}

// Snapshot is one that is to be taken of a disk.
type Snapshot struct {
	ID uuid.UUID `json:"snapshot_id"`
}
