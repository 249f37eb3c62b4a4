package propolis

import (
	"io"
	"net/http"
	"strings"

	"github.com/coder/websocket"
)

// The endpoints that are websockets. They upgrade first and look at the machine
// afterwards: without one the connection is dropped, not refused.

func (c *call) serial() (answer, error) {
	if _, err := numbers(c.r.URL.Query(), "from_start", "most_recent"); err != nil {
		return answer{}, err
	}
	return c.websocket((*call).streamSerial)
}

func (c *call) vnc() (answer, error) { return c.websocket((*call).streamScreen) }

// stream is what is said over a websocket; when it returns, the connection is
// broken off if it has not been closed.
type stream func(*call, *websocket.Conn)

// websocket checks the opening handshake (dropshot/src/websocket.rs).
func (c *call) websocket(s stream) (answer, error) {
	h := c.r.Header
	has := func(name, word string) bool { return strings.Contains(strings.ToLower(h.Get(name)), word) }
	if !has("Connection", "upgrade") || !has("Upgrade", "websocket") || !has("Sec-WebSocket-Version", "13") || h.Get("Sec-WebSocket-Key") == "" {
		return answer{}, badRequest("expected connection upgrade")
	}
	return answer{status: http.StatusSwitchingProtocols, body: s}, nil
}

// upgrade takes the connection over. Whatever protocol is offered, none is
// chosen, and nothing is compressed.
func (c *call) upgrade(w http.ResponseWriter, a answer) {
	conn, err := websocket.Accept(w, c.r, &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return // it has been answered
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(maxMessage)
	a.body.(stream)(c, conn)
}

// maxMessage is the longest message that a client may send, in bytes: 64 MiB in
// tokio-tungstenite.
const maxMessage = 64 << 20

// The screen: RFB 3.8 (RFC 6143) in binary frames, up to where a client says
// which version it speaks. It is refused then, as RFB has it: without any type
// of security to choose from, but with a reason.

const (
	rfbVersion = "RFB 003.008\n"
	rfbRefusal = "not simulated: the screen of a VM"
)

func (c *call) streamScreen(conn *websocket.Conn) {
	wire := websocket.NetConn(c.r.Context(), conn, websocket.MessageBinary)
	if _, err := io.WriteString(wire, rfbVersion); err != nil {
		return
	}
	if _, err := io.ReadFull(wire, make([]byte, len(rfbVersion))); err == nil {
		_, _ = io.WriteString(wire, "\x00\x00\x00\x00"+string(rune(len(rfbRefusal)))+rfbRefusal)
	}
}
