package nexus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/peer/dropshot"
)

// Sled is what a control plane knows of a sled, as its agent tells it (SledAgentInfo of
// Nexus' internal API).
type Sled struct {
	Address        string    `json:"sa_address"` // [IPv6]:PORT of the agent
	RepoDepotPort  uint16    `json:"repo_depot_port"`
	Role           string    `json:"role"` // RoleGimlet
	Baseboard      Baseboard `json:"baseboard"`
	Threads        uint32    `json:"usable_hardware_threads"`
	RAM            uint64    `json:"usable_physical_ram"` // bytes
	Reservoir      uint64    `json:"reservoir_size"`      // bytes
	CPUFamily      string    `json:"cpu_family"`
	Generation     uint64    `json:"generation"`
	Decommissioned bool      `json:"decommissioned"` // only the control plane says so
}

// Baseboard identifies a machine.
type Baseboard struct {
	Part     string `json:"part"`
	Serial   string `json:"serial"`
	Revision uint32 `json:"revision"`
}

// RoleGimlet is a sled that is not attached to the rack's switch.
const RoleGimlet = "gimlet"

// Sled asks what the control plane knows of a sled; false: nothing. Errors: those that
// Retryable tells apart; an answer that cannot be read.
func (c Client) Sled(ctx context.Context, id uuid.UUID) (known Sled, found bool, err error) {
	path := sledPath(id)
	reply, err := c.exchange(ctx, http.MethodGet, path, versionUpcall, nil)
	if e, ok := errors.AsType[*dropshot.Refusal](err); ok && e.Status == http.StatusNotFound && e.Code == codeNotFound {
		return Sled{}, false, nil
	}
	if err == nil {
		if err = json.Unmarshal(reply, &known); err == nil && known.Generation == 0 {
			err = errors.New("it has no generation")
		}
		if err != nil {
			err = fmt.Errorf("GET %s: what the control plane knows of the sled: %w", path, err)
		}
	}
	return known, err == nil, err
}

// PutSled says what a sled is. The control plane takes it over if its generation is above the
// one that it knows, and answers 500 otherwise (omicron nexus-db-queries, sled_upsert).
func (c Client) PutSled(ctx context.Context, id uuid.UUID, is Sled) error {
	body, err := json.Marshal(is)
	if err != nil {
		return err
	}
	return c.send(ctx, http.MethodPost, sledPath(id), versionUpcall, body)
}

// codeNotFound is the code of what is not in the control plane's database; a path that a
// server does not have is refused without one.
const codeNotFound = "ObjectNotFound"

func sledPath(id uuid.UUID) string { return "/sled-agents/" + id.String() }
