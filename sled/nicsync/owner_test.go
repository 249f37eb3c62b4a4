package nicsync

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	simnapi "github.com/sledctl/sledctl/sim/napi"
	"github.com/sledctl/sledctl/sim/world"
)

// The record of a VM that changed hands is made to match the sled also on a network
// that its new owner may not use (TRITON-1652): a change that did not say
// check_owner:false would be refused.
func TestTheRecordOfAVMThatChangedHandsIsChanged(t *testing.T) {
	r := newRig(t, t.Context(), simnapi.EraD)
	const network = "83d9b35c-e090-4112-a218-c949b994d8f8"
	r.vm(1, "running")
	r.record(1, ours, "stopped")
	r.change(func(tx *world.Tx) {
		n := tx.State.NAPI
		n.Tags = []*world.NAPITag{{UUID: tx.UUID(), Name: "admin", MTU: 1500}}
		n.Networks = []*world.NAPINetwork{{UUID: network, Name: "admin", Etag: "4DD569CB", Subnet: "10.99.99.0/24", Start: "10.99.99.38", End: "10.99.99.250", Tag: "admin", MTU: 1500, Owners: []string{theirs}}}
		n.NICs[mac(1)].Network, n.NICs[mac(1)].IP = network, "10.99.99.40"
	})
	put := func(body string) *httptest.ResponseRecorder {
		answer := httptest.NewRecorder()
		simnapi.Handler(r.sled.World()).ServeHTTP(answer, httptest.NewRequest(http.MethodPut, "/nics/"+mac(1), strings.NewReader(body)))
		return answer
	}
	if got := put(`{"state":"running"}`); got.Code != http.StatusUnprocessableEntity || !strings.Contains(got.Body.String(), "network owner_uuids do not match") {
		t.Errorf("without check_owner: %d %s", got.Code, got.Body)
	}
	if _, err := r.sync(all()); err != nil {
		t.Error(err)
	}
	if has := r.has(1); has != "ours running" {
		t.Error(has)
	}
}
