package napi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/sim/napi"
	"github.com/sledctl/sledctl/sim/world"
)

// A network keeps who may use it, and refuses the NICs of others unless the
// request says that owners are not to be checked.
func TestANetworkKeepsItsOwners(t *testing.T) {
	w := newWorld(t, napi.EraD)
	change(t, w, func(tx *world.Tx) {
		tx.State.NAPI.Tags = []*world.NAPITag{{UUID: tx.UUID(), Name: "external", MTU: 1500}}
	})
	made := ask(w, http.MethodPost, "/networks", `{"name":"external","nic_tag":"external","subnet":"10.88.88.0/24","provision_start_ip":"10.88.88.10","provision_end_ip":"10.88.88.250","owner_uuids":["`+ours+`"]}`, nil)
	if made.Code != http.StatusOK || !strings.Contains(made.Body.String(), `"owner_uuids":["`+ours+`"]`) {
		t.Fatalf("%d %s", made.Code, made.Body)
	}
	var id string
	view(t, w, func(n *world.NAPI) { id = n.Networks[0].UUID })
	create := func(mac, owner, more string) int {
		return ask(w, http.MethodPost, "/nics", fmt.Sprintf(`{"mac":%q,"belongs_to_type":"zone","belongs_to_uuid":%q,"owner_uuid":%q,"network_uuid":%q%s}`, mac, vm, owner, id, more), nil).Code
	}
	got := fmt.Sprint(create(mac1, theirs, ""), create(mac1, theirs, `,"check_owner":true`), create(mac1, theirs, `,"check_owner":false`), create(mac2, ours, ""))
	if want := "422 422 200 200"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	put := func(body string) int { return ask(w, http.MethodPut, "/nics/90b8d0000001", body, nil).Code }
	if got := fmt.Sprint(put(`{"state":"running"}`), put(`{"state":"running","check_owner":false}`)); got != "422 200" {
		t.Error(got)
	}
	both := ask(w, http.MethodPut, "/networks/"+id, `{"owner_uuids":["`+ours+`","`+theirs+`"]}`, nil)
	if both.Code != http.StatusOK || both.Header().Get("Etag") == made.Header().Get("Etag") || put(`{"state":"stopped"}`) != http.StatusOK {
		t.Errorf("%d %v %s", both.Code, both.Header(), both.Body)
	}
	if bad := ask(w, http.MethodPut, "/networks/"+id, `{"owner_uuids":["x"]}`, nil); bad.Code != http.StatusUnprocessableEntity {
		t.Errorf("%d %s", bad.Code, bad.Body)
	}
}
