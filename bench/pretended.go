package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/instance"
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
func pretend(n int) (*pretended, []instance.Record) {
	p := &pretended{vms: map[string]*pretendedVM{}, byID: map[string]*pretendedVM{}, rang: make(chan time.Duration, 1<<16)}
	records := make([]instance.Record, n)
	for i := range records {
		records[i] = running(i)
		vm := &pretendedVM{id: records[i].Run.PropolisID, gen: 1}
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
func hear(conn net.Conn, answer func(net.Conn, *http.Request)) {
	if r, err := http.ReadRequest(bufio.NewReaderSize(conn, 512)); err == nil {
		answer(conn, r)
	}
}

// plane answers a doorbell.
func (p *pretended) plane(w net.Conn, r *http.Request) {
	now := time.Now()
	if vm := p.byID[pathID(r)]; vm != nil && r.Method == http.MethodPost {
		select {
		case p.rang <- now.Sub(vm.since()):
		default:
		}
	}
	if m := p.manner.Load(); m != nil {
		m.meet(w, pathID(r))
		return
	}
	defer w.Close()
	_, _ = io.WriteString(w, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
}

// pretendedVM is one VM: it runs, reboots, runs, with each change. Who waits for
// the next costs nothing but his connection.
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
func (v *pretendedVM) monitored(w net.Conn, r *http.Request) {
	var asked struct {
		Gen uint64 `json:"gen"`
	}
	if r.URL.Path == "/instance/state-monitor" && json.NewDecoder(r.Body).Decode(&asked) != nil {
		w.Close()
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case r.URL.Path != "/instance/state-monitor": // whether it is still there
		go send(w, `{"instance":{"properties":{"id":"`+v.id+`"},"state":"Running"}}`)
	case v.gen >= asked.Gen:
		go answerPoll(w, v.gen)
	default:
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
