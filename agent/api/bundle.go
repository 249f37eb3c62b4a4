package api

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/bundle"
)

// A bundle as the sled agent has them (omicron sled-agent/types, zone_bundle.rs). Its id is
// derived from the name that sledctl gives it, so that it is the same each time.

// Bundle describes a bundle of a zone.
type Bundle struct {
	ID      BundleID  `json:"id"`
	Created time.Time `json:"time_created"`
	Version uint8     `json:"version"` // 0: the sled agent's first
	Cause   string    `json:"cause"`
}

// BundleID names a bundle.
type BundleID struct {
	Zone string    `json:"zone_name"`
	ID   uuid.UUID `json:"bundle_id"`
}

// BundleOf describes a bundle.
func BundleOf(b bundle.Bundle) Bundle {
	id := uuid.NewSHA1(uuid.NameSpaceOID, []byte("bundle "+b.Zone+" "+b.ID))
	return Bundle{ID: BundleID{Zone: b.Zone, ID: id}, Created: b.Time, Cause: causeOf(b.Cause)}
}

// causeOf is the cause in the API's words.
func causeOf(c bundle.Cause) string {
	switch c {
	case bundle.Failed, bundle.Removed, bundle.Start:
		return "terminated_instance"
	case bundle.StaleZone, bundle.Orphan:
		return "unexpected_zone"
	}
	return "other"
}

// BundleSpace is the space that bundles take in a place.
type BundleSpace struct {
	Available uint64 `json:"bytes_available"` // for bundles
	Used      uint64 `json:"bytes_used"`
	Quota     uint64 `json:"dataset_quota"`
}

// BundlesGone counts what a clean-up removed from a place.
type BundlesGone struct {
	Bundles uint64 `json:"bundles"`
	Bytes   uint64 `json:"bytes"`
}

// Duration is one in the API.
type Duration struct {
	Seconds uint64 `json:"secs"`
	Nanos   uint32 `json:"nanos"`
}

// BundleContext says when bundles are removed: each period, those that sort first by the
// priority, until the others have at most a percentage of the quota.
type BundleContext struct {
	Period   Duration `json:"period"`
	Limit    uint8    `json:"storage_limit"`
	Priority []string `json:"priority"`
}

// PutBundleContext asks for another context; nil leaves a field as it is.
type PutBundleContext struct {
	Period   *Duration `json:"period,omitempty"`
	Limit    *uint8    `json:"storage_limit,omitempty"`
	Priority []string  `json:"priority,omitempty"`
}

// UnmarshalJSON refuses a context that the sled agent refuses: a period that is not from a minute to a
// day, a percentage that is not from 1 to 50, an order that does not have both dimensions.
func (p *PutBundleContext) UnmarshalJSON(data []byte) error {
	type plain PutBundleContext
	if err := json.Unmarshal(data, (*plain)(p)); err != nil {
		return err
	}
	switch {
	case p.Period != nil && (p.Period.Nanos >= 1e9 || !p.Period.within(time.Minute, 24*time.Hour)):
		return fmt.Errorf("period: want from %v to %v", time.Minute, 24*time.Hour)
	case p.Limit != nil && (*p.Limit < 1 || *p.Limit > 50):
		return fmt.Errorf("storage_limit %d: want a percentage from 1 to 50", *p.Limit)
	case p.Priority != nil && !bothOnce(p.Priority):
		return fmt.Errorf("priority %q: want time and cause, in any order", p.Priority)
	}
	return nil
}

func (d Duration) within(least, most time.Duration) bool {
	s := uint64(most.Seconds())
	return d.Seconds >= uint64(least.Seconds()) && (d.Seconds < s || d.Seconds == s && d.Nanos == 0)
}

func bothOnce(order []string) bool {
	return len(order) == 2 && (order[0] == "time" && order[1] == "cause" || order[0] == "cause" && order[1] == "time")
}
