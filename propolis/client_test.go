package propolis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/propolis/spec"
)

// asked is a request as a server sees it.
type asked struct {
	Line    string
	Version []string
	Type    string
	Body    string
}

func TestRequests(t *testing.T) {
	ensure := request(t)
	body, err := ensure.Encode(spec.Latest)
	if err != nil {
		t.Fatal(err)
	}
	v, json := []string{"6.0.0"}, "application/json"
	for name, c := range map[string]struct {
		do    func(context.Context, Client) error
		reply string
		want  asked
	}{
		"get": {
			func(ctx context.Context, c Client) error { _, err := c.Get(ctx); return err },
			`{"instance":{"properties":{"id":"x"},"state":"Running"}}`, asked{"GET /instance", v, "", ""},
		},
		"spec": {
			func(ctx context.Context, c Client) error { _, err := c.Spec(ctx); return err },
			`{"properties":{"id":"x"},"state":"Migrating","spec":{"type":"WaitingForMigrationSource"}}`, asked{"GET /instance/spec", v, "", ""},
		},
		"ensure": {
			func(ctx context.Context, c Client) error { return c.Ensure(ctx, ensure) },
			`{"migrate":null}`, asked{"PUT /instance", v, json, string(body)},
		},
		"run": {
			func(ctx context.Context, c Client) error { return c.PutState(ctx, Run) },
			"", asked{"PUT /instance/state", v, json, `"Run"`},
		},
		"monitor": {
			func(ctx context.Context, c Client) error { _, err := c.Monitor(ctx, 18446744073709551615); return err },
			`{"gen":18446744073709551615,"state":"Running","migration":{"migration_in":null,"migration_out":null}}`,
			asked{"GET /instance/state-monitor", v, json, `{"gen":18446744073709551615}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var got asked
				f := &fake{serve: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					data, _ := io.ReadAll(r.Body)
					got = asked{r.Method + " " + r.URL.Path, r.Header.Values("api-version"), r.Header.Get("Content-Type"), string(data)}
					_, _ = io.WriteString(w, c.reply)
				})}
				if err := c.do(t.Context(), Client{Host: f, Target: target()}); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff([]string{"tcp 10.77.0.5:12400"}, f.dialled); diff != "" {
					t.Errorf("dialled: %s", diff)
				}
			})
		})
	}
}

func TestRefusalsAreTyped(t *testing.T) {
	const denied = "instance state change not allowed: Instance is preparing to stop"
	for name, c := range map[string]struct {
		status int
		body   string
		kind   error
		text   string
	}{
		"no machine": {
			424, `{"request_id":"r","error_code":"NoInstance","message":"Server not initialized (no instance)"}`,
			ErrNoInstance, "GET /instance: 424 Server not initialized (no instance)",
		},
		"no VM left": {
			410, `{"request_id":"r","error_code":"NoInstance","message":"No instance present; will never reach generation 7"}`,
			ErrNoInstance, "GET /instance: 410 No instance present; will never reach generation 7",
		},
		"no machine, spelled otherwise": {410, `{"request_id":"r","error_code":"noinstance","message":"m"}`, ErrNoInstance, "GET /instance: 410 m"},
		"a machine already": {
			409, `{"request_id":"r","error_code":"AlreadyInitialized","message":"instance already initialized"}`,
			ErrAlreadyInitialized, "GET /instance: 409 instance already initialized",
		},
		"not now": {
			403, `{"request_id":"r","error_code":"` + denied + `","message":"Forbidden"}`, ErrForbidden, "GET /instance: 403 " + denied,
		},
		"a failure that only the log explains": {
			500, `{"request_id":"4c9f","error_code":"Internal","message":"Internal Server Error"}`, nil,
			"GET /instance: 500 Internal Server Error (for the reason, see the server's log: req_id 4c9f)",
		},
		"a bad spec": {
			400, `{"request_id":"r","message":"failed to generate internal instance spec: x"}`, nil,
			"GET /instance: 400 failed to generate internal instance spec: x",
		},
		"an unknown path":         {404, `{"request_id":"r","message":"Not Found"}`, nil, "GET /instance: 404 Not Found"},
		"another server's error":  {502, "<html>\n bad\n gateway</html>", nil, "GET /instance: 502 <html> bad gateway</html>"},
		"an error without a text": {503, "", nil, "GET /instance: 503 Service Unavailable"},
		"a redirection":           {302, "", nil, "GET /instance: 302 Found"},
		"a long error":            {400, strings.Repeat("x", 300), nil, "GET /instance: 400 " + strings.Repeat("x", 200)},
	} {
		bubble(t, func(t *testing.T) {
			_, err := client(replies(c.status, c.body)).Get(t.Context())
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Status != c.status || err.Error() != "Propolis of web1: "+c.text {
				t.Errorf("%s: %v", name, err)
			}
			for _, kind := range []error{ErrNoInstance, ErrAlreadyInitialized, ErrForbidden} {
				if errors.Is(err, kind) != (kind == c.kind) {
					t.Errorf("%s: is %v: %v", name, kind, errors.Is(err, kind))
				}
			}
		})
	}
}

func TestStrangeAnswersAreNotStates(t *testing.T) {
	for name, body := range map[string]string{
		"nothing":         "",
		"no JSON":         "<html>",
		"null":            "null",
		"another reply":   `{"gen":1,"state":"Running"}`,
		"no state":        `{"instance":{"properties":{"id":"x"}}}`,
		"no id":           `{"instance":{"state":"Running"}}`,
		"two replies":     `{"instance":{"properties":{"id":"x"},"state":"Running"}} {}`,
		"more than a lot": `{"instance":{"properties":{"id":"x"},"state":"Running"}` + strings.Repeat(" ", maxReply) + "}",
	} {
		bubble(t, func(t *testing.T) {
			if got, err := client(replies(200, body)).Get(t.Context()); !errors.Is(err, ErrReply) {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		})
	}
}

func TestWhatIsNotHTTPIsAStrangeAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := &fake{dial: func() (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				_, _ = io.WriteString(theirs, "SSH-2.0-Sun_SSH_2.4\r\n")
				theirs.Close()
			}()
			return ours, nil
		}}
		if _, err := (Client{Host: f, Target: target()}).Get(t.Context()); !errors.Is(err, ErrReply) {
			t.Error(err)
		}
	})
}

func TestASpecIsPresentOrAwaited(t *testing.T) {
	const open = `{"properties":{"id":"x"},"state":"Running","spec":`
	const value = `{"board":{"cpus":2,"memory_mb":1,"chipset":{"type":"i440_fx","value":{"enable_pcie":false}}},"components":{}}`
	for body, cpus := range map[string]uint8{
		open + `{"type":"Present","value":` + value + `}}`:                   2,
		open + `{"type":"WaitingForMigrationSource"}}`:                       0,
		open + `{"type":"Present"}}`:                                         255,
		open + `{"type":"WaitingForMigrationSource","value":` + value + `}}`: 255,
		open + value + `}`: 255,
	} {
		bubble(t, func(t *testing.T) {
			got, err := client(replies(200, body)).Spec(t.Context())
			switch {
			case cpus == 255:
				if !errors.Is(err, ErrReply) {
					t.Errorf("%s: %+v, %v", body, got, err)
				}
			case err != nil || (got.Spec != nil) != (cpus > 0) || got.State != StateRunning || got.Properties.ID != "x":
				t.Errorf("%s: %+v, %v", body, got, err)
			case got.Spec != nil && got.Spec.Board.CPUs != cpus:
				t.Errorf("%s: %+v", body, got.Spec)
			}
		})
	}
}

func TestARefusedConnectionIsToldFromARefusedRequest(t *testing.T) {
	f := &fake{dial: func() (net.Conn, error) { return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED} }}
	_, err := Client{Host: f, Target: target()}.Get(t.Context())
	if _, answered := errors.AsType[*Error](err); answered || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Error(err)
	}
}

// A server that dies while it answers: what it was asked to do may have
// happened.
func TestABrokenConnectionIsNoAnswer(t *testing.T) {
	for name, serve := range map[string]http.HandlerFunc{
		"before the answer": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"in the answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"instance":`)
			panic(http.ErrAbortHandler)
		},
	} {
		bubble(t, func(t *testing.T) {
			_, err := client(serve).Get(t.Context())
			if !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, ErrReply) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// A pipe has no buffer: the server's answer waits to be read while the request
// is still being written.
func TestAnAnswerBeforeTheEndOfTheRequestIsRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := request(t)
		r.Properties.Description = strings.Repeat("x", spec.MaxRequest/2)
		err := client(replies(400, `{"request_id":"r","message":"no"}`)).Ensure(t.Context(), r)
		if e, ok := errors.AsType[*Error](err); !ok || e.Message != "no" {
			t.Error(err)
		}
	})
}

func TestInterimAnswersAreNotTheAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, err := client(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusFailedDependency)
		}).Get(t.Context())
		if !errors.Is(err, ErrNoInstance) {
			t.Error(err)
		}
	})
}

func TestRequestsEndWithTheContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		_, err := client(silent).Monitor(ctx, 1)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Hour {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestAReadOnlyHostSendsNothingThatChanges(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := &fake{serve: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				t.Errorf("served %s", r.Method)
			}
			w.WriteHeader(http.StatusFailedDependency)
		})}
		c := Client{Host: host.ReadOnly(f), Target: target()}
		if _, err := c.Monitor(t.Context(), 0); !errors.Is(err, ErrNoInstance) {
			t.Error(err)
		}
		if err := c.PutState(t.Context(), Run); !errors.Is(err, host.ErrReadOnly) {
			t.Error(err)
		}
	})
}

func TestStatesThatCannotBeAskedFor(t *testing.T) {
	for _, state := range []string{"", "run", "Running", StateDestroyed} {
		f := &fake{}
		if err := (Client{Host: f, Target: target()}).PutState(t.Context(), state); err == nil || f.attempts() > 0 {
			t.Errorf("%q: %v", state, err)
		}
	}
}

// machine answers the monitor with one status after the other; what is said about
// it at its end is said forever.
type machine struct {
	states []Status
	last   func(w http.ResponseWriter)
	from   []string
}

