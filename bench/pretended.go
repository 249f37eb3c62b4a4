package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sledctl/sledctl/host"
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
	go func() {
		if r, err := http.ReadRequest(bufio.NewReaderSize(theirs, 512)); err == nil {
			answer(theirs, r)
		}
	}()
	return ours, nil
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

// inUse is the memory of what is alive, in bytes: heap and stacks.
func inUse() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}
