package propolis

import (
	"io"

	"github.com/coder/websocket"
)

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
