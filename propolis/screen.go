package propolis

import (
	"context"
	"net"

	"github.com/coder/websocket"
)

// pathScreen is the machine's screen: RFB, as VNC speaks it, in binary frames.
// It is not in the published document.
const pathScreen = "/instance/vnc"

// ScreenURL is where the machine's screen is shown.
func (c Client) ScreenURL(ctx context.Context) (string, error) {
	target, err := c.Target.at(ctx, c.Host)
	if err != nil {
		return "", err
	}
	return "ws://" + target.Address.String() + pathScreen, nil
}

// Screen connects to the machine's screen: the bytes of RFB, without what
// carries them. It is broken off when the context ends, and when somebody else
// connects: a server shows it to one client.
func (c Client) Screen(ctx context.Context) (net.Conn, error) {
	conn, err := c.dial(ctx, pathScreen, nil)
	if err != nil {
		return nil, err
	}
	return websocket.NetConn(ctx, conn, websocket.MessageBinary), nil
}
