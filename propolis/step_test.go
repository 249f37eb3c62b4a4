package propolis

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/test/steptest"
)

type step = steptest.Step

func steps(t *testing.T, to Target) []step {
	return []step{
		AwaitHTTP{to}, Ensure{to, request(t), nil}, ChangeState{to, Run}, ChangeState{to, Stop}, ChangeState{to, Reboot},
		AwaitState{Target: to, States: []string{StateRunning}}, AwaitState{to, []string{StateDestroyed, StateFailed}, 7},
	}
}

func TestStepsAreNamedAndHaveNoUndo(t *testing.T) {
	var verbs []string
	for _, s := range steps(t, target()) {
		verbs = append(verbs, s.Verb())
		if s.Undo() != nil {
			t.Errorf("%s has an undo", s.Verb())
		}
	}
	want := []string{
		"propolis.await-http", "propolis.ensure", "propolis.run", "propolis.stop", "propolis.reboot", "propolis.await-state", "propolis.await-state",
	}
	if diff := cmp.Diff(want, verbs); diff != "" {
		t.Error(diff)
	}
}

func TestExplain(t *testing.T) {
	body, err := request(t).Encode(spec.Latest)
	if err != nil {
		t.Fatal(err)
	}
	const run = `curl -sS -X PUT -H 'api-version: 6.0.0' -H 'Content-Type: application/json' --data '"Run"' `
	late := Target{Name: "web1", Port: 12400, Find: func(context.Context, host.Host) (netip.AddrPort, error) { return address(), nil }}
	for _, c := range []struct {
		step step
		want string
	}{
		{AwaitHTTP{target()}, "# waits until http://10.77.0.5:12400/instance answers"},
		{AwaitHTTP{late}, "# waits until http://<address of web1>:12400/instance answers"},
		{AwaitHTTP{Target{Name: "web1", Find: late.Find}}, "# waits until http://<address of web1>/instance answers"},
		{AwaitHTTP{Target{Address: netip.MustParseAddrPort("[fd00::5]:12400")}}, "# waits until http://[fd00::5]:12400/instance answers"},
		{ChangeState{target(), Run}, run + "http://10.77.0.5:12400/instance/state"},
		{ChangeState{late, Run}, run + "'http://<address of web1>:12400/instance/state'"},
		{
			Ensure{target(), request(t), nil}, "curl -sS -X PUT -H 'api-version: 6.0.0' -H 'Content-Type: application/json' --data " +
				host.Quote(string(body)) + " http://10.77.0.5:12400/instance",
		},
		{AwaitState{Target: target(), States: []string{StateRunning}}, "# waits until the machine of web1 is Running"},
		{AwaitState{target(), []string{StateDestroyed, StateFailed}, 7}, "# waits until the machine of web1 is Destroyed or Failed, after generation 7"},
	} {
		lines := c.step.Explain()
		if len(lines) != 1 || lines[0].Text != c.want {
			t.Errorf("got %v, want %s", lines, c.want)
		}
	}
	if l := (ChangeState{target(), "Pause"}).Explain(); l != nil {
		t.Errorf("got %v", l)
	}
	if l := (Ensure{Target: target()}).Explain(); l != nil {
		t.Errorf("got %v", l)
	}
}

func TestEnsureTellsThatTheServerGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		f := &fake{serve: http.HandlerFunc(silent)}
		err := Ensure{target(), request(t), nil}.Do(ctx, f)
		if !errors.Is(err, context.DeadlineExceeded) || err.Error() != "Propolis of web1: PUT /instance: context deadline exceeded (the server goes on making the machine)" {
			t.Error(err)
		}
	})
}

func TestAwaitStatePassesAGeneration(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := &machine{states: []Status{{Generation: 4, State: StateRebooting}, {Generation: 5, State: StateRunning}}}
		if err := (AwaitState{target(), []string{StateRunning}, 3}).Do(t.Context(), &fake{serve: http.HandlerFunc(m.serve)}); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{`{"gen":4}`, `{"gen":5}`}, m.from); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAwaitHTTPIsContentWithAnyAnswer(t *testing.T) {
	for _, status := range []int{200, 400, 424, 500} {
		bubble(t, func(t *testing.T) {
			const body = `{"instance":{"properties":{"id":"x"},"state":"Running"}}`
			if err := (AwaitHTTP{target()}).Do(t.Context(), &fake{serve: replies(status, body)}); err != nil {
				t.Errorf("%d: %v", status, err)
			}
		})
	}
}