func (m *machine) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m.from = append(m.from, string(body))
	if len(m.states) == 0 {
		m.last(w)
		return
	}
	s := m.states[0]
	m.states = m.states[1:]
	fmt.Fprintf(w, `{"gen":%d,"state":%q,"migration":{"migration_in":null,"migration_out":null}}`, s.Generation, s.State)
}

func gone(w http.ResponseWriter) {
	w.WriteHeader(http.StatusGone)
	_, _ = io.WriteString(w, `{"request_id":"r","error_code":"NoInstance","message":"No instance present"}`)
}

func TestAwait(t *testing.T) {
	for name, c := range map[string]struct {
		states []Status
		wanted []string
		want   string // the state, or the error's beginning
		from   []string
	}{
		"at once": {[]Status{{Generation: 3, State: StateRunning}}, []string{StateRunning}, "3 Running", []string{`{"gen":1}`}},
		"step by step": {
			[]Status{{Generation: 1, State: StateCreating}, {Generation: 2, State: StateStarting}, {Generation: 3, State: StateRunning}},
			[]string{StateRunning}, "3 Running", []string{`{"gen":1}`, `{"gen":2}`, `{"gen":3}`},
		},
		"with steps that are not seen": {
			[]Status{{Generation: 1, State: StateCreating}, {Generation: 7, State: StateRunning}},
			[]string{StateRunning}, "7 Running", []string{`{"gen":1}`, `{"gen":2}`},
		},
		"to an end that is wanted": {
			[]Status{{Generation: 5, State: StateStopped}, {Generation: 6, State: StateDestroyed}},
			[]string{StateDestroyed, StateFailed}, "6 Destroyed", []string{`{"gen":1}`, `{"gen":6}`},
		},
		"to an end that is not": {
			[]Status{{Generation: 2, State: StateStarting}, {Generation: 3, State: StateFailed}},
			[]string{StateRunning}, "the machine is Failed, and will not be Running", []string{`{"gen":1}`, `{"gen":3}`},
		},
		"to the other end": {
			[]Status{{Generation: 3, State: StateFailed}},
			[]string{StateDestroyed}, "the machine is Failed, and will not be Destroyed", []string{`{"gen":1}`},
		},
		"beyond the end, which is wanted": {
			[]Status{{Generation: 5, State: StateStopped}}, []string{StateDestroyed}, "6 Destroyed", []string{`{"gen":1}`, `{"gen":6}`},
		},
		"beyond the end, which is not": {
			[]Status{{Generation: 5, State: StateStopped}}, []string{StateRunning},
			"Propolis of web1: GET /instance/state-monitor: 410", []string{`{"gen":1}`, `{"gen":6}`},
		},
		"of a server that goes back": {
			[]Status{{Generation: 5, State: StateStarting}, {Generation: 1, State: StateCreating}}, []string{StateRunning},
			"Propolis of web1: GET /instance/state-monitor: not the answer of a Propolis server: generation 1, where 6 was asked for", []string{`{"gen":1}`, `{"gen":6}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				m := &machine{states: c.states, last: gone}
				s, err := client(m.serve).Await(t.Context(), 1, c.wanted...)
				got := fmt.Sprintf("%d %s", s.Generation, s.State)
				if err != nil {
					got = err.Error()
				}
				if !strings.HasPrefix(got, c.want) {
					t.Errorf("got %s", got)
				}
				if diff := cmp.Diff(c.from, m.from); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestAwaitOfTheEndIsNotContentWithARefusedConnection(t *testing.T) {
	f := &fake{dial: func() (net.Conn, error) { return nil, syscall.ECONNREFUSED }}
	if _, err := (Client{Host: f, Target: target()}).Await(t.Context(), 1, StateDestroyed); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Error(err)
	}
}
