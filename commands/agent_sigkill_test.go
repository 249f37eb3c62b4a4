package commands_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/sim/simtest"
	"github.com/sledctl/sledctl/test/sledtest"
)

// program runs sledctl as a process, on a sled in a directory.
func program(t *testing.T, dir string, words ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sledctl", words...)
	c.Dir = dir
	c.Env = append(os.Environ(), "SLEDCTL_HOST=sim:"+filepath.Join(dir, "sled"), "HOME="+dir, "SLEDCTL_AGENT_FLAT_NETWORK=true")
	return c
}

// The process of the agent is killed as soon as it has promised something about a VM
// that the control plane registered: that it is known, that it will run, that it is
// reset, that it will end or be removed. The next agent keeps the promise, and gives
// no generation twice.
func TestAnAgentKilledByTheSystemKeepsWhatItPromised(t *testing.T) {
	if sledtest.Quick() {
		t.Skip("killing processes takes seconds")
	}
	network, release, err := simtest.Underlay()
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Skip("this system has no further loopback addresses: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	base := network.Addr().As4()
	t.Setenv("SLEDCTL_NETWORK_UNDERLAY", network.String())
	t.Setenv("SLEDCTL_NETWORK_GZ_ADDRESS", network.Addr().Next().String()+"/24")
	dir := t.TempDir()
	if out, err := program(t, dir, "bootstrap").CombinedOutput(); err != nil {
		t.Fatalf("bootstrap: %v: %s", err, out)
	}
	socket := filepath.Join(dir, "a.sock")
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	a := &sledtest.Agent{T: t, Socket: socket, Client: &http.Client{Transport: transport}}
	var log bytes.Buffer
	begin := func() (kill func()) {
		t.Helper()
		c := program(t, dir, "agent", "--listen", "unix:"+socket)
		c.Stderr = &log
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		kill = sync.OnceFunc(func() { _ = c.Process.Kill(); _ = c.Wait() })
		for until := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			if reply, err := a.Client.Get("http://sled/healthz"); err == nil {
				reply.Body.Close()
				return kill
			}
			if time.Now().After(until) {
				kill()
				t.Fatalf("the agent does not answer: %s", log.String())
			}
		}
	}
	var vm string
	var last uint64
	is := func(want string) {
		t.Helper()
		var state string
		var gen uint64
		for until := time.Now().Add(time.Minute); state != want && time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
			state, gen = a.State(vm)
		}
		if state != want || gen <= last {
			t.Fatalf("%s at generation %d, want %s behind %d\n%s", state, gen, want, last, log.String())
		}
		last = gen
	}

	for n, life := range [][]struct{ asked, then string }{
		{{"", "starting"}, {"running", "running"}, {"stopped", "destroyed"}},
		{{"", "starting"}, {"running", "running"}, {"reboot", "running"}, {"delete", "failed"}},
	} {
		vm, last = uuid.NewString(), 0
		kill := begin()
		body := sledtest.VMBody(t, 48, uuid.NewString(), n+1)
		body["propolis_addr"] = netip.AddrPortFrom(netip.AddrFrom4([4]byte{base[0], base[1], base[2], byte(99 + n)}), 12400).String()
		if status, answer := a.Send("PUT", "/vmms/"+vm, sledtest.LatestAPI, body.Text(t)); status != http.StatusOK {
			kill()
			t.Fatalf("register: %d %s", status, answer)
		}
		_, last = a.State(vm)
		kill()
		for _, promise := range life {
			kill = begin()
			switch promise.asked {
			case "":
			case "delete":
				_, _ = a.Client.Do(unregister(t, vm, kill)) // the kill comes during the request, or just afterwards
				kill()
				kill = begin()
				if status, now := a.Remove(vm); status != http.StatusOK {
					t.Errorf("delete: %d %s", status, now)
				}
			default:
				if status, now := a.Want(vm, promise.asked); status != http.StatusOK {
					t.Errorf("%s: %d %s", promise.asked, status, now)
				}
				kill()
				kill = begin()
			}
			is(promise.then)
			kill()
		}
	}
	given := map[string]bool{}
	for _, change := range regexp.MustCompile(`msg="VM changed" .*generation=(\d+)`).FindAllStringSubmatch(log.String(), -1) {
		if given[change[1]] {
			t.Errorf("generation %s was given twice", change[1])
		}
		given[change[1]] = true
	}
	if len(given) < 7 {
		t.Errorf("the log has only %d generations:\n%s", len(given), log.String())
	}
}

// unregister asks the agent to remove a VM, and kills the agent soon after the
// request was sent.
func unregister(t *testing.T, vm string, kill func()) *http.Request {
	t.Helper()
	sent := func(httptrace.WroteRequestInfo) { time.AfterFunc(30*time.Millisecond, kill) }
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteRequest: sent})
	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, "http://sled/vmms/"+vm, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("api-version", sledtest.LatestAPI)
	return request
}
