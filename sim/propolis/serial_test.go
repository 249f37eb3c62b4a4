package propolis

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/sledctl/sledctl/sim/world"
)

// listen lets the server answer on a real socket.
func (r *rig) listen() string {
	s := httptest.NewServer(Handler(r.world, pid))
	r.t.Cleanup(s.Close)
	return s.URL
}

// client is a websocket to the server.
type client struct {
	t      *testing.T
	conn   *websocket.Conn
	unread bytes.Buffer // how output is cut into messages depends on who is slow
}

func (r *rig) open(url, path string) *client {
	r.t.Helper()
	conn, _, err := websocket.Dial(r.t.Context(), url+path, &websocket.DialOptions{HTTPHeader: http.Header{"Api-Version": {"5.0.0"}}})
	if err != nil {
		r.t.Fatal(err)
	}
	conn.SetReadLimit(maxMessage)
	r.t.Cleanup(func() { _ = conn.CloseNow() })
	return &client{t: r.t, conn: conn}
}

// reads reads n bytes of output.
func (c *client) reads(n int) string {
	c.t.Helper()
	for c.unread.Len() < n {
		kind, data, err := c.conn.Read(c.t.Context())
		if err != nil || kind != websocket.MessageBinary {
			c.t.Fatalf("after %q: %v %v", c.unread.String(), kind, err)
		}
		c.unread.Write(data)
	}
	return string(c.unread.Next(n))
}

// readsUntil reads output up to the end of a text.
func (c *client) readsUntil(text string) {
	c.t.Helper()
	for said := ""; !strings.HasSuffix(said, text); {
		said += c.reads(1)
	}
}

