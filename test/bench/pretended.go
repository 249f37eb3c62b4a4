package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// pretended is a sled on which many VMs are pretended to run: their Propolis
// servers, and the control plane, answer what an agent asks, and no more.
type pretended struct {
	host.Host
	vms  map[string]*pretendedVM // by address
	byID map[string]*pretendedVM
	all  []*pretendedVM
	rang chan time.Duration // of each doorbell, how long after the change it came
	// manner is what the control plane does instead of answering; nil: it answers.
	manner atomic.Pointer[manner]
}

// pretend has n VMs, and their records.
func pretend(n int) (*pretended, []record.Record) {
	p := &pretended{vms: map[string]*pretendedVM{}, byID: map[string]*pretendedVM{}, rang: make(chan time.Duration, 1<<16)}
	records := make([]record.Record, n)
	for i := range records {
		records[i] = running(i)
		vm := &pretendedVM{id: records[i].Incarnation.PropolisID, gen: 1}
		p.vms[records[i].Spec.Address.Prefix.Addr().String()], p.byID[vm.id] = vm, vm
		p.all = append(p.all, vm)
	}
	return p, records
}

// Dial is part of host.Host.
func (p *pretended) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	answer := p.plane
	if address != planeAddress {
		vm := p.vms[name]
		if vm == nil {
			return p.Host.Dial(ctx, network, address)
		}
		answer = vm.monitored
	}
	ours, theirs := net.Pipe()
	go hear(theirs, answer)
	return ours, nil
}

// Serve answers on a listener of all addresses: at a VM's as its Propolis, at any
// other as the control plane.
func (p *pretended) Serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		answer := p.plane
		if at, ok := conn.LocalAddr().(*net.TCPAddr); ok && p.vms[at.IP.String()] != nil {
			answer = p.vms[at.IP.String()].monitored
		}
		go hear(conn, answer)
	}
}

// hear has the one request of a connection answered.
func hear(conn net.Conn, answer func(net.Conn, request)) {
	if r, err := read(conn); err == nil {
		answer(conn, r)
	} else {
		conn.Close()
	}
}

// request is as much of one as matters here.
type request struct{ method, path, body string }

// id is that of the VM in the path: /vmms/ID/….
func (r request) id() string {
	id, _, _ := strings.Cut(strings.TrimPrefix(r.path, "/vmms/"), "/")
	return id
}

// read reads a request in few steps: what is done here is done next to the agent,
// on the same processors, and is none of its own.
func read(conn net.Conn) (r request, err error) {
	buffer := make([]byte, 1024)
	for n := 0; n < len(buffer); {
		more, err := conn.Read(buffer[n:])
		if err != nil {
			return r, err
		}
		n += more
		head, body, whole := bytes.Cut(buffer[:n], []byte("\r\n\r\n"))
		if !whole {
			continue
		}
		length := 0
		if _, after, ok := bytes.Cut(head, []byte("\r\nContent-Length: ")); ok {
			digits, _, _ := bytes.Cut(after, []byte("\r\n"))
			if length, err = strconv.Atoi(string(digits)); err != nil {
				return r, err
			}
		}
		if len(body) < length {
			continue
		}
		words := strings.Fields(string(head[:max(bytes.IndexByte(head, '\r'), 0)]))
		if len(words) != 3 {
			return r, fmt.Errorf("%q is no request", head)
		}
		return request{words[0], words[1], string(body)}, nil
	}
	return r, fmt.Errorf("a request is longer than %d bytes", len(buffer))
}

// plane answers a doorbell.
func (p *pretended) plane(w net.Conn, r request) {
	now := time.Now()
	if vm := p.byID[r.id()]; vm != nil && r.method == "POST" {
		select {
		case p.rang <- now.Sub(vm.since()):
		default:
		}
	}
	if m := p.manner.Load(); m != nil {
		m.meet(w, r.id())
		return
	}
	if r.method == "GET" { // what it knows of a sled: nothing
		unknown(w)
		return
	}
	defer w.Close()
	_, _ = io.WriteString(w, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
}

func unknown(w net.Conn) {
	const body = `{"request_id":"0","error_code":"ObjectNotFound","message":"Not Found"}`
	defer w.Close()
	_, _ = fmt.Fprintf(w, "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// pretendedVM is one VM: it runs, reboots, runs, with each change. A client that
// waits for the next change costs only its connection.
type pretendedVM struct {
	id string

	mu      sync.Mutex
	gen     uint64
	at      time.Time // of the last change
	waiting net.Conn  // of a long poll that is not answered yet
}

func (v *pretendedVM) change() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.gen++
	v.at = time.Now()
	if v.waiting != nil {
		go answerPoll(v.waiting, v.gen)
		v.waiting = nil
	}
}

func (v *pretendedVM) since() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.at
}

// monitored takes a long poll.
func (v *pretendedVM) monitored(w net.Conn, r request) {
	var asked struct {
		Gen uint64 `json:"gen"`
	}
	const monitor = "/instance/state-monitor"
	if r.path == monitor && json.Unmarshal([]byte(r.body), &asked) != nil {
		w.Close()
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case r.path != monitor: // whether it is still there
		go send(w, `{"instance":{"properties":{"id":"`+v.id+`"},"state":"Running"}}`)
	case v.gen >= asked.Gen:
		go answerPoll(w, v.gen)
	default:
		if v.waiting != nil { // the client has given it up, and asks again
			v.waiting.Close()
		}
		v.waiting = w
	}
}

func answerPoll(w net.Conn, gen uint64) {
	state := map[bool]string{true: "Running", false: "Rebooting"}[gen%2 == 1]
	send(w, fmt.Sprintf(`{"gen":%d,"state":%q,"migration":{}}`, gen, state))
}

func send(w net.Conn, body string) {
	defer w.Close()
	_, _ = fmt.Fprintf(w, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}
