package propolis

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/sledctl/sledctl/host"
)

// Target is where a server answers.
type Target struct {
	// Name is whose server it is, for messages.
	Name string
	// ID, if set, is that of its machine: one that tells another is a *OtherError.
	ID string
	// Address is where, if that is known beforehand.
	Address netip.AddrPort
	// Find gives the address when it is needed, if Address is not valid. An
	// address that does not exist yet is host.ErrTransient.
	Find func(ctx context.Context, h host.Host) (netip.AddrPort, error)
	// Programs are those of the host that Find runs.
	Programs []string
	// Versions, if set, is what is known of the versions that servers take.
	Versions *Versions
	// Log is where the server says why a request failed.
	Log Log
	// Port is that of an address that Find gives, for Explain; 0: not said.
	Port uint16
}

// errNowhere is a target that has no address and cannot find one.
var errNowhere = errors.New("it has no address")

// at is the target with its address found.
func (t Target) at(ctx context.Context, h host.Host) (Target, error) {
	if t.Address.IsValid() {
		return t, nil
	}
	err := errNowhere
	if t.Find != nil {
		t.Address, err = t.Find(ctx, h)
		if err == nil && !t.Address.IsValid() {
			err = errNowhere
		}
	}
	if err != nil {
		return t, fmt.Errorf("find the Propolis of %s: %w", t.Name, err)
	}
	return t, nil
}

// asked is the error of a question, with the server that was asked.
func (t Target) asked(err error) error {
	if err == nil {
		return nil
	}
	return &AskedError{t.Name, err}
}

// is says whether a machine is the one that there should be.
func (t Target) is(i Instance) error {
	if t.ID != "" && i.Properties.ID != t.ID {
		return &OtherError{ID: i.Properties.ID, Want: t.ID}
	}
	return nil
}

func (t Target) needs() []string {
	if t.Address.IsValid() {
		return nil
	}
	return t.Programs
}

// url is what is dialled, as far as it is known.
func (t Target) url(path string) string {
	switch {
	case t.Address.IsValid():
		return "http://" + t.Address.String() + path
	case t.Port != 0:
		return fmt.Sprintf("http://<address of %s>:%d%s", t.Name, t.Port, path)
	}
	return fmt.Sprintf("http://<address of %s>%s", t.Name, path)
}
