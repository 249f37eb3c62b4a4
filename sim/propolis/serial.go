package propolis

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/coder/websocket"

	"github.com/sledctl/sledctl/sim/serve"
	"github.com/sledctl/sledctl/sim/world"
)

// The serial console (bin/propolis-server/src/lib/server.rs and serial/mod.rs):
// what the guest's first port has written, by request or as a stream.

// How much is sent at once.
const (
	historyPage = 16 << 10 // of history, if the client does not say
	outputChunk = 1 << 10  // of what the guest writes now
)

// offset is where somebody wants to read from.
type offset struct {
	from   uint64
	recent bool // from counts backwards from the end
}

// at is the offset in a console.
func (o offset) at(c world.Console, tx *world.Tx) uint64 {
	if !o.recent {
		return o.from
	}
	total := c.Length(tx.Now)
	return total - min(o.from, total)
}

// numbers reads the parameters of a query that are numbers.
func numbers(query url.Values, names ...string) (map[string]uint64, error) {
	all := map[string]uint64{}
	for _, name := range names {
		if !query.Has(name) {
			continue
		}
		n, err := strconv.ParseUint(query.Get(name), 10, 64)
		if err != nil {
			return nil, badRequest("unable to parse query string: %s: invalid digit found in string", name)
		}
		all[name] = n
	}
	return all, nil
}

// offsetOf is the one offset that is given; ok is false if there is none, or
// two.
func offsetOf(given map[string]uint64) (o offset, ok bool) {
	from, first := given["from_start"]
	recent, last := given["most_recent"]
	if first == last {
		return offset{}, false
	}
	return offset{from: max(from, recent), recent: last}, true
}

// serialHistory answers with a page of what was written.
func (c *call) serialHistory() (answer, error) {
	given, err := numbers(c.r.URL.Query(), "from_start", "most_recent", "max_bytes")
	if err != nil {
		return answer{}, err
	}
	return c.live(func(tx *world.Tx, p *world.Process) (answer, error) {
		o, ok := offsetOf(given)
		if !ok {
			return answer{}, badRequest("Exactly one of 'from_start' or 'most_recent' must be specified.")
		}
		data, start, err := p.VM.Console.Read(tx.Now, o.at(p.VM.Console, tx))
		if err != nil {
			return answer{}, badRequest("%s", err)
		}
		limit, ok := given["max_bytes"]
		if !ok {
			limit = historyPage
		}
		data = data[:min(limit, uint64(len(data)))]
		page := make([]int, len(data)) // an array of numbers, as serde writes bytes
		for i, b := range data {
			page[i] = int(b)
		}
		return answer{http.StatusOK, map[string]any{"data": page, "last_byte_offset": start + uint64(len(data))}}, nil
	})
}

// streamSerial is a client of the console: first the history that it asks for,
// then what is written. Without a live machine it is dropped, and at the end of
// one the server says so (close code 1001). Text that it sends is passed over.
func (c *call) streamSerial(conn *websocket.Conn) {
	ctx, cancel := context.WithCancel(c.r.Context())
	defer cancel()
	given, _ := numbers(c.r.URL.Query(), "from_start", "most_recent") // they were read before the upgrade
	o, replay := offsetOf(given)
	var sent uint64
	lived := false
	err := c.view(func(tx *world.Tx, p *world.Process) error {
		if lived = active(tx, p); !lived {
			return nil
		}
		sent = p.VM.Console.Length(tx.Now)
		if replay {
			sent = min(sent, o.at(p.VM.Console, tx))
		}
		return nil
	})
	if err != nil || !lived {
		return
	}
	typing := make(chan struct{})
	go func() {
		defer close(typing)
		defer cancel()
		c.takeInput(ctx, conn)
	}()
	c.sendOutput(ctx, conn, sent, replay)
	_ = conn.CloseNow()
	<-typing
}

// takeInput gives what a client sends to the guest.
//
// Guess typed-too-early-is-lost: what is typed before the guest runs is lost.
// Check: `printf` into `instance console` between `propolis ensure` and `propolis run`
func (c *call) takeInput(ctx context.Context, conn *websocket.Conn) {
	for {
		kind, data, err := conn.Read(ctx)
		if err != nil {
			return
		}
		if kind != websocket.MessageBinary {
			continue
		}
		err = c.world.Update(ctx, func(tx *world.Tx) error {
			p := find(tx, c.pid)
			if p == nil {
				return errGone
			}
			if p.VM != nil {
				guest{tx, p.VM}.typed(data)
			}
			return nil
		})
		if err != nil {
			return
		}
	}
}

// ending is why a stream ends.
type ending struct {
	gone, stopped, dropped bool
	moved                  *world.Moved
}

// sendOutput sends what is written from an offset on, until the machine is not
// live any more.
func (c *call) sendOutput(ctx context.Context, conn *websocket.Conn, sent uint64, replay bool) {
	chunk := outputChunk
	if replay {
		chunk = historyPage
	}
	for {
		data, end, err := c.nextOutput(ctx, sent)
		if err != nil {
			return
		}
		for len(data) > 0 {
			n := min(chunk, len(data))
			if conn.Write(ctx, websocket.MessageBinary, data[:n]) != nil {
				return
			}
			data, sent = data[n:], sent+uint64(n)
		}
		chunk = outputChunk
		switch {
		case end.gone || end.dropped:
			return
		case end.moved != nil:
			_ = conn.Write(ctx, websocket.MessageText, serve.JSON(map[string]any{
				"Migrating": map[string]any{"destination": end.moved.Destination, "from_start": end.moved.From},
			}))
			return
		case end.stopped:
			_ = conn.Close(websocket.StatusGoingAway, "VM stopped")
			return
		}
	}
}

// nextOutput waits until something beyond an offset has been written, or the
// stream ends. Output that was dropped ends it, too.
func (c *call) nextOutput(ctx context.Context, sent uint64) (data []byte, end ending, err error) {
	drops := false
	var expired error
	waited := c.world.Wait(ctx, func(tx *world.Tx) bool {
		p := find(tx, c.pid)
		data, end = nil, ending{}
		if p == nil || p.VM == nil {
			end.gone = true
			return true
		}
		drops = drops || tx.Expects(c.words(p), world.FaultDrop)
		data, _, expired = p.VM.Console.Read(tx.Now, sent)
		if !active(tx, p) {
			end.moved, end.stopped = p.VM.Moved, p.VM.Moved == nil
		}
		return drops || expired != nil || len(data) > 0 || end != ending{}
	})
	if drops && waited == nil {
		end.dropped, waited = true, c.world.Update(ctx, func(tx *world.Tx) error {
			if p := find(tx, c.pid); p != nil {
				tx.TakeFault(c.words(p), world.FaultDrop)
			}
			return nil
		})
	}
	return data, end, errors.Join(waited, expired)
}

// nmi is injected into the guest; its effect is not reported.
func (c *call) nmi() (answer, error) {
	err := c.update(func(tx *world.Tx, p *world.Process) error {
		if !active(tx, p) {
			return noInstance()
		}
		guest{tx, p.VM}.nmi()
		return nil
	})
	return answer{http.StatusOK, null{}}, err
}

// null is the JSON value.
type null struct{}

// MarshalJSON is "null".
func (null) MarshalJSON() ([]byte, error) { return []byte("null"), nil }
