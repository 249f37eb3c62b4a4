package contract

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/sim"
)

func exchange(method, uri, version, body string, status int, reply string) sim.Exchange {
	return sim.Exchange{
		Method: method, URI: uri, Header: http.Header{"Api-Version": {version}}, Body: []byte(body), Status: status,
		ReplyHeader: http.Header{"Content-Type": {"application/json"}}, Reply: []byte(reply),
	}
}

// What is wrong is found: else that nothing was, would say nothing.
func TestWhatIsWrongIsFound(t *testing.T) {
	c, err := Open()
	if err != nil {
		t.Skip(err)
	}
	const gone = `{"request_id":"r","error_code":"NoInstance","message":"Server not initialized (no instance)"}`
	for name, e := range map[string]struct {
		exchange sim.Exchange
		wrong    string
	}{
		"a state":               {exchange("PUT", "/instance/state", "5.0.0", `"Run"`, 204, ""), ""},
		"no such state":         {exchange("PUT", "/instance/state", "5.0.0", `"run"`, 204, ""), "request"},
		"no instance":           {exchange("GET", "/instance", "3.0.0", "", 424, gone), ""},
		"an error without id":   {exchange("GET", "/instance", "5.0.0", "", 424, `{"message":"x"}`), "reply"},
		"a generation":          {exchange("GET", "/instance/state-monitor", "1.0.0", `{"gen":3}`, 200, `{"gen":3,"state":"Running","migration":{"migration_in":null,"migration_out":null}}`), ""},
		"an unknown state":      {exchange("GET", "/instance/state-monitor", "5.0.0", `{"gen":3}`, 200, `{"gen":3,"state":"running","migration":{"migration_in":null,"migration_out":null}}`), "reply"},
		"text for a generation": {exchange("GET", "/instance/state-monitor", "5.0.0", `{"gen":"3"}`, 400, gone), "request"},
		"history":               {exchange("GET", "/instance/serial/history?from_start=0", "5.0.0", "", 200, `{"data":[98,111],"last_byte_offset":2}`), ""},
		"history in base64":     {exchange("GET", "/instance/serial/history?from_start=0", "5.0.0", "", 200, `{"data":"Ym8=","last_byte_offset":2}`), "reply"},
		"a bad offset":          {exchange("GET", "/instance/serial/history?from_start=x", "5.0.0", "", 400, gone), "request"},
		"nmi":                   {exchange("POST", "/instance/nmi", "5.0.0", "", 200, "null"), ""},
		"a console":             {exchange("GET", "/instance/serial?from_start=5", "1.0.0", "", 101, ""), ""},
		"a screen":              {exchange("GET", "/instance/vnc", "1.0.0", "", 101, ""), ""},
		"no such path":          {exchange("GET", "/instances", "5.0.0", "", 200, "null"), "no such request"},
		"no version":            {exchange("GET", "/instance", "", "", 400, gone), ""},
		"no version, answered":  {exchange("GET", "/instance", "", "", 200, "null"), "not refused"},
		"too new a version":     {exchange("GET", "/instance", "7.0.0", "", 200, "null"), "not refused"},
		"version 6, refused":    {exchange("GET", "/instance", "6.0.0", "", 400, gone), ""},
		"broken off":            {exchange("GET", "/instance", "5.0.0", "", 0, ""), ""},
	} {
		err := c.Check(e.exchange)
		if (err != nil) != (e.wrong != "") || err != nil && !strings.Contains(err.Error(), e.wrong) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatIsRecordedCanBeChecked(t *testing.T) {
	c, err := Open()
	if err != nil {
		t.Skip(err)
	}
	name := filepath.Join(t.TempDir(), "exchanges")
	record := sim.Record(name)
	record(exchange("PUT", "/instance/state", "5.0.0", `"Run"`, 204, ""))
	if n, err := c.File(name); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	record(exchange("PUT", "/instance/state", "5.0.0", `"Halt"`, 204, ""))
	if n, err := c.File(name); n != 2 || err == nil || !strings.Contains(err.Error(), "Halt") {
		t.Errorf("%d, %v", n, err)
	}
}
