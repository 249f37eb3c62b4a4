package propolis

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/sledctl/sledctl/peer/dropshot/dropshottest"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/test/refdata"
)

// document is the published API of a version.
func document(t *testing.T, v spec.Version) *dropshottest.Document {
	t.Helper()
	d := dropshottest.Published(t, "propolis-server-"+v.String()+"*.json")
	if d.Info.Version != v.String() {
		t.Errorf("the document is of version %s, the client speaks %s", d.Info.Version, v)
	}
	return d
}

func sample(t *testing.T, name string) string {
	t.Helper()
	return string(refdata.File(t, "samples/propolis/"+name))
}

// conforming is a server that holds each request, and its own answer, to the
// document.
func conforming(t *testing.T, doc *dropshottest.Document, status int, reply string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := doc.Request(r); err != nil {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		w.Header().Set("Content-Type", "application/json")
		if err := doc.Answer(r, status, w.Header(), []byte(reply)); err != nil {
			t.Errorf("the sample for %s %s: %v", r.Method, r.URL, err)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, reply)
	}
}

// Requests and samples of replies against the document, and the samples
// through the client.
func TestContract(t *testing.T) {
	doc := document(t, spec.Latest)
	at := func(t *testing.T, status int, name string) Client {
		reply := ""
		if name != "" {
			reply = sample(t, name)
		}
		return client(conforming(t, doc, status, reply))
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
		doc := document(t, v)
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
					conforming(t, doc, http.StatusCreated, ensured)(w, r)
				case "GET /instance/state-monitor":
					conforming(t, doc, http.StatusOK, asked)(w, r)
				default:
					conforming(t, doc, http.StatusNoContent, "")(w, r)
				}
			})
			r := request(t)
			if v == spec.Latest {
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
