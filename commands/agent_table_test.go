package commands_test

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/test/sledtest"
)

// What a request gets, by endpoint, version and cause: status, and code or words
// (the table of omicron's sled agent, sled-agent/src/http_entrypoints.rs).
func TestWhatTheAgentAnswers(t *testing.T) {
	s := sledtest.New(t, sledtest.Small(), sledtest.Flat)
	s.Run("bootstrap")
	a := s.StartAgent(t, s.Host())
	idle, gone, over := uuid.NewString(), uuid.NewString(), uuid.NewString()
	for n, vm := range []string{gone, idle} {
		if status, answer := a.Send("PUT", "/vmms/"+vm, sledtest.LatestAPI, sledtest.VMBody(t, 48, []string{over, uuid.NewString()}[n], n+1).Text(t)); status != 200 {
			t.Fatalf("register: %d %s", status, answer)
		}
		if vm == gone {
			a.Want(gone, "running")
			a.Until(0, "vm-"+over+" running")
			s.Run("instance stop --all")
			a.Until(0, "vm-"+over+" destroyed") // and still to be read
		}
	}
	const (
		ephemeral = `{"type":"ephemeral","value":"203.0.113.9"}`
		join      = `{"join":{"group_ip":"224.0.0.1","sources":[]}}`
		leave     = `{"leave":{"group_ip":"224.0.0.1","sources":[]}}`
		subnet    = `{"kind":"vpc","subnet":"10.1.0.0/16"}`
		running   = `{"state":{"type":"running"}}`
		snapshot  = `{"snapshot_id":"7b1c2f3e-0d4a-4a55-9b0e-5f3d2c1b0a99"}`
		notThere  = `"error_code":"NO_SUCH_INSTANCE","message":"Not Found"`
		isOver    = `"error_code":"NO_SUCH_INSTANCE","message":"Gone"`
		internal  = `"error_code":"Internal","message":"Internal Server Error"`
		notFound  = `"message":"Not Found"`
		noOPTE    = `that it was registered with: none is attached or detached later`
	)
	unknown := uuid.NewString()
	disk := "/disks/" + uuid.NewString() + "/snapshot"
	big := `{"state":` + strings.Repeat(" ", 1<<20) + `}`
	for _, c := range []struct {
		method, path, version, body string
		status                      int
		says                        string
	}{
		{"GET", "/healthz", "", "", 200, `"status":"ok"`},
		{"GET", "/vmms", sledtest.LatestAPI, "", 200, `"items":[`},
		{"GET", "/vmms", "1.0.0", "", 200, `"items":[`},
		{"GET", "/vmms", "", "", 400, `missing expected header`},
		{"GET", "/vmms", "48", "", 400, `want three numbers`},
		{"GET", "/vmms", "49.0.0", "", 400, `server does not support this API version`},
		{"GET", "/vmms", "0.9.0", "", 404, notFound},
		{"GET", "/vmms?limit=0", sledtest.LatestAPI, "", 400, `limit \"0\": want a number from 1 to 10000`},
		{"GET", "/vmms?sort=name", sledtest.LatestAPI, "", 400, `query \"sort\"`},
		{"GET", "/vmms?page_token=x", sledtest.LatestAPI, "", 400, `page_token`},
		{"GET", "/vm", sledtest.LatestAPI, "", 404, notFound},
		{"GET", "/vmms/x/y/z", sledtest.LatestAPI, "", 404, notFound},
		{"GET", "/vmms/" + idle, sledtest.LatestAPI, "", 405, `"message":"Method Not Allowed"`},
		{"GET", "/events?after=x", "", "", 400, `want a generation`},
		{"GET", "/vmms/" + unknown + "/events", "", "", 404, notThere},

		{"GET", "/vmms/" + idle + "/state", "1.0.0", "", 200, `"state":"starting"`},
		{"GET", "/vmms/" + unknown + "/state", sledtest.LatestAPI, "", 404, notThere},
		{"GET", "/vmms/" + unknown + "/state", "", "", 400, `missing expected header`},
		{"GET", "/vmms/web1/state", sledtest.LatestAPI, "", 400, `UUID parsing failed: \"web1\"`},
		{"GET", "/vmms/..%2f..%2fetc/state", sledtest.LatestAPI, "", 400, `UUID parsing failed`},
		{"GET", "/vmms/%7B" + unknown + "%7D/state", sledtest.LatestAPI, "", 400, `UUID parsing failed`},
		{"POST", "/vmms/" + idle + "/state", sledtest.LatestAPI, "", 405, `Method Not Allowed`},

		{"PUT", "/vmms/" + unknown + "/state", sledtest.LatestAPI, running, 404, notThere},
		{"PUT", "/vmms/" + gone + "/state", sledtest.LatestAPI, running, 410, isOver},
		{"PUT", "/vmms/" + idle + "/state", sledtest.LatestAPI, `{"state":{"type":"paused"}}`, 400, `want running, stopped, reboot, migration_target`},
		{"PUT", "/vmms/" + idle + "/state", sledtest.LatestAPI, `{"state":{"type":"migration_target"}}`, 400, `src_propolis_addr`},
		{"PUT", "/vmms/" + idle + "/state", sledtest.LatestAPI, `{"state":{"type":"migration_target","value":{"src_propolis_addr":"[::1]:1"}}}`, 400, `not registered to arrive by a migration`},
		{"PUT", "/vmms/" + idle + "/state", sledtest.LatestAPI, `{"state":{"type":"migration_target","value":{"src_propolis_addr":"::1"}}}`, 400, `want ADDRESS:PORT`},
		{"PUT", "/vmms/" + idle + "/state", sledtest.LatestAPI, `{}`, 400, "missing field `state`"},
		{"PUT", "/vmms/" + idle + "/state", sledtest.LatestAPI, `{`, 400, `unable to parse JSON body`},
		{"PUT", "/vmms/" + idle + "/state", sledtest.LatestAPI, big, 400, `request body exceeded maximum size of 1048576 bytes`},
		{"PUT", "/vmms/" + idle + "/state", sledtest.LatestAPI, `{"state":{"type":"reboot"}}`, 500, internal},
		{"PUT", "/vmms/x/state", sledtest.LatestAPI, running, 400, `UUID parsing failed`},

		{"PUT", "/vmms/x", sledtest.LatestAPI, `{}`, 400, `UUID parsing failed`},
		{"PUT", "/vmms/" + unknown, sledtest.LatestAPI, `{}`, 400, "missing field `local_config`"},
		{"PUT", "/vmms/" + unknown, sledtest.LatestAPI, big, 400, `request body exceeded`},
		{"PUT", "/vmms/" + unknown, "", `{}`, 400, `missing expected header`},
		{"DELETE", "/vmms/x", sledtest.LatestAPI, "", 400, `UUID parsing failed`},
		{"DELETE", "/vmms/" + unknown, sledtest.LatestAPI, "", 200, `{"updated_runtime":null}`},

		{"PUT", "/vmms/" + idle + "/external-ip", "1.0.0", ephemeral, 400, noOPTE},
		{"PUT", "/vmms/" + unknown + "/external-ip", sledtest.LatestAPI, ephemeral, 500, internal},
		{"PUT", "/vmms/" + idle + "/external-ip", sledtest.LatestAPI, `{"type":"other","value":"203.0.113.9"}`, 400, `want ephemeral or floating`},
		{"DELETE", "/vmms/" + idle + "/external-ip", "1.0.0", ephemeral, 204, ""},
		{"DELETE", "/vmms/" + unknown + "/external-ip", sledtest.LatestAPI, ephemeral, 500, internal},

		{"PUT", "/vmms/" + idle + "/multicast-group", "6.9.9", join, 404, notFound},
		{"PUT", "/vmms/" + idle + "/multicast-group", "7.0.0", join, 400, noOPTE},
		{"PUT", "/vmms/" + idle + "/multicast-group", sledtest.LatestAPI, leave, 204, ""},
		{"DELETE", "/vmms/" + idle + "/multicast-group", sledtest.LatestAPI, leave, 204, ""},
		{"DELETE", "/vmms/" + idle + "/multicast-group", sledtest.LatestAPI, `{}`, 400, `want either join or leave`},
		{"DELETE", "/vmms/" + unknown + "/multicast-group", sledtest.LatestAPI, leave, 500, internal},

		{"PUT", "/vmms/" + idle + "/attached-subnets", "17.0.0", `{"subnets":[]}`, 404, notFound},
		{"PUT", "/vmms/" + idle + "/attached-subnets", "18.0.0", `{"subnets":[]}`, 204, ""},
		{"PUT", "/vmms/" + idle + "/attached-subnets", sledtest.LatestAPI, `{"subnets":[` + subnet + `]}`, 400, noOPTE},
		{"POST", "/vmms/" + idle + "/attached-subnets", sledtest.LatestAPI, subnet, 400, noOPTE},
		{"POST", "/vmms/" + idle + "/attached-subnets", sledtest.LatestAPI, `{"kind":"other","subnet":"10.1.0.0/16"}`, 400, `want vpc or external`},
		{"DELETE", "/vmms/" + idle + "/attached-subnets", sledtest.LatestAPI, "", 204, ""},
		{"DELETE", "/vmms/" + unknown + "/attached-subnets", sledtest.LatestAPI, "", 500, internal},
		{"DELETE", "/vmms/" + idle + "/attached-subnets/10.1.0.0%2F16", sledtest.LatestAPI, "", 204, ""},
		{"DELETE", "/vmms/" + idle + "/attached-subnets/10.1.0.0", sledtest.LatestAPI, "", 400, `is not a subnet`},
		{"DELETE", "/vmms/" + idle + "/attached-subnets/10.1.0.0%2F16", "17.0.0", "", 404, notFound},

		{"POST", "/vmms/" + idle + disk, "1.0.0", snapshot, 500, internal},
		{"POST", "/vmms/" + unknown + disk, sledtest.LatestAPI, snapshot, 500, internal},
		{"POST", "/vmms/" + idle + "/disks/x/snapshot", sledtest.LatestAPI, snapshot, 400, `UUID parsing failed`},
		{"POST", "/vmms/" + idle + disk, sledtest.LatestAPI, `{"snapshot_id":"x"}`, 400, `unable to parse JSON body`},
	} {
		status, body := a.Send(c.method, c.path, c.version, c.body)
		if status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s %s in version %q with %.60q: %d %s, want %d and %q", c.method, c.path, c.version, c.body, status, body, c.status, c.says)
		}
	}
	if state, _ := a.State(gone); state != "destroyed" {
		t.Errorf("the one that is over is %s", state)
	}
}

