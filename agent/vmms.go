package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/agent/api"
)

// What the control plane asks of VMs (omicron sled-agent/api/src/lib.rs). What is
// answered is decided here; work does it.

// unregister takes a VM away. Of one that nobody knows there is nothing to say.
func (s *server) unregister(c call) (any, *api.Error) {
	v, err := s.find(c)
	if err != nil && err.Code == api.CodeNoSuchInstance {
		return api.Unregistered{}, nil
	}
	if err == nil {
		err = s.keeps(c, v)
	}
	if err == nil && !v.State.Final() {
		err = s.work.Remove(c.Context(), v)
	}
	if err != nil && err.Status != http.StatusGone { // then another client has removed it
		return nil, err
	}
	v, _ = s.find(c)
	s.read(v)
	return api.Unregistered{Updated: v.wire()}, nil
}

// putState has a VM run, stopped or reset.
func (s *server) putState(c call) (any, *api.Error) {
	var body api.PutState
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	v, err := s.find(c)
	if err == nil && v.State.Final() {
		err = api.StatusOnly(http.StatusGone, api.CodeNoSuchInstance, nil)
	}
	if err == nil {
		err = s.keeps(c, v)
	}
	if err != nil {
		return nil, err
	}
	switch body.State.Type {
	case api.WantRunning:
		return api.StatePut{}, s.work.Run(c.Context(), v, "") // the client asks for the result
	case api.WantMigration:
		return api.StatePut{}, s.work.Run(c.Context(), v, body.State.Value.Source)
	case api.WantStopped:
		err = s.work.Stop(c.Context(), v)
	case api.WantReboot:
		err = s.work.Reboot(c.Context(), v)
	}
	if err != nil {
		return nil, err
	}
	if v, err = s.find(c); err != nil {
		return nil, err
	}
	s.read(v)
	return api.StatePut{Updated: v.wire()}, nil
}

// uuid is a parameter of the path that is a UUID.
func (c call) uuid(param string) (uuid.UUID, *api.Error) {
	text := c.params[param]
	id, err := uuid.Parse(text)
	if err != nil || len(text) != len(id.String()) {
		return uuid.UUID{}, api.BadRequest(fmt.Sprintf("bad parameter in URL path: UUID parsing failed: %q", text))
	}
	return id, nil
}

// read gives the body.
func (c call) read() ([]byte, *api.Error) {
	if kind := c.Header.Get("Content-Type"); kind != "" {
		if media, _, err := mime.ParseMediaType(kind); err != nil || media != "application/json" {
			return nil, api.BadRequest(fmt.Sprintf("expected content type %q, got %q", "application/json", kind))
		}
	}
	data, err := io.ReadAll(c.Body)
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, api.BadRequest(fmt.Sprintf("request body exceeded maximum size of %d bytes", maxBody))
	}
	if err != nil {
		return nil, api.BadRequest("the body was broken off: " + err.Error())
	}
	return data, nil
}

// decode reads the body, which is one JSON value.
func (c call) decode(to any) *api.Error {
	data, refused := c.read()
	if refused != nil {
		return refused
	}
	if err := json.Unmarshal(data, to); err != nil {
		return api.BadRequest("unable to parse JSON body: " + err.Error())
	}
	return nil
}
