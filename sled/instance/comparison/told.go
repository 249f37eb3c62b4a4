package comparison

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/propolis/cidata"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/firstboot"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/instance/secrets"
)

// Told is the cloud-init data of an instance, with its secrets.
type Told struct {
	Name  string
	Given bool // its VM has it; else it gets it when it is brought up
	Files cidata.Files
}

// UntoldError is an instance whose guest is told nothing.
type UntoldError struct{ Name string }

// Error names it.
func (e *UntoldError) Error() string {
	return fmt.Sprintf("instance %q has no cloud-init data", e.Name)
}

func (*UntoldError) Kind() fault.Kind { return fault.NotFound }

// Hint says how to give it some.
func (e *UntoldError) Hint() string {
	return "to give it some, run: sledctl instance ensure " + e.Name + " --cloud-init FILE"
}

// LookTold asks the Propolis of an instance that runs for what it was given, and reads what is
// recorded for any other. Errors: *UntoldError; those of secrets that are lost.
func LookTold(ctx context.Context, s instance.Settings, env operation.Env, view ledger.View, ref string) (Told, error) {
	r, err := s.Find(view, ref)
	if err != nil {
		return Told{}, err
	}
	if files, given := givenTo(ctx, s.Blueprint(), env, r); given {
		return Told{Name: r.Name, Given: true, Files: files}, nil
	}
	if r.Spec.CloudInit == nil {
		return Told{}, &UntoldError{Name: r.Name}
	}
	if r, err = secrets.Unsealed(env.Host.Files(), r); err != nil {
		return Told{}, err
	}
	files, err := firstboot.Files(r)
	return Told{Name: r.Name, Files: files}, err
}

// givenTo is what Propolis says that a VM has; false: it does not answer, or has no such volume.
func givenTo(ctx context.Context, b layout.Blueprint, env operation.Env, r record.Record) (cidata.Files, bool) {
	if r.Incarnation == nil {
		return cidata.Files{}, false
	}
	ctx, release := context.WithTimeout(ctx, layout.AskTimeout)
	defer release()
	d, err := (propolis.Client{Host: env.Host, Target: layout.OwnTarget(b, r)}).Spec(ctx)
	if err != nil || d.Spec == nil {
		return cidata.Files{}, false
	}
	for _, key := range d.Spec.Components.Keys() {
		blob, is := d.Spec.Components[key].(spec.BlobStorage)
		if !is {
			continue
		}
		volume, err := base64.StdEncoding.DecodeString(blob.Base64)
		if err != nil {
			continue
		}
		if files, err := cidata.Read(volume); err == nil {
			return files, true
		}
	}
	return cidata.Files{}, false
}
