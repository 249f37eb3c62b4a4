package nicsync

import (
	"errors"
	"fmt"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/peer/napi"
)

// UnknownError is a sled that could not be seen whole: nothing is written.
type UnknownError struct{ Err error }

// Error gives the reason.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("what is on the sled is not known, and no record is judged: %v", e.Err)
}

func (*UnknownError) Kind() fault.Kind { return fault.Failed }

// Unwrap gives the reason.
func (e *UnknownError) Unwrap() error { return e.Err }

// UnsupportedError is a NAPI that cannot say which records are this sled's. It
// may be upgraded, so it is asked again after hours.
type UnsupportedError struct {
	Err     error
	Allowed bool // GET /nics was allowed, and was asked
}

// Error gives the reason.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("this NAPI does not say which records are this sled's, and none is changed: %v", e.Err)
}

func (*UnsupportedError) Kind() fault.Kind { return fault.Refused }

// Unwrap gives the reason.
func (e *UnsupportedError) Unwrap() error { return e.Err }

// Hint says what else could be asked.
func (e *UnsupportedError) Hint() string {
	if e.Allowed {
		return "upgrade NAPI: it is older than January 2017, when it learned this (NAPI-404)"
	}
	return "to ask GET /nics?cn_uuid= instead, which NAPIs since January 2017 answer, add --allow-nics-endpoint or set nics.allow_nics_endpoint"
}

// MovingError is a sled on which a VM is being moved, where that forbids every
// write.
type MovingError struct{ VM, Why string }

// Error names the VM.
func (e *MovingError) Error() string {
	return fmt.Sprintf("no NIC record is changed while a VM is being moved: %s: %s", e.VM, e.Why)
}

func (*MovingError) Kind() fault.Kind { return fault.Refused }

// Hint says what to do about it.
func (e *MovingError) Hint() string {
	return "run the same command again when the VM has arrived; to change the records of other VMs now, omit --disable-during-migration"
}

// Unwrap says that it was refused.
func (e *MovingError) Unwrap() error { return host.ErrRefused }

// TooManyError is a sync that would remove more records than it may.
type TooManyError struct{ Going, Limit, Records int }

// Error gives the numbers.
func (e *TooManyError) Error() string {
	return fmt.Sprintf("%d of this sled's %d records would go, and at most %d may: nothing was changed", e.Going, e.Records, e.Limit)
}

func (*TooManyError) Kind() fault.Kind { return fault.Refused }

// Hint says what to do about it.
func (e *TooManyError) Hint() string {
	return fmt.Sprintf("to see them, run: sledctl nics list; if all of them are leaked, add --max-delete %d", e.Going)
}

// Unwrap says that it was refused.
func (e *TooManyError) Unwrap() error { return host.ErrRefused }

// errMoves is a record whose VM is being moved since the look.
var errMoves = errors.New("its VM is being moved by now")

// errHas is a record that was to go, and whose VM has the NIC again.
var errHas = errors.New("its VM has the NIC by now")

// errOtherwise is a record of whose VM the ledger says something else since
// the look: it was stopped or forgotten, or has come or gone.
var errOtherwise = errors.New("the ledger says otherwise of its VM by now")

// changed says whether a write failed because the record is another version by
// now, or its VM is.
func changed(err error) bool {
	return errors.Is(err, napi.ErrChanged) || errors.Is(err, napi.ErrNoNIC) || errors.Is(err, errMoves) || errors.Is(err, errHas) || errors.Is(err, errOtherwise)
}
