package propolis

import (
	"context"
	"encoding/binary"
	"io"
	"net"

	"github.com/coder/websocket"

	"github.com/sledctl/sledctl/sim/world"
)

// The screen: RFB 3.8 (RFC 6143) in binary frames, without a password, 800 by
// 600 pixels that stay black, since no guest here sets a mode. One client
// watches at a time: a newcomer takes the place of the one before
// (bin/propolis-server/src/lib/vnc.rs).

// The parts of RFB that are used.
const (
	rfbVersion      = "RFB 003.008\n"
	rfbNone         = 1 // security type
	rfbVNCAuth      = 2
	rfbSetFormat    = 0 // messages of a client
	rfbSetEncodings = 2
	rfbUpdate       = 3
	rfbKey          = 4
	rfbPointer      = 5
	rfbCutText      = 6
	screenWidth     = 800
	screenHeight    = 600
	screenName      = "propolis-vnc"
)

func (c *call) streamScreen(conn *websocket.Conn) {
	ctx, cancel := context.WithCancel(c.r.Context())
	defer cancel()
	var me uint64
	err := c.update(func(_ *world.Tx, p *world.Process) error {
		p.Viewers++
		me = p.Viewers
		return nil
	})
	if err != nil {
		return
	}
	evicted := make(chan struct{})
	go func() {
		defer close(evicted)
		_ = c.world.Wait(ctx, func(tx *world.Tx) bool {
			p := find(tx, c.pid)
			return p == nil || p.Viewers != me
		})
		_ = conn.CloseNow()
	}()
	wire := websocket.NetConn(ctx, conn, websocket.MessageBinary)
	if greet(wire) == nil {
		_ = show(wire)
	}
	cancel()
	<-evicted
}

// greet is the handshake up to ServerInit. A client that asks for a password
// authentication gets no further: there is none to check.
func greet(wire net.Conn) error {
	if _, err := io.WriteString(wire, rfbVersion); err != nil {
		return err
	}
	version := make([]byte, len(rfbVersion))
	if _, err := io.ReadFull(wire, version); err != nil {
		return err
	}
	if _, err := wire.Write([]byte{2, rfbNone, rfbVNCAuth}); err != nil {
		return err
	}
	choice := make([]byte, 1)
	if _, err := io.ReadFull(wire, choice); err != nil {
		return err
	}
	if choice[0] != rfbNone {
		return io.ErrUnexpectedEOF
	}
	if _, err := wire.Write([]byte{0, 0, 0, 0}); err != nil { // SecurityResult: OK
		return err
	}
	shared := make([]byte, 1)
	if _, err := io.ReadFull(wire, shared); err != nil {
		return err
	}
	format := []byte{32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0}
	hello := binary.BigEndian.AppendUint16(nil, screenWidth)
	hello = binary.BigEndian.AppendUint16(hello, screenHeight)
	hello = append(hello, format...)
	hello = binary.BigEndian.AppendUint32(hello, uint32(len(screenName)))
	_, err := wire.Write(append(hello, screenName...))
	return err
}

// show answers the client's messages: a picture for a request of all of it; of
// changes there are none.
func show(wire net.Conn) error {
	bytesPerPixel := 4
	for {
		kind := make([]byte, 1)
		if _, err := io.ReadFull(wire, kind); err != nil {
			return err
		}
		length := map[byte]int{rfbSetFormat: 19, rfbSetEncodings: 3, rfbUpdate: 9, rfbKey: 7, rfbPointer: 5, rfbCutText: 7}[kind[0]]
		if length == 0 {
			return io.ErrUnexpectedEOF // not a message of a client
		}
		body := make([]byte, length)
		if _, err := io.ReadFull(wire, body); err != nil {
			return err
		}
		more := 0
		switch kind[0] {
		case rfbSetFormat:
			bytesPerPixel = int(body[3]) / 8
		case rfbSetEncodings:
			more = 4 * int(binary.BigEndian.Uint16(body[1:]))
		case rfbCutText:
			more = int(binary.BigEndian.Uint32(body[3:]))
		case rfbUpdate:
			if body[0] == 0 {
				if _, err := wire.Write(picture(bytesPerPixel)); err != nil {
					return err
				}
			}
		}
		if _, err := io.CopyN(io.Discard, wire, int64(more)); err != nil {
			return err
		}
	}
}

// picture is the whole screen as one raw rectangle.
func picture(bytesPerPixel int) []byte {
	p := []byte{0, 0, 0, 1, 0, 0, 0, 0}
	p = binary.BigEndian.AppendUint16(p, screenWidth)
	p = binary.BigEndian.AppendUint16(p, screenHeight)
	p = binary.BigEndian.AppendUint32(p, 0)
	return append(p, make([]byte, screenWidth*screenHeight*bytesPerPixel)...)
}
