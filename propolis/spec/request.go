package spec

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sledctl/sledctl/host/fault"
)

// EnsureRequest is the body of PUT /instance. The server swallows fields that it
// does not know at the top, in the properties and in the spec.
type EnsureRequest struct {
	Properties Properties `json:"properties"`
	Init       Init       `json:"init"`
}

// Properties say whose machine it is. The server gives them back.
type Properties struct {
	// ID is a UUID: the name of the kernel's VM (/dev/vmm/ID), and of the
	// machine in SMBIOS. An ensure destroys an older VM of that name first.
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Metadata    Metadata `json:"metadata"`
}

// Metadata only labels the server's metrics. All fields are required, ids are
// UUIDs.
type Metadata struct {
	SiloID       string `json:"silo_id"`
	ProjectID    string `json:"project_id"`
	SledID       string `json:"sled_id"`
	SledSerial   string `json:"sled_serial"`
	SledRevision uint32 `json:"sled_revision"`
	SledModel    string `json:"sled_model"`
}

// Init is how the machine begins: exactly one of the two is set.
type Init struct {
	Spec      *InstanceSpec    // again
	Migration *MigrationTarget // as the target of a migration
}

// MigrationTarget says where a machine comes from.
type MigrationTarget struct {
	ID     string `json:"migration_id"`
	Source string `json:"src_addr"` // IP:PORT of the server that has it
	// Replace has components of the source under their keys; it may be empty,
	// not nil.
	Replace map[string]Replacement `json:"replace_components"`
}

// Needs is the first version that can express the request.
func (r EnsureRequest) Needs() Version {
	if r.Init.Spec == nil {
		return Oldest
	}
	return r.Init.Spec.Needs()
}

// Replacement is a component that is another one on this side: a
// VirtioNetwork, a CrucibleStorage or a MigrationFailureInjector.
type Replacement struct{ Component }

// The methods of Init.
const (
	methodSpec      = "Spec"
	methodMigration = "MigrationTarget"
)

// MarshalJSON adds the method.
func (i Init) MarshalJSON() ([]byte, error) {
	type wire struct {
		Method string `json:"method"`
		Value  any    `json:"value"`
	}
	switch {
	case (i.Spec == nil) == (i.Migration == nil):
		return nil, errors.New("a machine begins either by a spec or by a migration")
	case i.Spec != nil:
		return encode(wire{methodSpec, map[string]*InstanceSpec{"spec": i.Spec}})
	}
	return encode(wire{methodMigration, i.Migration})
}

// UnmarshalJSON reads the method.
func (i *Init) UnmarshalJSON(data []byte) error {
	var wire struct {
		Method string          `json:"method"`
		Value  json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	switch wire.Method {
	case methodSpec:
		var value struct {
			Spec *InstanceSpec `json:"spec"`
		}
		if err := json.Unmarshal(wire.Value, &value); err != nil {
			return err
		}
		if value.Spec == nil {
			return errors.New("init: there is no spec")
		}
		*i = Init{Spec: value.Spec}
		return nil
	case methodMigration:
		*i = Init{Migration: new(MigrationTarget)}
		return json.Unmarshal(wire.Value, i.Migration)
	}
	return fmt.Errorf("init: no method %q", wire.Method)
}

// replacementTag is the tag of a replacement: unlike components', in camel case.
func replacementTag(c Component) string {
	switch c.(type) {
	case VirtioNetwork:
		return "VirtioNetworkBackend"
	case CrucibleStorage:
		return "CrucibleStorageBackend"
	case MigrationFailureInjector:
		return "MigrationFailureInjector"
	}
	return ""
}

// MarshalJSON adds the tag.
func (r Replacement) MarshalJSON() ([]byte, error) {
	tag := replacementTag(r.Component)
	if tag == "" {
		return nil, fmt.Errorf("a %T cannot be replaced by a migration", r.Component)
	}
	return encode(struct {
		Tag  string `json:"component"`
		Body any    `json:"spec"`
	}{tag, r.Component})
}

// UnmarshalJSON reads the tag.
func (r *Replacement) UnmarshalJSON(data []byte) error {
	var wire struct {
		Tag  string          `json:"component"`
		Body json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	for _, kind := range []Component{VirtioNetwork{}, CrucibleStorage{}, MigrationFailureInjector{}} {
		if replacementTag(kind) == wire.Tag {
			part, err := decode(kind.Type(), wire.Body)
			r.Component = part
			return err
		}
	}
	return fmt.Errorf("replacement: no component %q", wire.Tag)
}

// MaxRequest bounds the body of a request, in bytes (request_body_max_bytes of
// bin/propolis-server). A blob disk is in it, in base64.
const MaxRequest = 1 << 20

// TooLargeError is a request that the server would not read.
type TooLargeError struct{ Size int }

// Error says both sizes.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the request has %d bytes: a Propolis server reads at most %d", e.Size, MaxRequest)
}

func (*TooLargeError) Kind() fault.Kind { return fault.Usage }

// Encode is the request as it is sent to a server that speaks a version: the
// same bytes for the same request. Errors: *VersionError, *TooLargeError.
func (r EnsureRequest) Encode(v Version) ([]byte, error) {
	if r.Init.Spec != nil {
		s, err := r.Init.Spec.At(v)
		if err != nil {
			return nil, err
		}
		r.Init.Spec = &s
	}
	body, err := encode(r)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	if len(body) > MaxRequest {
		return nil, &TooLargeError{len(body)}
	}
	return body, nil
}
