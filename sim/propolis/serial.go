package propolis

import (
	"crypto/sha1"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/sim/world"
)

// The guest of a simulated machine prints nothing: consoles are silent, and
// history is empty.

// live runs fn if the machine is live.
func (c *call) live(fn func(*world.Tx, *world.Process) (answer, error)) (a answer, err error) {
	err = c.view(func(tx *world.Tx, p *world.Process) (err error) {
		if !active(tx, p) {
			return noInstance()
		}
		a, err = fn(tx, p)
		return err
	})
	return a, err
}

// serialHistory takes exactly one of from_start and most_recent.
func (c *call) serialHistory() (answer, error) {
	query := c.r.URL.Query()
	for name, values := range query {
		if _, err := strconv.ParseUint(values[0], 10, 64); err != nil {
			return answer{}, badRequest("unable to parse query string: %s: invalid digit found in string", name)
		}
	}
	return c.live(func(*world.Tx, *world.Process) (answer, error) {
		if query.Has("from_start") == query.Has("most_recent") {
			return answer{}, badRequest("Exactly one of 'from_start' or 'most_recent' must be specified.")
		}
		return answer{http.StatusOK, map[string]any{"data": []int{}, "last_byte_offset": 0}}, nil
	})
}

// nmi is injected into the guest; what comes of it is not told.
func (c *call) nmi() (answer, error) {
	return c.live(func(*world.Tx, *world.Process) (answer, error) {
		return answer{http.StatusOK, null{}}, nil
	})
}

// null is the JSON value.
type null struct{}

// MarshalJSON is "null".
func (null) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// disk answers what asks a Crucible backend. No machine here has one.
func (c *call) disk() (answer, error) {
	if id, ok := c.params["snapshot_id"]; ok {
		if _, err := uuid.Parse(id); err != nil {
			return answer{}, badRequest("bad parameter in URL path: UUID parsing failed: %s", id)
		}
	}
	return c.live(func(*world.Tx, *world.Process) (answer, error) {
		return answer{}, &fault{status: http.StatusNotFound, message: "Not Found",
			code: "crucible backend " + canonicalKey(c.params["id"]) + " not found"} // Guess: the sentence.
	})
}

// serial upgrades first and looks at the machine afterwards: without one the
// connection is dropped, not refused.
func (c *call) serial() (answer, error)       { return c.websocket() }
func (c *call) vnc() (answer, error)          { return c.websocket() }
func (c *call) migrateStart() (answer, error) { return c.migrateUpgrade() }

func (c *call) migrateUpgrade() (answer, error) {
	if _, err := uuid.Parse(c.params["migration_id"]); err != nil {
		return answer{}, badRequest("bad parameter in URL path: UUID parsing failed: %s", c.params["migration_id"])
	}
	return c.websocket()
}

// websocket checks the opening handshake (dropshot/src/websocket.rs).
func (c *call) websocket() (answer, error) {
	h := c.r.Header
	has := func(name, word string) bool {
		for _, w := range strings.Split(h.Get(name), ",") {
			if strings.EqualFold(strings.TrimSpace(w), word) {
				return true
			}
		}
		return false
	}
	switch {
	case !has("Connection", "upgrade"):
		return answer{}, badRequest("expected connection upgrade")
	case !has("Upgrade", "websocket"):
		return answer{}, badRequest("unexpected protocol for upgrade")
	case h.Get("Sec-WebSocket-Version") != "13":
		return answer{}, badRequest("missing or invalid websocket version")
	case h.Get("Sec-WebSocket-Key") == "":
		return answer{}, badRequest("missing websocket key")
	}
	return answer{status: http.StatusSwitchingProtocols}, nil
}

// upgrade takes the connection over and holds it as long as the machine lives;
// at its end a console is told that the VM stopped (close code 1001).
func (c *call) upgrade(w http.ResponseWriter, _ answer) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	sum := sha1.Sum([]byte(c.r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	reply := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Accept: " + base64.StdEncoding.EncodeToString(sum[:]) + "\r\nx-request-id: " + c.id + "\r\n\r\n"
	if _, err := conn.Write([]byte(reply)); err != nil || !strings.HasSuffix(c.r.URL.Path, "/serial") {
		return
	}
	lived := false
	err = c.world.Wait(c.r.Context(), func(tx *world.Tx) bool {
		p := find(tx, c.pid)
		alive := p != nil && active(tx, p)
		lived = lived || alive
		return !alive
	})
	if err == nil && lived {
		const reason = "VM stopped"
		_, _ = conn.Write(append([]byte{0x88, byte(2 + len(reason)), 1001 >> 8, 1001 & 0xff}, reason...)) // it is being closed anyway
	}
}
