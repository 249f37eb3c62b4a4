package propolis

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sledctl/sledctl/propolis/spec"
)

// What servers answer. A reply that lacks what is always there is an error: an
// absent state must not pass for one.

func decodeInstance(data []byte) (Instance, error) {
	var reply struct {
		Instance Instance `json:"instance"`
	}
	if err := json.Unmarshal(data, &reply); err != nil {
		return Instance{}, err
	}
	return reply.Instance, reply.Instance.check()
}

func decodeDescription(data []byte) (Description, error) {
	var reply struct {
		Instance
		Spec struct {
			Type  string `json:"type"`
			Value *struct {
				spec.InstanceSpec
				// Version 1 wraps it once more.
				Version string             `json:"version"`
				Spec    *spec.InstanceSpec `json:"spec"`
			} `json:"value"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(data, &reply); err != nil {
		return Description{}, err
	}
	d := Description{Instance: reply.Instance}
	if v := reply.Spec.Value; v != nil {
		d.Spec = &v.InstanceSpec
		if v.Version != "" {
			d.Spec = v.Spec
		}
	}
	switch {
	case reply.Spec.Type == "WaitingForMigrationSource" && d.Spec == nil:
	case reply.Spec.Type == "Present" && d.Spec != nil:
	default:
		return Description{}, fmt.Errorf("spec of type %q: %w", reply.Spec.Type, errIncomplete)
	}
	return d, d.check()
}

func decodeStatus(data []byte, atLeast uint64) (Status, error) {
	var s Status
	if err := json.Unmarshal(data, &s); err != nil {
		return Status{}, err
	}
	switch {
	case s.State == "":
		return Status{}, errIncomplete
	case s.Generation < atLeast: // a caller that asks for the next one again would ask forever
		return Status{}, fmt.Errorf("generation %d, where %d was asked for", s.Generation, atLeast)
	}
	return s, nil
}

// replyError is an answer that could not be used.
func (c Client) replyError(method, path string, err error) error {
	if err == nil {
		return nil
	}
	return c.Target.asked(fmt.Errorf("%s %s: %w: %w", method, path, ErrReply, err))
}

func isNoInstance(err error) bool { return errors.Is(err, ErrNoInstance) }
