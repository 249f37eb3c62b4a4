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

	"github.com/sledctl/sledctl/sim/world"
)

// server puts a propolis-server into the global zone of a sled, at an address
// of its own.
func (s *Sled) server(t *testing.T, address string) {
	t.Helper()
	err := s.world.Update(t.Context(), func(tx *world.Tx) error {
		if _, err := tx.CreateAddress(world.GlobalZone, world.NewAddress{Object: "net1/v4", Type: "static", Address: address + "/24", Temporary: true}); err != nil {
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
	pairs := map[string][2]*Sled{"in memory": {New(Options{}), New(Options{})}}
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

const moving = `{"properties":{"id":"7b1c2f3e-0d4a-4a55-9b0e-5f3d2c1b0a99","name":"web1","description":"","metadata":{
"silo_id":"00000000-0000-0000-0000-000000000000","project_id":"00000000-0000-0000-0000-000000000000","sled_id":"00000000-0000-0000-0000-000000000000",
"sled_serial":"","sled_revision":0,"sled_model":""}},"init":%s}`

// A machine moves from sled to sled and back, and each sees the other's server
// from its own global zone.
func TestMachinesMoveBetweenNeighbours(t *testing.T) {
	const (
		made = `{"method":"Spec","value":{"spec":{"board":{"cpus":2,"memory_mb":512,"chipset":{"type":"i440_fx","value":{"enable_pcie":false}}},
"components":{"com1":{"type":"serial_port","component":{"num":"com1"}}}}}}`
		moved = `{"method":"MigrationTarget","value":{"migration_id":"66666666-6666-4666-8666-66666666666%d","src_addr":"10.9.0.%d:12400","replace_components":{}}}`
	)
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
