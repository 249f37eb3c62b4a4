package propolis

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/propolis/spec"
)

// server is one that speaks no newer version than its own, and writes down in
// which it was asked.
type server struct {
	newest spec.Version
	asked  []string
	bodies []string
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	v := r.Header.Get("api-version")
	data, _ := io.ReadAll(r.Body)
	s.asked, s.bodies = append(s.asked, v), append(s.bodies, string(data))
	if v > s.newest.String() {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"request_id":"r","message":"server does not support this API version: `+v+`"}`)
		return
	}
	if r.Method == http.MethodGet {
		_, _ = io.WriteString(w, `{"instance":{"properties":{"id":"x"},"state":"Running"}}`)
	}
}

func TestTheNewestVersionThatTheServerTakesIsSpokenAndRemembered(t *testing.T) {
	for newest, want := range map[spec.Version][]string{
		6: {"6.0.0", "6.0.0"},
		5: {"6.0.0", "5.0.0", "5.0.0"},
		3: {"6.0.0", "5.0.0", "4.0.0", "3.0.0", "3.0.0"},
		1: {"6.0.0", "5.0.0", "4.0.0", "3.0.0", "2.0.0", "1.0.0", "1.0.0"},
	} {
		bubble(t, func(t *testing.T) {
			s := server{newest: newest}
			c := client(s.serve)
			c.Target.Versions = new(Versions)
			for range 2 {
				if _, err := c.Get(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if diff := cmp.Diff(want, s.asked); diff != "" {
				t.Errorf("%s: %s", newest, diff)
			}
		})
	}
}

func TestAServerThatTakesNoVersionIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := server{newest: 0}
		_, err := client(s.serve).Get(t.Context())
		if e, ok := errors.AsType[*Error](err); !ok || e.Status != http.StatusBadRequest || len(s.asked) != int(spec.Latest) {
			t.Errorf("%v, %v", err, s.asked)
		}
	})
}

// A VM is sent in the version that is spoken. One that needs more than the
// server has is not sent, and the reason names what needs it.
func TestAMachineIsToldInTheVersionOfTheServer(t *testing.T) {
	ensure := func(ctx context.Context, newest spec.Version, change func(spec.Components)) (*server, error) {
		s := server{newest: newest}
		r := request(t)
		change(r.Init.Spec.Components)
		return &s, client(s.serve).Ensure(ctx, r)
	}
	plain := func(spec.Components) {}
	cacheless := func(c spec.Components) {
		c["d"] = spec.NVMeDisk{Backend: "b", WriteCache: new(false)}
	}
	bubble(t, func(t *testing.T) {
		s, err := ensure(t.Context(), 2, plain)
		if diff := cmp.Diff([]string{"6.0.0", "5.0.0", "4.0.0", "3.0.0", "2.0.0"}, s.asked); diff != "" || err != nil {
			t.Error(diff, err)
		}
	})
	bubble(t, func(t *testing.T) {
		s, err := ensure(t.Context(), 6, cacheless)
		var got struct {
			Init struct {
				Value struct{ Spec spec.InstanceSpec }
			}
		}
		if err != nil || json.Unmarshal([]byte(s.bodies[0]), &got) != nil || *got.Init.Value.Spec.Components["d"].(spec.NVMeDisk).WriteCache {
			t.Errorf("%v, %v", err, s.bodies)
		}
	})
	bubble(t, func(t *testing.T) {
		s, err := ensure(t.Context(), 5, cacheless)
		e, ok := errors.AsType[*spec.VersionError](err)
		if diff := cmp.Diff([]string{"6.0.0"}, s.asked); !ok || diff != "" || e.Lacks[0].Since != 6 {
			t.Errorf("%v, %v", err, diff)
		}
	})
}

// A VM that needs a newer server than the target's is refused before its source is
// asked for anything.
func TestAMigrationToATooOldServerIsNotBegun(t *testing.T) {
	for newest, want := range map[spec.Version][]string{5: {"6.0.0"}, 4: {"6.0.0"}} {
		bubble(t, func(t *testing.T) {
			s := server{newest: newest}
			step := Arrive{Target: target(), ID: "m", Request: spec.EnsureRequest{Init: spec.Init{Migration: &spec.MigrationTarget{Replace: map[string]spec.Replacement{}}}}}
			step.Machine.Components = spec.Components{"d": spec.NVMeDisk{Backend: "b", WriteCache: new(false)}}
			err := step.Do(t.Context(), client(s.serve).Host)
			e, ok := errors.AsType[*spec.VersionError](err)
			if diff := cmp.Diff(want, s.asked); !ok || e.Version != 5 || diff != "" {
				t.Errorf("%v, %v", err, diff)
			}
			if text := step.Explain()[0].Text; !strings.Contains(text, "api-version: 6.0.0") {
				t.Error(text)
			}
		})
	}
}

// Version 1 wraps the spec of an answer once more.
func TestTheSpecOfAnOldServer(t *testing.T) {
	const body = `{"properties":{"id":"x"},"state":"Running","spec":{"type":"Present","value":{"version":"V0","spec":
		{"board":{"cpus":2,"memory_mb":1,"chipset":{"type":"i440_fx","value":{"enable_pcie":false}}},"components":{}}}}}`
	bubble(t, func(t *testing.T) {
		got, err := client(replies(200, body)).Spec(t.Context())
		if err != nil || got.Spec == nil || got.Spec.Board.CPUs != 2 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
