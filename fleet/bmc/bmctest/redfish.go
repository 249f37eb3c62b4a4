package bmctest

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"time"
)

// Redfish is a BMC that speaks Redfish.
type Redfish struct {
	Address     string
	Fingerprint string // of its certificate
	CA          []byte // which has signed it
	server      *httptest.Server
}

// Close ends it.
func (r *Redfish) Close() { r.server.Close() }

// path is that of the one system.
const path = "/redfish/v1/Systems/Self"

// StartRedfish is the BMC of a sled, on a port of its own.
func StartRedfish(s *Sled) *Redfish {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /redfish/v1/Systems", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"Members": []any{map[string]string{"@odata.id": path}}, "Members@odata.count": 1})
	})
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
		state := "On"
		if s.Off() {
			state = "Off"
		}
		answer(w, http.StatusOK, map[string]any{
			"@odata.id": path, "UUID": s.ID, "PowerState": state,
			"Actions": map[string]any{"#ComputerSystem.Reset": map[string]any{"target": path + "/Actions/ComputerSystem.Reset"}},
		})
	})
	mux.HandleFunc("POST "+path+"/Actions/ComputerSystem.Reset", func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ ResetType string }
		if err := json.NewDecoder(io.LimitReader(r.Body, 1<<16)).Decode(&asked); err != nil || asked.ResetType != "ForceOff" {
			refuse(w, http.StatusBadRequest, fmt.Sprintf("ResetType %q is not supported", asked.ResetType))
			return
		}
		if !s.powerOff() {
			refuse(w, http.StatusForbidden, "There are insufficient privileges for the account")
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	server := httptest.NewUnstartedServer(guarded(s, mux))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	certificate := server.Certificate().Raw
	return &Redfish{
		Address: server.Listener.Addr().(*net.TCPAddr).String(), Fingerprint: fingerprint(certificate), server: server,
		CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
	}
}

// guarded asks for the account, and has the faults.
func guarded(s *Sled, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := s.now()
		if f.Gone {
			panic(http.ErrAbortHandler)
		}
		select {
		case <-time.After(f.Slow):
		case <-r.Context().Done():
			return
		}
		if name, password, _ := r.BasicAuth(); name != Username || password != Password {
			refuse(w, http.StatusUnauthorized, "The account is not known")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func answer(w http.ResponseWriter, status int, what any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(what) // the client may have gone
}

func refuse(w http.ResponseWriter, status int, why string) {
	answer(w, status, map[string]any{"error": map[string]string{"code": "Base.1.0.GeneralError", "message": why}})
}