func (c *client) types(text string) {
	c.t.Helper()
	if err := c.conn.Write(c.t.Context(), websocket.MessageBinary, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

// ends wants the end of the connection: a close code, or -1 for none.
func (c *client) ends(code websocket.StatusCode, reason string) {
	c.t.Helper()
	if c.unread.Len() > 0 {
		c.t.Fatalf("it goes on: %q", c.unread.String())
	}
	_, data, err := c.conn.Read(c.t.Context())
	if err == nil {
		c.t.Fatalf("it goes on: %q", data)
	}
	if got := websocket.CloseStatus(err); got != code || !strings.Contains(err.Error(), reason) {
		c.t.Errorf("%v, want code %d %q", err, code, reason)
	}
}

// history is a page, and the offset at its end.
func (r *rig) history(query string) (text string, end int) {
	r.t.Helper()
	got := r.v5("GET", "/instance/serial/history?"+query, "")
	if got.status != 200 {
		r.t.Fatalf("%s: %d %s", query, got.status, got.text)
	}
	for _, b := range got.body["data"].([]any) {
		text += string(rune(b.(float64)))
	}
	return text, int(got.body["last_byte_offset"].(float64))
}

func (r *rig) run() {
	r.t.Helper()
	r.ensure()
	if got := r.v5("PUT", "/instance/state", `"Run"`); got.status != 204 {
		r.t.Fatalf("%d %s", got.status, got.text)
	}
}

func TestHistory(t *testing.T) {
	r := newRig(t, "none")
	if got := r.v5("GET", "/instance/serial/history?from_start=0", ""); got.status != 424 {
		t.Errorf("without a machine: %d", got.status)
	}
	r.run()
	all, end := r.history("from_start=0")
	if end != len(all) || !strings.HasPrefix(all, "BdsDxe: ") || !strings.HasSuffix(all, "\r\nweb-01 login: ") {
		t.Errorf("%d %q", end, all)
	}
	for query, want := range map[string]struct {
		text string
		end  int
	}{
		"from_start=3&max_bytes=5":     {all[3:8], 8},
		"from_start=3&max_bytes=0":     {"", 3},
		"most_recent=7":                {all[end-7:], end},
		"most_recent=7&max_bytes=3":    {all[end-7 : end-4], end - 4},
		"most_recent=9999999":          {all, end},
		"from_start=9999999":           {"", end},
		fmt.Sprint("from_start=", end): {"", end},
	} {
		if text, at := r.history(query); text != want.text || at != want.end {
			t.Errorf("%s: %q %d, want %q %d", query, text, at, want.text, want.end)
		}
	}
	for query, want := range map[string]string{
		"":                           "Exactly one of 'from_start' or 'most_recent' must be specified.",
		"from_start=1&most_recent=1": "Exactly one of 'from_start' or 'most_recent' must be specified.",
	} {
		r.wants(r.v5("GET", "/instance/serial/history?"+query, ""), 400, "", want)
	}
	if got := r.v5("GET", "/instance/serial/history?from_start=x", ""); got.status != 400 || !strings.HasPrefix(got.body["message"].(string), "unable to parse query string: ") {
		t.Errorf("%d %s", got.status, got.text)
	}
}

// What is kept is the beginning and the end (history_buffer.rs).
func TestHistoryThatIsNotKept(t *testing.T) {
	r := newRig(t, "none")
	r.run()
	r.change(func(tx *world.Tx) {
		vm := find(tx, pid).VM
		vm.Console = world.Console{Kept: 10}
		for i := range 5 {
			vm.Console.Write(tx, tx.Now, []byte(strings.Repeat(fmt.Sprint(i), 6)))
		}
	})
	for query, want := range map[string]struct {
		text string
		end  int
	}{
		"from_start=0":  {"0000001111", 10},
		"from_start=8":  {"11", 10},
		"from_start=20": {"3333444444", 30},
		"from_start=28": {"44", 30},
		"most_recent=3": {"444", 30},
	} {
		if text, at := r.history(query); text != want.text || at != want.end {
			t.Errorf("%s: %q %d, want %q %d", query, text, at, want.text, want.end)
		}
	}
	r.wants(r.v5("GET", "/instance/serial/history?from_start=12", ""), 400, "",
		"Requested byte offset 12 (-18) is no longer cached: Only have first 10 + most recent 10 saved out of a total 30 of output")
	c := r.open(r.listen(), "/instance/serial?from_start=0")
	if got := c.reads(10); got != "0000001111" {
		t.Errorf("%q", got)
	}
	c.ends(-1, "")
}

func TestConsole(t *testing.T) {
	r := newRig(t, "none")
	url := r.listen()
	r.open(url, "/instance/serial").ends(-1, "") // 101, and then nothing: there is no machine
	r.run()
	all, _ := r.history("from_start=0")

	replayed := r.open(url, "/instance/serial?from_start=0")
	if got := replayed.reads(len(all)); got != all {
		t.Errorf("%q, want %q", got, all)
	}
	live := r.open(url, "/instance/serial?from_start=0&most_recent=5") // both are none
	recent := r.open(url, "/instance/serial?most_recent=7")
	if got := recent.reads(7); got != all[len(all)-7:] {
		t.Errorf("%q", got)
	}
	if err := live.conn.Write(t.Context(), websocket.MessageText, []byte("not for the guest")); err != nil {
		t.Fatal(err)
	}
	live.types("r") // what it types itself it sees, however late it was served
	if got := live.reads(1); got != "r" {
		t.Errorf("%q", got)
	}
	recent.types("oot\r") // all see what anybody types
	want := "oot\r\nweb-01 login: "
	for name, c := range map[string]*client{"replayed": replayed, "recent": recent} {
		if got := c.reads(1); got != "r" {
			t.Errorf("%s: %q", name, got)
		}
	}
	for name, c := range map[string]*client{"replayed": replayed, "recent": recent, "live": live} {
		if got := c.reads(len(want)); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := r.v5("POST", "/instance/nmi", ""); got.status != 200 || got.text != "null" {
		t.Errorf("%d %s", got.status, got.text)
	}
	recent.readsUntil("NMI received")
	live.types("poweroff\r")
	const bye = "poweroff\r\nThe system is going down for power-off.\r\n"
	for _, c := range []*client{replayed, live, recent} {
		c.readsUntil(bye)
		c.ends(websocket.StatusGoingAway, "VM stopped")
	}
	if got := r.state(); got != "6 Destroyed" {
		t.Error(got)
	}
}

func TestAConsoleThatMovesAway(t *testing.T) {
	r := newRig(t, "none")
	r.run()
	c := r.open(r.listen(), "/instance/serial?most_recent=1")
	c.reads(1) // from here on it is served: a client that comes after the move is told nothing
	r.change(func(tx *world.Tx) {
		vm := find(tx, pid).VM
		vm.Moved = &world.Moved{Destination: "[fd00::5]:12400", From: 77}
		vm.Timeline = append(vm.Timeline, world.Timepoint{State: "Destroyed", Generation: 9, From: tx.Now})
	})
	kind, data, err := c.conn.Read(t.Context())
	if err != nil || kind != websocket.MessageText || string(data) != `{"Migrating":{"destination":"[fd00::5]:12400","from_start":77}}` {
		t.Errorf("%v %s %v", kind, data, err)
	}
	c.ends(-1, "")
}

func TestFaultsOfAServer(t *testing.T) {
	r := newRig(t, "none")
	url := r.listen()
	r.run()
	arm := func(name, match, text string) {
		r.change(func(tx *world.Tx) { tx.Arm(world.Fault{Name: name, Match: match, Text: text, Times: 1}) })
	}
	c := r.open(url, "/instance/serial")
	arm(world.FaultDrop, "propolis GET instance serial", "")
	c.ends(-1, "")
	arm(world.FaultDrop, "propolis instance spec", "")
	if got := r.v5("GET", "/instance/spec", ""); got.status != 0 {
		t.Errorf("%d", got.status)
	}
	arm(world.FaultFail, "propolis POST", "no such vCPU")
	r.wants(r.v5("POST", "/instance/nmi", ""), 500, "Internal", "Internal Server Error")
	arm(world.FaultCrash, "propolis global GET", "")
	if got := r.v5("GET", "/instance", ""); got.status != 0 {
		t.Errorf("%d", got.status)
	}
	if got := r.v5("GET", "/instance", ""); got.status != 0 {
		t.Errorf("a dead server answers %d", got.status)
	}
}

// TestWhatIsNotSimulatedIsRefused: a real server can do it, no driver uses it.
func TestWhatIsNotSimulatedIsRefused(t *testing.T) {
	r := newRig(t, "none") // a screen needs no machine
	url := r.listen()
	c := r.open(url, "/instance/vnc")
	wire := websocket.NetConn(context.Background(), c.conn, websocket.MessageBinary)
	if _, err := wire.Write([]byte(rfbVersion)); err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(wire); !strings.HasPrefix(string(said), rfbVersion+"\x00") || !strings.HasSuffix(string(said), rfbRefusal) {
		t.Errorf("%q, %v", said, err)
	}
	r.wants(r.v5("GET", "/instance/migrate/66666666-6666-4666-8666-666666666666/start", ""), 404, "", "Not Found")
	r.run()
	for typed, want := range map[string]string{
		"reboot\r": "not simulated: a guest that resets itself", "\x03": "not simulated: this key", "\x7f": "not simulated: this key",
	} {
		c := r.open(url, "/instance/serial")
		c.types(typed)
		c.readsUntil(want)
	}
	if got := r.state(); got != "3 Running" {
		t.Error(got)
	}
}
