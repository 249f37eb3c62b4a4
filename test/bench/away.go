package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// manner is what a control plane does where it does not simply answer.
type manner struct {
	name string
	// meet meets a doorbell of a VM, and closes the connection.
	meet func(w net.Conn, id string)
}

// manners are all of them. The last one delays each client that waits for it.
func (r *agentRun) manners() []manner {
	says := func(text string) func(net.Conn, string) {
		return func(w net.Conn, _ string) {
			defer w.Close()
			_, _ = io.WriteString(w, text)
		}
	}
	return []manner{
		{"asks from within the doorbell's request", r.askBack()},
		{"answers 500", says("HTTP/1.1 500 Internal Server Error\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")},
		{"answers what is no HTTP", says("SSH-2.0-OpenSSH_9.9\r\n")},
		{"is down", says("")},
		{"never answers", func(w net.Conn, _ string) {
			defer w.Close()
			_, _ = io.Copy(io.Discard, w)
		}},
	}
}

// askBack asks for the VM before it answers.
func (r *agentRun) askBack() func(net.Conn, string) {
	idle := sync.Pool{New: func() any {
		conn, err := net.Dial("unix", r.socket)
		if err != nil {
			return nil
		}
		return bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn))
	}}
	return func(w net.Conn, id string) {
		defer w.Close()
		line, ok := idle.Get().(*bufio.ReadWriter)
		if !ok {
			return
		}
		if _, err := io.WriteString(line, stateRequest(id)); err != nil || line.Flush() != nil || answered(line.Reader) != nil {
			return
		}
		idle.Put(line)
		_, _ = io.WriteString(w, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
	}
}

// away has so many VMs a second change while the control plane has its manner,
// and gives how long those waited who asked the agent for states.
func (r *agentRun) away(m manner, perSecond, clients int, length time.Duration) (times, error) {
	r.sled.manner.Store(&m)
	defer r.sled.manner.Store(nil)
	return r.whileChanging(perSecond, clients, length)
}

// whileAway measures each manner.
func whileAway(r *agentRun, perSecond, clients int) (rows []row, err error) {
	for _, m := range r.manners() {
		asked, err := r.away(m, perSecond, clients, 2*time.Second)
		if err != nil {
			return nil, fmt.Errorf("the control plane %s: %w", m.name, err)
		}
		rows = append(rows, timed("agent: the same while the control plane "+m.name+": p99", 5*time.Millisecond, asked.percentile(99),
			fmt.Sprintf("(p50 %s, n=%d)", millis(asked.median()), len(asked))))
	}
	return rows, nil
}
