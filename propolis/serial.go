package propolis

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/coder/websocket"

	"github.com/sledctl/sledctl/propolis/console"
)

// The paths of the serial console.
const (
	pathSerial  = "/instance/serial"
	pathHistory = "/instance/serial/history"
)

// Serial is the console of a server's machine: a console.Line.
type Serial struct{ Client }

// Find is part of console.Line.
func (s Serial) Find(ctx context.Context, p console.Place) (uint64, error) {
	_, end, err := s.history(ctx, p, 0)
	return end, err
}

// Page is part of console.Line.
func (s Serial) Page(ctx context.Context, offset uint64) ([]byte, error) {
	data, _, err := s.history(ctx, console.Place{Byte: offset}, page)
	return data, err
}

// page is how much of the history is asked for at once, in bytes: what a server
// writes as JSON comes to four times as much.
const page = 64 << 10

// history reads what was written from a place on, and the offset of its end.
func (s Serial) history(ctx context.Context, p console.Place, most uint64) (data []byte, end uint64, err error) {
	query := url.Values{"max_bytes": {strconv.FormatUint(most, 10)}}
	query.Set(map[bool]string{false: "from_start", true: "most_recent"}[p.Back], strconv.FormatUint(p.Byte, 10))
	path := pathHistory + "?" + query.Encode()
	body, err := s.do(ctx, http.MethodGet, path, nil)
	if refused, ok := errors.AsType[*Error](err); ok && refused.Status == http.StatusBadRequest {
		return nil, 0, fmt.Errorf("%w: %s", &console.LostError{Place: p}, refused.Reason())
	}
	if err != nil {
		return nil, 0, absent(err)
	}
	data, end, err = decodeHistory(body, most)
	return data, end, s.replyError(http.MethodGet, path, err)
}

func decodeHistory(body []byte, most uint64) ([]byte, uint64, error) {
	var reply struct {
		Data []byte  `json:"data"` // numbers; encoding/json reads them, too
		End  *uint64 `json:"last_byte_offset"`
	}
	if err := json.Unmarshal(body, &reply); err != nil {
		return nil, 0, err
	}
	if reply.Data == nil || reply.End == nil {
		return nil, 0, errIncomplete
	}
	if n := uint64(len(reply.Data)); n > most || n > *reply.End {
		return nil, 0, fmt.Errorf("%d bytes up to byte %d, where %d were asked for", n, *reply.End, most)
	}
	return reply.Data, *reply.End, nil
}

// absent gives an error of no machine the meaning that it has for a console.
func absent(err error) error {
	if isNoInstance(err) {
		return fmt.Errorf("%w: %w", console.ErrAbsent, err)
	}
	return err
}

// Open is part of console.Line. Without a machine the stream breaks at once:
// Find comes first.
//
// Guess console-from-a-byte-is-whole: a console's stream that begins at a byte has every byte from
// there on: none is written between the replay and the live part.
// Check: `sledctl instance console NAME --since-byte 0 --log F` while the guest writes a lot;
// compare F with `--history`
func (s Serial) Open(ctx context.Context, offset uint64) (console.Stream, error) {
	conn, err := s.dial(ctx, pathSerial, url.Values{"from_start": {strconv.FormatUint(offset, 10)}})
	if err != nil {
		return nil, absent(err)
	}
	return &serialStream{conn, s.Client}, nil
}

type serialStream struct {
	conn *websocket.Conn
	of   Client
}

// Read is part of console.Stream. A text frame is the server's own: it tells
// that the machine has migrated.
//
// Guess no-close-frame-after-migration: at the end of a migration the source ends its consoles
// without a close frame.
// Check: `instance console` during a migration
func (s *serialStream) Read(ctx context.Context) ([]byte, error) {
	kind, data, err := s.conn.Read(ctx)
	switch {
	case err != nil && websocket.CloseStatus(err) == websocket.StatusGoingAway:
		return nil, console.ErrStopped
	case err != nil:
		return nil, fmt.Errorf("the console's connection broke: %w", err)
	case kind == websocket.MessageBinary:
		return data, nil
	}
	var control struct {
		Migrating *struct {
			Destination string `json:"destination"`
			FromStart   uint64 `json:"from_start"`
		}
	}
	if err := json.Unmarshal(data, &control); err != nil || control.Migrating == nil {
		return nil, s.of.replyError(http.MethodGet, pathSerial, cmp.Or(err, fmt.Errorf("a message that is not known: %q", data[:min(len(data), 100)])))
	}
	return nil, &console.MovedError{Destination: control.Migrating.Destination, Offset: control.Migrating.FromStart}
}

// Write is part of console.Stream.
func (s *serialStream) Write(ctx context.Context, data []byte) error {
	return s.conn.Write(ctx, websocket.MessageBinary, data)
}

// Close is part of console.Stream.
func (s *serialStream) Close() { _ = s.conn.CloseNow() }

var _ console.Line = Serial{}
