package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sledctl/sledctl/fleet/api"
	"github.com/sledctl/sledctl/fleet/fence"
)

// The VMs are looked at when they may have changed: each time as long as no changes are reported.
func TestWhenTheVMsAreLookedAt(t *testing.T) {
	n := &Node{}
	now := time.Now()
	if !n.looks(now) {
		t.Error("the VMs are not looked at, and no changes are reported")
	}
	n.lastChange.reports(true)
	if !n.looks(now) {
		t.Error("the VMs are not looked at, and may have changed before changes are reported")
	}
	if n.looks(time.Now().Add(changeLasts + time.Second)) {
		t.Error("the VMs are looked at, and nothing has changed")
	}
	if !n.looks(time.Now().Add(-lookRarely)) {
		t.Error("the VMs are never looked at again")
	}
	hourAgo := func() { n.lastChange.last, n.lastChange.settled = now.Add(-time.Hour), now.Add(-time.Hour) }
	hourAgo()
	if n.looks(now.Add(-time.Second)) {
		t.Error("the VMs are looked at, and nothing has changed for an hour")
	}
	n.change("one")
	if n.looks(now) {
		t.Error("the VMs are looked at, and one has changed that is not settled")
	}
	pod := &corev1.Pod{}
	n.settle(pod, Run{PropolisID: "one"}, time.Now())
	if n.looks(now) {
		t.Error("the VMs are looked at, and the one that is settled was looked at after it had changed")
	}
	n.change("one")
	if !n.looks(now) {
		t.Error("the VMs are not looked at, and one has changed that is settled")
	}
	hourAgo()
	looked := time.Now()
	n.change("two")
	n.settle(pod, Run{PropolisID: "two"}, looked)
	if !n.looks(now) {
		t.Error("the VMs are not looked at, and one is settled that has changed since it was looked at")
	}
	hourAgo()
	for id := range changes {
		n.change(strconv.Itoa(id))
	}
	if len(n.lastChange.by) > changes || !n.looks(now) {
		t.Errorf("%d changes are remembered, and the VMs are looked at: %v", len(n.lastChange.by), n.looks(now))
	}
	hourAgo()
	n.lastChange.reports(false)
	if !n.looks(now) {
		t.Error("the VMs are not looked at, and changes are reported no longer")
	}
}

// What runs is reported when it may have changed. A sled whose agent answers, and reports no change, is not looked at.
func TestASledOnWhichNothingChangesIsNotLookedAt(t *testing.T) {
	s := begin(t)
	s.ok(s.node.Register(t.Context()))
	s.node.lastChange.reports(true)
	s.ok(s.node.Register(t.Context()))
	asked := s.asked()
	looked := s.node.looked
	s.ok(s.node.Register(t.Context()))
	if s.node.looked != looked {
		t.Error("the sled was looked at, and nothing has changed")
	}
	s.wants(asked, "that nothing has changed")
	s.sled.runs[vm] = Run{VM: vm, Generation: 1, State: "running"}
	s.node.change(vm)
	s.ok(s.node.Register(t.Context()))
	s.wants(asked, "that a VM runs", "patch")
	s.sled.broken = errors.New("the agent does not answer")
	if err := s.node.Register(t.Context()); !errors.Is(err, s.sled.broken) {
		t.Errorf("of an agent that does not answer: %v", err)
	}
	s.wants(asked, "that the agent does not answer", "get", "patch status")
}

// That a run has ended is written to the Node, whether the agent reports it or not.
func TestAnEndIsReportedByTheNode(t *testing.T) {
	s := begin(t)
	s.beats(fence.Chain{{Term: "a", N: 3}}, "a")
	s.claim(1)
	s.look(1)
	s.ok(s.node.Register(t.Context()))
	s.node.lastChange.reports(true)
	s.ok(s.node.Register(t.Context()))
	s.ok(s.sled.Stop(t.Context(), s.sled.runs[vm]))
	s.look(1) // removes it, and reports the end
	s.ok(s.node.Register(t.Context()))
	var node corev1.Node
	s.ok(s.store.Get(t.Context(), client.ObjectKey{Name: "sled1"}, &node))
	if got := node.Annotations[api.AnnotationRuns]; got != "" {
		t.Errorf("it runs %q", got)
	}
}

// An agent that reports no changes has the VMs looked at instead, and is asked again.
func TestChangesAreReportedAgain(t *testing.T) {
	begun, broken := make(chan int), 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/events" {
			t.Errorf("asked for %s", r.URL)
		}
		if broken++; broken == 1 {
			http.Error(w, "it begins", http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprint(w, "id: 1\nevent: vmm\ndata: {\"propolis_id\": \"one\"}\n\n")
		_ = http.NewResponseController(w).Flush()
		begun <- broken
		if broken > 2 {
			<-r.Context().Done()
		}
	}))
	defer server.Close()
	s := begin(t)
	agent, err := NewAgent(server.URL, "")
	s.ok(err)
	s.node.Sled = agent
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); s.node.follow(ctx) }()
	for want := 2; want <= 3; want++ {
		if got := <-begun; got != want {
			t.Errorf("attempt %d, not %d", got, want)
		}
	}
	for s.node.lastChange.since(time.Now().Add(time.Second)) { // until it has begun to report
		time.Sleep(time.Millisecond)
	}
	if _, noted := s.node.lastChange.by["one"]; !noted {
		t.Errorf("the changes that are noted: %v", s.node.lastChange.by)
	}
	stop()
	<-ended
	if !s.node.lastChange.since(time.Now()) {
		t.Error("nothing has changed, and changes are no longer reported")
	}
}

// An agent that listens on the network wants a token with each request.
func TestTheTokenGoesWithEventsAndHealth(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer secret":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/events":
			_, _ = fmt.Fprint(w, "event: instance\ndata: {\"propolis_id\": \"a\"}\n\n")
		case r.URL.Path != "/healthz":
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	for token, welcome := range map[string]bool{"secret": true, "": false} {
		agent, err := NewAgent(server.URL, token)
		if err != nil {
			t.Fatal(err)
		}
		begun, told := false, ""
		err = agent.Changes(t.Context(), func() { begun = true }, func(propolis string) { told += propolis })
		if begun != welcome || (told == "a") != welcome || err == nil { // the stream ends here
			t.Errorf("token %q: begun %t, told %q, %v", token, begun, told, err)
		}
		if err := agent.Answers(t.Context()); (err == nil) != welcome {
			t.Errorf("token %q: %v", token, err)
		}
	}
}
