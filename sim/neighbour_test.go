package sim

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
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
	"github.com/sledctl/sledctl/test/hosttest"
)

// server puts a propolis-server into the global zone of a sled, at an address
// of its own.
func (s *Sled) server(t *testing.T, address string) {
	t.Helper()
	err := s.world.Update(t.Context(), func(tx *world.Tx) error {
		if _, err := network.CreateAddress(tx, world.GlobalZone, network.NewAddress{Object: "net1/v4", Type: "static", Address: address + "/24", Temporary: true}); err != nil {
			return err
		}
		const bootrom = "/opt/oxide/propolis-server/blob/OVMF_CODE.fd"
		tx.State.Processes = append(tx.State.Processes, &world.Process{
			PID: 1001, Zone: world.GlobalZone, Listen: address + ":12400", Argv: []string{"/bin/propolis-server", "run", bootrom, address + ":12400"},
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// ask sends a request from a sled's global zone.
func (s *Sled) ask(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		return s.Host().Dial(ctx, network, address)
	}}
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("api-version", "5.0.0")
	reply, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, string(text)
}

func connected(t *testing.T) map[string][2]*Sled {
	t.Helper()
	pairs := map[string][2]*Sled{"in memory": {New(Options{}, hosttest.Files), New(Options{}, hosttest.Files)}}
	var dirs [2]*Sled
	for i := range dirs {
		s, err := Init(t.TempDir(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		dirs[i] = s
	}
	pairs["in directories"] = dirs
	for _, pair := range pairs {
		for i, s := range pair {
			t.Cleanup(s.Close)
			s.server(t, fmt.Sprintf("10.9.0.%d", i+1))
		}
		if _, err := pair[0].Host().Dial(t.Context(), "tcp", "10.9.0.2:12400"); !errors.Is(err, syscall.EHOSTUNREACH) {
			t.Errorf("reached without a way there: %v", err)
		}
		for range 2 { // the same once more is nothing
			if err := Connect(t.Context(), pair[0], pair[1]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := Connect(t.Context(), pairs["in memory"][0], dirs[0]); err == nil {
		t.Error("a sled in memory reaches a directory")
	}
	return pairs
}

// A whole sled that loses its power breaks its migrations off, as a server that
// dies does; after their end it changes nothing on the other side.
func TestAMigrationAndASledThatIsRebooted(t *testing.T) {
	const during, afterwards = 2500 * time.Millisecond, time.Minute
	for name, c := range map[string]struct {
		after    time.Duration
		rebooted int
		want     [3]string // on the other side: state, direction, phase
	}{
		"the source's, while memory moves": {during, 0, [3]string{"Failed", "migration_in", "Error"}},
		"the target's, while memory moves": {during, 1, [3]string{"Running", "migration_out", "Error"}},
		"the source's, afterwards":         {afterwards, 0, [3]string{"Running", "migration_in", "Finish"}},
		"the target's, afterwards":         {afterwards, 1, [3]string{"Destroyed", "migration_out", "Finish"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pair := [2]*Sled{New(Options{}, hosttest.Files), New(Options{}, hosttest.Files)}
				for i, s := range pair {
					defer s.Close()
					s.server(t, fmt.Sprintf("10.9.0.%d", i+1))
				}
				if err := Connect(t.Context(), pair[0], pair[1]); err != nil {
					t.Fatal(err)
				}
				err := pair[1].world.Update(t.Context(), func(tx *world.Tx) error {
					tx.Arm(world.Fault{Name: world.FaultSlowMigrate, Match: "propolis * migrate", Delay: time.Second})
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				urls := []string{"http://10.9.0.1:12400/instance", "http://10.9.0.2:12400/instance"}
				pair[0].ask(t, "PUT", urls[0], fmt.Sprintf(moving, made))
				pair[0].ask(t, "PUT", urls[0]+"/state", `"Run"`)
				if status, text := pair[0].ask(t, "PUT", urls[1], fmt.Sprintf(moving, fmt.Sprintf(moved, 0, 1))); status != 201 {
					t.Fatalf("%d %s", status, text)
				}
				time.Sleep(c.after)
				if err := pair[c.rebooted].Reboot(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour) // nobody looks before it would long have been over
				other := 1 - c.rebooted
				if _, text := pair[other].ask(t, "GET", urls[other]+"/state-monitor", `{"gen":0}`); !strings.HasSuffix(text, `"state":"`+c.want[0]+`"}`) ||
					!strings.Contains(text, `"`+c.want[1]+`":{"id":"66666666-6666-4666-8666-666666666660","state":"`+c.want[2]+`"}`) {
					t.Errorf("%s, want %s", text, c.want)
				}
			})
		})
	}
}

const (
	made = `{"method":"Spec","value":{"spec":{"board":{"cpus":2,"memory_mb":512,"chipset":{"type":"i440_fx","value":{"enable_pcie":false}}},
"components":{"com1":{"type":"serial_port","component":{"num":"com1"}}}}}}`
	moved = `{"method":"MigrationTarget","value":{"migration_id":"66666666-6666-4666-8666-66666666666%d","src_addr":"10.9.0.%d:12400","replace_components":{}}}`
)

const moving = `{"properties":{"id":"7b1c2f3e-0d4a-4a55-9b0e-5f3d2c1b0a99","name":"web1","description":"","metadata":{
"silo_id":"00000000-0000-0000-0000-000000000000","project_id":"00000000-0000-0000-0000-000000000000","sled_id":"00000000-0000-0000-0000-000000000000",
"sled_serial":"","sled_revision":0,"sled_model":""}},"init":%s}`

// A machine moves from sled to sled and back, and each sees the other's server
// from its own global zone.
func TestMachinesMoveBetweenNeighbours(t *testing.T) {
	for name, pair := range connected(t) {
		t.Run(name, func(t *testing.T) {
			const first, second = "http://10.9.0.1:12400/instance", "http://10.9.0.2:12400/instance"
			if status, text := pair[1].ask(t, "PUT", first, fmt.Sprintf(moving, made)); status != 201 {
				t.Fatalf("%d %s", status, text)
			}
			pair[0].ask(t, "PUT", first+"/state", `"Run"`)
			for n, way := range []struct {
				to   string
				from int
			}{{second, 1}, {first, 2}} {
				if status, text := pair[0].ask(t, "PUT", way.to, fmt.Sprintf(moving, fmt.Sprintf(moved, n, way.from))); status != 201 {
					t.Fatalf("%d %s", status, text)
				}
				for url, want := range map[string]string{first: "Destroyed", second: "Destroyed"} {
					if url == way.to {
						want = "Running"
					}
					for _, s := range pair {
						if _, text := s.ask(t, "GET", url, ""); !strings.Contains(text, `"state":"`+want+`"`) {
							t.Errorf("%s: %s, want %s", url, text, want)
						}
					}
				}
			}
		})
	}
}
