package propolis

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/sim/world"
)

// at puts the machine into a phase of the table in
// bin/propolis-server/src/lib/vm/request_queue.rs: what was accepted so far,
// the last of it still in the future where the phase says so.
func (r *rig) at(states ...string) {
	r.t.Helper()
	r.change(func(tx *world.Tx) {
		vm := &world.VM{Properties: []byte(`{}`), Spec: []byte(`{"components":{}}`)}
		for i, state := range states {
			from := tx.Now.Add(-time.Minute)
			if name, future := strings.CutPrefix(state, "soon "); future {
				state, from = name, tx.Now.Add(time.Hour)
			}
			vm.Timeline = append(vm.Timeline, world.Timepoint{State: state, Generation: uint64(i + 1), From: from})
		}
		tx.State.Processes[0].VM = vm
	})
}

func TestRequestsAgainstPhases(t *testing.T) {
	const ok = "204"
	denied := func(why string) string { return "403 instance state change not allowed: " + why }
	const gone = "424 NoInstance"
	for _, c := range []struct {
		phase             []string
		run, stop, reboot string
	}{
		{[]string{"Creating"}, ok, ok, denied("Operation requires an active instance")},
		{[]string{"Creating", "Starting", "soon Running"}, ok, ok, denied("Instance is currently starting")},
		{[]string{"Creating", "Starting", "Running"}, ok, ok, ok},
		{[]string{"Creating", "Starting", "Running", "Rebooting", "soon Running"}, ok, ok, ok},
		{[]string{"Creating", "Starting", "Running", "Stopping", "soon Stopped", "soon Destroyed"},
			denied("Instance is preparing to stop"), ok, denied("Instance is preparing to stop")},
		{[]string{"Creating", "Starting", "Running", "Stopping", "Stopped", "soon Destroyed"},
			denied("Instance has already halted"), ok, denied("Instance has already halted")},
		{[]string{"Creating", "Starting", "Running", "Stopping", "Stopped", "Destroyed"}, gone, gone, gone},
		{[]string{"Creating", "Starting", "Failed"}, gone, gone, gone},
		{[]string{"Creating", "Failed"}, gone, gone, gone},
	} {
		for request, want := range map[string]string{"Run": c.run, "Stop": c.stop, "Reboot": c.reboot} {
			r := newRig(t, "none")
			r.at(c.phase...)
			got := r.v5("PUT", "/instance/state", `"`+request+`"`)
			text := fmt.Sprint(got.status)
			if code, has := got.body["error_code"]; has {
				text += " " + fmt.Sprint(code)
			}
			if text != want {
				t.Errorf("%s at %v: %s, want %s", request, c.phase, text, want)
			}
			if got.status == 403 && got.body["message"] != "Forbidden" {
				t.Errorf("%s at %v: message %v", request, c.phase, got.body["message"])
			}
		}
	}
}

// timeline is what will have been published in the end.
func (r *rig) timeline() (out []string) {
	r.change(func(tx *world.Tx) {
		for _, point := range tx.State.Processes[0].VM.Timeline {
			out = append(out, fmt.Sprintf("%d %s", point.Generation, point.State))
		}
	})
	return out
}

func TestPublishedSequences(t *testing.T) {
	for name, c := range map[string]struct {
		requests string
		want     []string
	}{
		"run and stop":    {"Run Stop", []string{"1 Creating", "2 Starting", "3 Running", "4 Stopping", "5 Stopped", "6 Destroyed"}},
		"reboot":          {"Run Reboot", []string{"1 Creating", "2 Starting", "3 Running", "4 Rebooting", "5 Running"}},
		"stop before run": {"Stop", []string{"1 Creating", "2 Stopping", "3 Stopped", "4 Destroyed"}},
		"run again":       {"Run Run", []string{"1 Creating", "2 Starting", "3 Running"}},
	} {
		r := newRig(t, "none")
		r.ensure()
		for _, request := range strings.Fields(c.requests) {
			if got := r.v5("PUT", "/instance/state", `"`+request+`"`); got.status != 204 {
				t.Fatalf("%s: %s: %d %s", name, request, got.status, got.text)
			}
		}
		if diff := cmp.Diff(c.want, r.timeline()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	r := newRig(t, "none")
	r.at("Creating", "Starting", "soon Running")
	r.v5("PUT", "/instance/state", `"Stop"`)
	if diff := cmp.Diff([]string{"1 Creating", "2 Starting", "3 Stopped", "4 Destroyed"}, r.timeline()); diff != "" {
		t.Errorf("stop while starting: %s", diff)
	}
	r.at("Creating", "Starting", "Running", "Rebooting", "soon Running")
	r.v5("PUT", "/instance/state", `"Stop"`)
	want := []string{"1 Creating", "2 Starting", "3 Running", "4 Rebooting", "5 Running", "6 Stopping", "7 Stopped", "8 Destroyed"}
	if diff := cmp.Diff(want, r.timeline()); diff != "" {
		t.Errorf("stop while rebooting: %s", diff)
	}
	r = newRig(t, "none")
	r.ensure()
	r.change(func(tx *world.Tx) { tx.Arm(world.Fault{Name: world.FaultFail, Match: "propolis run", Times: 1}) })
	r.v5("PUT", "/instance/state", `"Run"`)
	if diff := cmp.Diff([]string{"1 Creating", "2 Starting", "3 Failed"}, r.timeline()); diff != "" {
		t.Errorf("start fails: %s", diff)
	}
}

func TestMonitorAnswersAtOnceWithTheCurrentState(t *testing.T) {
	r := newRig(t, "none")
	r.at("Creating", "Starting", "Running")
	for _, gen := range []string{"0", "1", "3"} {
		got := r.v5("GET", "/instance/state-monitor", `{"gen":`+gen+`}`)
		if want := `{"gen":3,"migration":{"migration_in":null,"migration_out":null},"state":"Running"}`; got.text != want {
			t.Errorf("gen %s: %s", gen, got.text)
		}
	}
	got := r.v5("GET", "/instance/state-monitor", "")
	if got.status != 400 {
		t.Errorf("without a body: %d %s", got.status, got.text)
	}
}

func TestMonitorWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "none")
		r.at("Creating", "Starting", "soon Running")
		began := time.Now()
		got := r.v5("GET", "/instance/state-monitor", `{"gen":3}`)
		if got.body["state"] != "Running" || time.Since(began) != time.Hour {
			t.Errorf("after %v: %s", time.Since(began), got.text)
		}
		go func() {
			time.Sleep(time.Second)
			r.v5("PUT", "/instance/state", `"Reboot"`)
		}()
		if got := r.v5("GET", "/instance/state-monitor", `{"gen":5}`); got.text != `{"gen":5,"migration":{"migration_in":null,"migration_out":null},"state":"Running"}` {
			t.Errorf("reboot: %s", got.text)
		}
		go func() {
			time.Sleep(time.Second)
			r.v5("PUT", "/instance/state", `"Stop"`)
		}()
		r.wants(r.v5("GET", "/instance/state-monitor", `{"gen":99}`), 410, "NoInstance", "No instance present; will never reach generation 99")
	})
}