func TestAwaitHTTPNoticesAServerWithin10Milliseconds(t *testing.T) {
	for name, failure := range map[string]error{
		"nobody listens":     syscall.ECONNREFUSED,
		"nobody is there":    syscall.EHOSTUNREACH,
		"the way is unknown": syscall.ENETUNREACH,
	} {
		bubble(t, func(t *testing.T) {
			ready := time.Now().Add(12345 * time.Millisecond)
			f := &fake{serve: replies(424, ""), dial: func() (net.Conn, error) {
				if time.Now().Before(ready) {
					return nil, &net.OpError{Op: "dial", Err: failure}
				}
				return nil, nil
			}}
			if err := (AwaitHTTP{target()}).Do(t.Context(), f); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if late := time.Since(ready); late < 0 || late > 10*time.Millisecond {
				t.Errorf("%s: noticed after %v", name, late)
			}
		})
	}
}

func TestAwaitHTTPOutlastsAServerThatDiesAndOneThatIsSilent(t *testing.T) {
	for name, first := range map[string]func() net.Conn{
		"dies": func() net.Conn { ours, theirs := net.Pipe(); theirs.Close(); return ours },
		"is silent": func() net.Conn {
			ours, theirs := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, theirs) }()
			return ours
		},
	} {
		bubble(t, func(t *testing.T) {
			f := &fake{serve: replies(424, "")}
			f.dial = func() (net.Conn, error) {
				if f.attempts() == 1 {
					return first(), nil
				}
				return nil, nil
			}
			start := time.Now()
			if err := (AwaitHTTP{target()}).Do(t.Context(), f); err != nil || time.Since(start) > 2*time.Second {
				t.Errorf("%s: %v after %v", name, err, time.Since(start))
			}
		})
	}
}

func TestAwaitHTTPEndsAtWhatWaitingDoesNotMend(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		f    *fake
		to   Target
		want error
	}{
		"a host that is gone": {&fake{dial: func() (net.Conn, error) { return nil, broken }}, target(), broken},
		"another server":      {&fake{serve: replies(200, "<html>")}, target(), ErrReply},
		"no address":          {&fake{}, Target{Name: "web1"}, errNowhere},
		"an address never to be": {
			&fake{}, Target{Name: "web1", Find: func(context.Context, host.Host) (netip.AddrPort, error) { return netip.AddrPort{}, broken }}, broken,
		},
	} {
		bubble(t, func(t *testing.T) {
			start := time.Now()
			if err := (AwaitHTTP{c.to}).Do(t.Context(), c.f); !errors.Is(err, c.want) || time.Since(start) != 0 {
				t.Errorf("%s: %v after %v", name, err, time.Since(start))
			}
		})
	}
}

func TestAwaitHTTPTellsWhyThereWasNoAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		f := &fake{dial: func() (net.Conn, error) { return nil, syscall.ECONNREFUSED }}
		err := AwaitHTTP{target()}.Do(ctx, f)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, syscall.ECONNREFUSED) {
			t.Error(err)
		}
	})
}

// An address that a lease gives is looked for until it is there, and then not
// again.
func TestALateAddressIsFoundWhenItIsNeeded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		looked := 0
		to := Target{Name: "web1", Find: func(context.Context, host.Host) (netip.AddrPort, error) {
			if looked++; looked < 4 {
				return netip.AddrPort{}, host.ErrTransient
			}
			return address(), nil
		}}
		f := &fake{serve: replies(424, "")}
		f.dial = func() (net.Conn, error) {
			if f.attempts() < 3 {
				return nil, syscall.ECONNREFUSED
			}
			return nil, nil
		}
		if err := (AwaitHTTP{to}).Do(t.Context(), f); err != nil || looked != 4 {
			t.Errorf("%v, looked %d times", err, looked)
		}
		m := &machine{states: []Status{{Generation: 1, State: StateCreating}, {Generation: 3, State: StateRunning}}}
		f.serve = http.HandlerFunc(m.serve)
		if err := (AwaitState{Target: to, States: []string{StateRunning}}).Do(t.Context(), f); err != nil || looked != 5 {
			t.Errorf("%v, looked %d times", err, looked)
		}
		if diff := cmp.Diff("tcp 10.77.0.5:12400", f.dialled[len(f.dialled)-1]); diff != "" {
			t.Error(diff)
		}
	})
}
