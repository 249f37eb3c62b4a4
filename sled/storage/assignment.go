package storage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/disk"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/zfs"
)

// Assignment is what a control plane wants of the sled's disks and datasets, as the ledger keeps
// it: the newest that was accepted.
type Assignment struct {
	Generation uint64            `json:"generation"`
	Disks      []AssignedDisk    `json:"disks"`
	Datasets   []AssignedDataset `json:"datasets"`
	// Body is all that was sent, in one form for what means the same.
	Body json.RawMessage `json:"body"`
}

// AssignedDisk is a U.2 that the control plane uses, with the pool that it must have.
type AssignedDisk struct {
	ID       uuid.UUID     `json:"id"`
	Identity disk.Identity `json:"identity"`
	Pool     uuid.UUID     `json:"pool"`
}

// AssignedDataset is a dataset that a pool must have.
type AssignedDataset struct {
	ID          uuid.UUID `json:"id"`
	Pool        string    `json:"pool"`
	Kind        string    `json:"kind"` // as the sled agent calls them
	Compression string    `json:"compression"`
	Quota       uint64    `json:"quota,omitempty"` // bytes; 0: none
	Reservation uint64    `json:"reservation,omitempty"`
}

// OutdatedError is an assignment that is older than the one that the sled has.
type OutdatedError struct{ Got, Have uint64 }

// Error is the sled agent's message.
func (e *OutdatedError) Error() string {
	return fmt.Sprintf("sled config generation out of date (got %d, have %d)", e.Got, e.Have)
}

func (*OutdatedError) Kind() fault.Kind { return fault.Conflict }

// ChangedError is another assignment of the same generation.
type ChangedError struct{ Generation uint64 }

// Error is the sled agent's message.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("sled config changed with the same generation (%d)", e.Generation)
}

func (*ChangedError) Kind() fault.Kind { return fault.Conflict }

// Assigned reads the assignment; false: none was made.
func Assigned(view ledger.View) (a Assignment, there bool, err error) {
	value, there := view.Get(naming.KeyAssignment)
	if !there {
		return Assignment{}, false, nil
	}
	if err := json.Unmarshal(value, &a); err != nil {
		return Assignment{}, false, fmt.Errorf("record of what the control plane wants: %w", err)
	}
	return a, true, nil
}

// Assign keeps an assignment, and does nothing for it. Errors: *OutdatedError, *ChangedError
// (omicron sled-agent/config-reconciler/src/ledger.rs).
func Assign(ctx context.Context, env operation.Env, next Assignment) error {
	_, err := operation.Run(ctx, env, operation.Request[struct{}]{
		Verb: "storage assign", Subject: naming.KeyAssignment, Wait: true,
		Look: func(context.Context, host.Host) (struct{}, error) { return struct{}{}, nil },
		Decide: func(view ledger.View, _ struct{}, _ operation.Stamp) (operation.Decision, error) {
			old, there, err := Assigned(view)
			switch {
			case err != nil:
				return operation.Decision{}, err
			case there && next.Generation < old.Generation:
				return operation.Decision{}, &OutdatedError{Got: next.Generation, Have: old.Generation}
			case there && next.Generation == old.Generation && !bytes.Equal(next.Body, old.Body):
				return operation.Decision{}, &ChangedError{Generation: next.Generation}
			case there && next.Generation == old.Generation:
				return operation.Decision{}, nil
			}
			value, err := json.Marshal(next)
			return operation.Decision{OnSuccess: []ledger.Fact{{Key: naming.KeyAssignment, Value: value}}}, err
		},
	})
	return err
}

// location is where a dataset of a kind lies. A sled of sledctl has those that belong to no zone
// of a control plane's.
func (a AssignedDataset) location() (l naming.Location, ok bool) {
	if pool, _ := naming.ParsePool(a.Pool); pool != naming.ExternalPool {
		return l, false
	}
	switch a.Kind {
	case "zone":
		return naming.ZoneParent(a.Pool)
	case "debug":
		return naming.Debug(a.Pool)
	case "local_storage", "local_storage_unencrypted":
		return naming.LocalStorage(a.Pool, a.Kind == "local_storage"), true
	}
	return l, false
}

