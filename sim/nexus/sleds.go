package nexus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"

	"github.com/sledctl/sledctl/sim/world"
)

// Sleds, as they make themselves known (omicron nexus/internal-api, nexus-db-queries
// src/db/datastore/sled.rs).

// readSled reads a SledAgentInfo as serde does: all of its fields are there, and an address is
// one of IPv6 with a port. What else there is, is passed over.
func readSled(body []byte) (is world.NexusSled, err error) {
	var wire struct {
		Address   *string `json:"sa_address"`
		Depot     *uint16 `json:"repo_depot_port"`
		Role      *string `json:"role"`
		Baseboard *struct {
			Part     *string `json:"part"`
			Serial   *string `json:"serial"`
			Revision *uint32 `json:"revision"`
		} `json:"baseboard"`
		Threads        *uint32 `json:"usable_hardware_threads"`
		RAM            *uint64 `json:"usable_physical_ram"`
		Reservoir      *uint64 `json:"reservoir_size"`
		Family         *string `json:"cpu_family"`
		Generation     *uint64 `json:"generation"`
		Decommissioned *bool   `json:"decommissioned"`
	}
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&wire); err != nil {
		return is, err
	}
	if wire.Address == nil || wire.Depot == nil || wire.Role == nil || wire.Baseboard == nil || wire.Threads == nil || wire.RAM == nil || wire.Reservoir == nil ||
		wire.Family == nil || wire.Generation == nil || wire.Decommissioned == nil || wire.Baseboard.Part == nil || wire.Baseboard.Serial == nil || wire.Baseboard.Revision == nil {
		return is, errors.New("missing field")
	}
	at, err := netip.ParseAddrPort(*wire.Address)
	switch {
	case err != nil || !at.Addr().Is6():
		return is, errors.New("sa_address: invalid socket address syntax")
	case !slices.Contains([]string{"gimlet", "scrimlet"}, *wire.Role):
		return is, fmt.Errorf("unknown variant `%s`, expected `gimlet` or `scrimlet`", *wire.Role)
	case !slices.Contains([]string{"unknown", "amd_milan", "amd_turin", "amd_turin_dense"}, *wire.Family):
		return is, fmt.Errorf("unknown variant `%s`", *wire.Family)
	}
	return world.NexusSled{
		Address: at.String(), Depot: *wire.Depot, Role: *wire.Role,
		Baseboard: world.NexusBaseboard{Part: *wire.Baseboard.Part, Serial: *wire.Baseboard.Serial, Revision: *wire.Baseboard.Revision},
		Threads:   *wire.Threads, RAM: *wire.RAM, Reservoir: *wire.Reservoir, Family: *wire.Family, Generation: *wire.Generation,
	}, nil
}

// sled answers for a sled: what is known of it, or that it has come on-line.
func (c call) sled(w http.ResponseWriter) error {
	if c.r.Method == http.MethodGet {
		return c.knownSled(w)
	}
	is, err := readSled(c.body)
	if err != nil {
		return &fault{status: http.StatusBadRequest, message: "unable to parse JSON body: " + err.Error()}
	}
	return c.update(c.r.Context(), func(_ *world.Tx, n *world.Nexus) error {
		for id, other := range n.Registered {
			if id != c.id && !other.Decommissioned && other.Baseboard.Part == is.Baseboard.Part && other.Baseboard.Serial == is.Baseboard.Serial {
				return &fault{status: http.StatusBadRequest, code: "ObjectAlreadyExists", message: fmt.Sprintf(`already exists: sled "%s"`, c.id)}
			}
		}
		if old := n.Registered[c.id]; old != nil && (old.Decommissioned || old.Generation >= is.Generation) {
			return &fault{status: http.StatusInternalServerError, code: "Internal", message: "Internal Server Error"}
		}
		if n.Registered == nil {
			n.Registered = map[string]*world.NexusSled{}
		}
		n.Registered[c.id] = &is
		if !slices.Contains(n.Order, c.id) {
			n.Order = append(n.Order, c.id)
		}
		return nil
	})
}

// knownSled answers with what is known of a sled.
func (c call) knownSled(w http.ResponseWriter) error {
	var known *world.NexusSled
	err := c.view(c.r.Context(), func(_ *world.Tx, n *world.Nexus) error {
		if known = n.Registered[c.id]; known == nil {
			return &fault{status: http.StatusNotFound, code: "ObjectNotFound", message: fmt.Sprintf(`not found: sled with id "%s"`, c.id)}
		}
		return nil
	})
	if err != nil {
		return err
	}
	data, err := json.Marshal(known)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(data)
	return err
}
