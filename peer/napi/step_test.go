package napi

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/test/steptest"
)

func steps() map[string]steptest.Step {
	return map[string]steptest.Step{
		`curl -sS -X PUT -H 'If-Match: E' -H 'Content-Type: application/json' --data '{"check_owner":false,"state":"stopped"}' http://h:80/nics/90b8d0000001`: UpdateNIC{
			Server: "h:80", MAC: mac1, Etag: "E", Change: Change{State: StateStopped}, LockFile: "/stop",
		},
		`curl -sS -X DELETE -H 'If-Match: E' http://h:80/nics/90b8d0000001`: DeleteNIC{Server: "h:80", MAC: mac1, Etag: "E", LockFile: "/stop"},
	}
}

// registry is a machine that reaches a server with one record, whose etag is E until
// it is changed.
func registry() (*fake, func() any) {
	etag, state := "E", "running"
	f := &fake{files: hosttest.Memory()}
	f.serve = func(w http.ResponseWriter, r *http.Request) {
		switch {
		case etag == "":
			replies(404, `{"code":"ResourceNotFound","message":"nic not found"}`)(w, r)
			return
		case r.Header.Get("If-Match") != etag:
			replies(412, `{"code":"PreconditionFailed","message":"if-match '`+r.Header.Get("If-Match")+`' didn't match etag '`+etag+`'"}`)(w, r)
			return
		case r.Method == http.MethodDelete:
			etag = ""
			w.WriteHeader(http.StatusNoContent)
			return
		}
		etag, state = "F", "stopped"
		_, _ = io.WriteString(w, strings.Replace(record(mac1, ours), "running", state, 1))
	}
	return f, func() any { return []string{etag, state} }
}

func TestSteps(t *testing.T) {
	for _, s := range steps() {
		again := map[string]error{"napi.update": ErrChanged}
		steptest.Conform(t, steptest.Case{
			Step: s, Again: again[s.Verb()], Kinds: []error{ErrNoRoute, ErrNoNIC, ErrNoFilter, ErrChanged, ErrReply},
			Sled: func(*testing.T) steptest.Sled {
				f, state := registry()
				return steptest.Sled{Host: f, State: state}
			},
		})
	}
}

// A step asks for what it explains, and for nothing while the lock file is there.
func TestABarrierKeepsStepsBack(t *testing.T) {
	for want, s := range steps() {
		if lines := s.Explain(); len(lines) != 1 || lines[0].Text != want || !lines[0].Mutates() {
			t.Errorf("%v, want %s", lines, want)
		}
		f, _ := registry()
		if err := host.WriteFile(f.files, "/stop", []byte("\n moving web1 away\nmore\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		err := s.Do(t.Context(), f)
		barred, ok := errors.AsType[*WritesDisabledError](err)
		if !ok || barred.Reason != "moving web1 away" || len(f.asked) != 0 {
			t.Errorf("%v, asked %v", err, f.asked)
		}
		if err := errors.Join(f.files.Remove("/stop"), s.Do(t.Context(), f)); err != nil || len(f.asked) != 1 {
			t.Errorf("%v, asked %v", err, f.asked)
		}
	}
}
