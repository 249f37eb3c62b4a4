package commands_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/test/sledtest"
)

// The agent answers with the object that status -o json prints, but for the moment of the
// look, and with the list of events -o json.
func TestTheAgentShowsTheSledAsCommandsDo(t *testing.T) {
	s := sledtest.New(t, sledtest.Small(), sledtest.TunedConfig)
	s.Run("bootstrap")
	s.Run("instance ensure web1")
	s.Run("instance ensure web2")
	s.Run("instance stop web2")
	a := s.StartAgent(t, s.Host())
	object := func(text string) (o map[string]any) {
		t.Helper()
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(text, err)
		}
		if sled, is := o["sled"].(map[string]any); is {
			delete(sled, "time")
		}
		return o
	}
	for path, line := range map[string]string{"/status": "status -o json", "/operations": "events -o json", "/operations?last=2": "events -o json --last 2"} {
		code, said := a.Ask("GET", path, "")
		if diff := cmp.Diff(object(s.Run(line)), object(said)); code != 200 || diff != "" {
			t.Errorf("%s: %d %s", path, code, diff)
		}
	}
	if vms, _ := object(s.Run("status -o json"))["vms"].([]any); len(vms) != 2 || vms[1].(map[string]any)["state"] != "stopped" {
		t.Errorf("VMs: %v", vms)
	}
	for _, last := range []string{"0", "-1", "1001", "many"} {
		if code, said := a.Ask("GET", "/operations?last="+last, ""); code != 400 || !strings.Contains(said, strconv.Itoa(1000)) {
			t.Errorf("last=%s: %d %s", last, code, said)
		}
	}
}