// Nobody but its owner may use the socket, and nobody comes from elsewhere
// without a certificate.
func TestWhoMayComeToTheAgent(t *testing.T) {
	s := sledtest.New(t, sledtest.Small(), "")
	s.Run("bootstrap")
	a := s.StartAgent(t, s.Host())
	if info, err := os.Stat(a.Socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	a.Stop()
	if _, err := os.Stat(a.Socket); !os.IsNotExist(err) {
		t.Errorf("the socket stays: %v", err)
	}
	for line, want := range map[string]int{
		"agent --listen tcp:0.0.0.0:0":                8,
		"agent --listen tcp:[::]:0":                   8,
		"agent --listen tcp:192.0.2.1:0":              8,
		"agent --listen tcp:127.0.0.1:0 --tls-cert x": 2,
		"agent --listen unix:agent.sock":              2,
		"agent --listen tcp:localhost:1":              2,
	} {
		if answer := s.Try(line); answer.Exit != want {
			t.Errorf("%s: exit %d, want %d: %s", line, answer.Exit, want, answer.Errs)
		}
	}
}

// Clients that never end their requests do not delay the answers to others.
func TestManyWhoSpeakHalf(t *testing.T) {
	s := sledtest.New(t, sledtest.Small(), "")
	s.Run("bootstrap")
	a := s.StartAgent(t, s.Host())
	for range 64 { // none of them ever ends its request
		conn, err := net.Dial("unix", a.Socket)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "PUT /vmms/%s/state HTTP/1.1\r\nHost: sled\r\napi-version: %s\r\nContent-Length: 100\r\n\r\n{", uuid.NewString(), sledtest.LatestAPI)
	}
	if status, _ := a.Ask("GET", "/vmms", sledtest.LatestAPI); status != 200 {
		t.Errorf("others are not answered: %d", status)
	}
}
