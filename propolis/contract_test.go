package propolis

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/sledctl/sledctl/propolis/spec"
)

// shared reads a file of the published documents and samples.
func shared(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "shared", dir, name))
	if err != nil {
		t.Skip(filepath.Join("shared", dir) + " is not here")
	}
	return data
}

func sample(t *testing.T, name string) string {
	t.Helper()
	return string(shared(t, filepath.Join("samples", "propolis"), name))
}

// document is the published API of a version. A component's key is said to be a
// UUID or a string, of which each UUID is both: that is repaired.
func document(t *testing.T, v spec.Version) routers.Router {
	t.Helper()
	name := "propolis-server-" + v.String() + ".json"
	if v == spec.Proposed {
		name = "propolis-server-" + v.String() + "-pr1178-unmerged.json"
	}
	var raw map[string]any
	if err := json.Unmarshal(shared(t, "openapi", name), &raw); err != nil {
		t.Fatal(err)
	}
	if got := raw["info"].(map[string]any)["version"]; got != v.String() {
		t.Errorf("the document is of version %v, the client speaks %s", got, v)
	}
	raw["components"].(map[string]any)["schemas"].(map[string]any)["SpecKey"] = map[string]any{"type": "string"}
	data, err := json.Marshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(data)
	if err != nil {
		t.Fatal(err)
	}
	doc.Servers = nil
	router, err := legacy.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	return router
}

// conforming is a server that holds each request, and its own answer, to the
// document.
func conforming(t *testing.T, router routers.Router, status int, reply string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		route, params, err := router.FindRoute(r)
		if err != nil {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
			return
		}
		input := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route}
		if err := openapi3filter.ValidateRequest(r.Context(), input); err != nil {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		w.Header().Set("Content-Type", "application/json")
		answer := &openapi3filter.ResponseValidationInput{RequestValidationInput: input, Status: status, Header: w.Header()}
		if err := openapi3filter.ValidateResponse(r.Context(), answer.SetBodyBytes([]byte(reply))); err != nil {
			t.Errorf("the sample for %s %s: %v", r.Method, r.URL, err)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, reply)
	}
}

// Requests and samples of replies against the document, and the samples
// through the client.
func TestContract(t *testing.T) {
	router := document(t, spec.Latest)
	at := func(t *testing.T, status int, name string) Client {
		reply := ""
		if name != "" {
			reply = sample(t, name)
		}
		return client(conforming(t, router, status, reply))
	}
	t.Run("ensure", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			if err := at(t, 201, "ensure-response.json").Ensure(t.Context(), request(t)); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("spec", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			d, err := at(t, 200, "spec-get-response.json").Spec(t.Context())
			if err != nil || d.State != StateCreating || d.Properties.Name != "web-01" || d.Spec == nil || d.Spec.Board.CPUID == nil {
				t.Errorf("%+v, %v", d, err)
			}
		})
	})
	t.Run("monitor", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s, err := at(t, 200, "state-monitor-response.json").Monitor(t.Context(), 3)
			if err != nil || s != (Status{Generation: 3, State: StateRunning}) {
				t.Errorf("%+v, %v", s, err)
			}
		})
	})
	for _, state := range []string{Run, Stop, Reboot} {
		t.Run(state, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				if err := at(t, 204, "").PutState(t.Context(), state); err != nil {
					t.Error(err)
				}
			})
		})
	}
	for name, c := range map[string]struct {
		status int
		want   error
	}{
		"error-no-instance-424.json":         {424, ErrNoInstance},
		"error-already-initialized-409.json": {409, ErrAlreadyInitialized},
		"error-forbidden-403.json":           {403, ErrForbidden},
		"error-internal-500.json":            {500, nil},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				_, err := at(t, c.status, name).Get(t.Context())
				e, ok := errors.AsType[*Error](err)
				if !ok || e.RequestID == "" || c.want != nil && !errors.Is(err, c.want) {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

// Of a server that speaks no newer version than its own, each request is as its
// document says.
func TestContractOfEachVersion(t *testing.T) {
	for _, v := range spec.Versions() {
		router := document(t, v)
		ensured, asked := sample(t, "ensure-response.json"), sample(t, "state-monitor-response.json")
		bubble(t, func(t *testing.T) {
			c := client(func(w http.ResponseWriter, r *http.Request) {
				if got := r.Header.Get("api-version"); got > v.String() {
					w.WriteHeader(http.StatusBadRequest)
					_, _ = io.WriteString(w, `{"request_id":"r","message":"server does not support this API version: `+got+`"}`)
					return
				}
				switch r.Method + " " + r.URL.Path {
				case "PUT /instance":
					conforming(t, router, http.StatusCreated, ensured)(w, r)
				case "GET /instance/state-monitor":
					conforming(t, router, http.StatusOK, asked)(w, r)
				default:
					conforming(t, router, http.StatusNoContent, "")(w, r)
				}
			})
			r := request(t)
			if v == spec.Proposed {
				r.Init.Spec.Components["d"] = spec.NVMeDisk{Backend: "d-backend", WriteCache: new(false)}
			}
			if err := c.Ensure(t.Context(), r); err != nil {
				t.Errorf("%s: %v", v, err)
			}
			if err := c.PutState(t.Context(), Run); err != nil {
				t.Errorf("%s: %v", v, err)
			}
			if _, err := c.Monitor(t.Context(), 3); err != nil {
				t.Errorf("%s: %v", v, err)
			}
		})
	}
}
