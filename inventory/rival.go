package inventory

import (
	"context"
	"errors"
	"fmt"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/smf"
)

// Rival is the part that tells whether the sled agent is at work on this sled.
// It removes every zone and VNIC under its prefixes when it starts, and uses
// the same pools: the two cannot share a sled (oxidecomputer/omicron,
// sled-agent/src/sled_agent.rs, cleanup).
const Rival Part = "sled agent"

const sledAgent = "svc:/oxide/sled-agent:default"

// RivalError is a sled that the sled agent works on.
type RivalError struct{ State string }

// Error says so.
func (e *RivalError) Error() string {
	return fmt.Sprintf("%s is %s: it and sledctl cannot share a sled", sledAgent, e.State)
}

// Hint says how to make room.
func (e *RivalError) Hint() string { return "svcadm disable " + sledAgent }

// lookRival fails if the sled agent is there and not disabled.
func lookRival(ctx context.Context, h host.Host) error {
	state, err := smf.State(ctx, h, "", sledAgent)
	switch {
	case errors.Is(err, host.ErrNotFound):
		return nil
	case err != nil:
		return err
	case state == smf.Disabled:
		return nil
	}
	return &RivalError{State: state}
}
