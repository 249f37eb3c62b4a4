package host

import (
	"context"
	"net"
	"sync"
	"time"
)

// Trace is h with an event for each command, each HTTP request over a dialled
// connection and each change of a file, told to sink one at a time, when it is
// over. A file that WriteFile writes and a directory that MkdirAll makes are
// one event each, if nothing decorates the trace. What only looks at files,
// and locks, are not told.
func Trace(h Host, sink func(Event)) Host {
	var mu sync.Mutex
	return &traced{host: h, tell: func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		sink(e)
	}}
}

type traced struct {
	host   Host
	tell   func(Event)
	action string
}

var _ Host = (*traced)(nil)

func (t *traced) forAction(id string) Host {
	return &traced{host: ForAction(t.host, id), tell: t.tell, action: id}
}

func (t *traced) Run(ctx context.Context, c Command) (Result, error) {
	e := Event{Action: t.action, Line: CommandLine(c), Start: time.Now()}
	r, err := t.host.Run(ctx, c)
	e.End = time.Now()
	e.Exit, e.Unknown = r.Exit, r.Unknown
	e.Stderr = string(r.Stderr[max(0, len(r.Stderr)-maxStderrTail):])
	e.Error = textOf(err)
	t.tell(e)
	return r, err
}

func (t *traced) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	start := time.Now()
	conn, err := t.host.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return newTracedConn(conn, t, start), nil
}

func (t *traced) DeviceVersion(ctx context.Context, d Device) (version int, err error) {
	_ = t.event(d.Line(), func() error { version, err = t.host.DeviceVersion(ctx, d); return err })
	return version, err
}

func (t *traced) Files() Files { return &tracedFiles{files: t.host.Files(), trace: t, top: "/"} }

// event reports what do does: a change of a file, or a look at a device.
func (t *traced) event(line Line, do func() error) error {
	e := Event{Action: t.action, Line: line, Start: time.Now()}
	err := do()
	e.End, e.Error = time.Now(), textOf(err)
	t.tell(e)
	return err
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// ForAction returns h for the use of one action of a plan: if h is traced, its
// events carry the action's id.
func ForAction(h Host, id string) Host {
	if a, ok := h.(interface{ forAction(id string) Host }); ok {
		return a.forAction(id)
	}
	return h
}