// with has the assigned datasets be among what pools must have.
func (s Settings) with(view ledger.View) (Settings, error) {
	a, there, err := Assigned(view)
	if err != nil || !there {
		return s, err
	}
	s.Custom = append([]CustomDataset{}, s.Custom...)
	for _, d := range a.Datasets {
		at, ok := d.location()
		if !ok {
			continue
		}
		size := func(n uint64) string {
			if n == 0 {
				return "none"
			}
			return strconv.FormatUint(n, 10)
		}
		s.Custom = append(s.Custom, CustomDataset{
			On: naming.ExternalPool, Pool: d.Pool, Name: strings.TrimPrefix(at.Dataset, d.Pool+"/"),
			Properties: props("compression", d.Compression, "quota", size(d.Quota), "reservation", size(d.Reservation), PropertyUUID, d.ID.String()),
		})
	}
	return s, nil
}

// withAssigned is with by the ledger, if there is one.
func (s Settings) withAssigned(ctx context.Context, env operation.Env) (Settings, error) {
	book, err := env.Ledger(ctx)
	if err == nil {
		var view ledger.View
		if view, err = book.Read(ctx); err == nil {
			return s.with(view)
		}
	}
	if errors.Is(err, ledger.ErrAbsent) {
		return s, nil
	}
	return s, err
}

// Applied says what became so: for each disk and dataset of an assignment why it is not; nil: it
// is.
type Applied struct{ Disks, Datasets map[uuid.UUID]error }

// Applied compares the sled with what was assigned.
func (s Settings) Applied(ctx context.Context, h host.Host, view ledger.View) (a Assignment, there bool, is Applied, err error) {
	if a, there, err = Assigned(view); err != nil || !there {
		return a, there, is, err
	}
	c, err := s.see(ctx, h, view)
	if err != nil {
		return a, there, is, err
	}
	is = Applied{Disks: map[uuid.UUID]error{}, Datasets: map[uuid.UUID]error{}}
	for _, d := range a.Disks {
		is.Disks[d.ID] = c.lacksDisk(d)
	}
	for _, d := range a.Datasets {
		is.Datasets[d.ID] = c.lacksDataset(d)
	}
	return a, there, is, nil
}

// lacksDisk is why a disk is not as it was assigned, in the sled agent's words (omicron
// sled-agent/config-reconciler/src/reconciler_task/external_disks.rs).
func (c *comparison) lacksDisk(want AssignedDisk) error {
	for _, f := range c.seen.Disks {
		if f.Identity != want.Identity || f.Absent {
			continue
		}
		pool := ""
		if f.Pool != nil {
			pool = f.Pool.Name
		}
		_, is := naming.ParsePool(pool)
		item := c.judged(Item{Kind: "disk", Name: f.Name})
		switch {
		case f.Kind != disk.U2:
			return fmt.Errorf("disk requested by control plane is an internal disk: %s", want.ID)
		case pool == "":
			return fmt.Errorf("failed to adopt disk containing zpool %s: %s; sledctl formats only disks that an operator names", want.Pool, item.State)
		case is != want.Pool:
			return fmt.Errorf("expected zpool UUID of %s, but saw %s", want.Pool, is)
		case item.State != "ready":
			return fmt.Errorf("failed to adopt disk containing zpool %s: %s", want.Pool, item.Reason)
		}
		return nil
	}
	return errors.New("disk requested by control plane, but not found on device")
}

// lacksDataset is why a dataset is not as it was assigned, as the sled agent words it (omicron
// sled-agent/config-reconciler/src/dataset_serialization_task.rs).
func (c *comparison) lacksDataset(want AssignedDataset) error {
	at, ok := want.location()
	if !ok {
		return fmt.Errorf("failed to ensure dataset: %s belongs to a zone of the control plane's, of which a sled of sledctl has none", want.Kind)
	}
	if _, there := c.seen.Inv.Dataset(want.Pool); !there {
		return fmt.Errorf("could not find matching zpool %s", want.Pool)
	}
	is, _ := c.seen.Inv.Dataset(at.Dataset)
	if v := is.User[PropertyUUID]; v.Source == zfs.Local && v.Value != want.ID.String() {
		return fmt.Errorf("dataset %s exists with unexpected ID (expected %s, got %s)", at.Dataset, want.ID, v.Value)
	}
	if item := c.judged(Item{Kind: "dataset", Name: at.Dataset}); item.State != "ready" {
		return fmt.Errorf("failed to ensure dataset: %s is %s: %s", at.Dataset, item.State, item.Reason)
	}
	return nil
}