// After a machine that could not be made the wait hangs until the next one.
func TestMonitorAfterAFailedCreation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "none")
		r.at("Creating", "Failed")
		go func() {
			time.Sleep(time.Minute)
			r.at("Creating", "Starting", "Running")
		}()
		began := time.Now()
		got := r.v5("GET", "/instance/state-monitor", `{"gen":3}`)
		if got.body["state"] != "Running" || time.Since(began) != time.Minute {
			t.Errorf("after %v: %s", time.Since(began), got.text)
		}
	})
}

func TestMonitorEndsWithItsProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "none")
		r.at("Creating")
		go func() {
			time.Sleep(time.Second)
			r.change(func(tx *world.Tx) { tx.State.Processes = nil })
		}()
		if got := r.v5("GET", "/instance/state-monitor", `{"gen":9}`); got.status != 0 {
			t.Errorf("%d %s", got.status, got.text)
		}
	})
}

func TestOtherRequestsOfALiveMachine(t *testing.T) {
	r := newRig(t, "none")
	r.ensure()
	if got := r.v5("POST", "/instance/nmi", ""); got.status != 200 || got.text != "null" {
		t.Errorf("nmi: %d %q", got.status, got.text)
	}
	if got := r.v5("GET", "/instance/serial/history?from_start=0", ""); got.text != `{"data":[],"last_byte_offset":0}` {
		t.Errorf("history: %s", got.text)
	}
	const both = "Exactly one of 'from_start' or 'most_recent' must be specified."
	r.wants(r.v5("GET", "/instance/serial/history", ""), 400, "", both)
	r.wants(r.v5("GET", "/instance/serial/history?from_start=0&most_recent=1", ""), 400, "", both)
	r.wants(r.v5("GET", "/instance/disk/back0/status", ""), 404, "No crucible backend for id back0", "Not Found")
	r.wants(r.v5("GET", "/instance/serial", ""), 400, "", "expected connection upgrade")
}

// The 101 precedes the handler: without a machine the connection is dropped.
func TestSerialUpgradesFirst(t *testing.T) {
	r := newRig(t, "none")
	server := &http.Server{Handler: Handler(r.world, pid)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(listener)
	defer server.Close()
	dial := func(query string) (*bufio.Reader, func()) {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "GET /instance/serial"+query+" HTTP/1.1\r\nHost: x\r\napi-version: 5.0.0\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
		in := bufio.NewReader(conn)
		response, err := http.ReadResponse(in, nil)
		if err != nil || response.StatusCode != 101 || response.Header.Get("Sec-WebSocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
			t.Fatalf("upgrade: %v %v", response, err)
		}
		return in, func() { conn.Close() }
	}
	in, closeIt := dial("")
	if _, err := in.ReadByte(); err == nil {
		t.Error("without a machine the connection stays")
	}
	closeIt()
	r.ensure()
	r.v5("PUT", "/instance/state", `"Run"`)
	in, closeIt = dial("?most_recent=1")
	defer closeIt()
	if _, err := io.ReadFull(in, make([]byte, 3)); err != nil { // what is replayed shows that the session has begun
		t.Fatal(err)
	}
	r.v5("PUT", "/instance/state", `"Stop"`)
	frame := make([]byte, 14)
	if _, err := io.ReadFull(in, frame); err != nil || string(frame[4:]) != "VM stopped" || frame[0] != 0x88 || int(frame[2])<<8+int(frame[3]) != 1001 {
		t.Errorf("close frame %q, %v", frame, err)
	}
}
