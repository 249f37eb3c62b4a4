package agent

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/peer/napi"
	"github.com/sledctl/sledctl/sim"
	simnapi "github.com/sledctl/sledctl/sim/napi"
	"github.com/sledctl/sledctl/sim/simtest"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sled/nicsync"
	"github.com/sledctl/sledctl/test/hosttest"
)

const (
	thisSled = "564d2cec-64ee-4aca-9e27-d71c02af3b6a"
	vmOfNIC  = "3c7f5393-7c69-4c7c-bc81-000000000001"
	leakedBy = "3c7f5393-7c69-4c7c-bc81-000000000002"
	macHere  = "90:b8:d0:00:00:01"
	macGone  = "90:b8:d0:00:00:02"
)

// sink is a log that is read while it is written.
type sink struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *sink) Write(p []byte) (int, error) { s.mu.Lock(); defer s.mu.Unlock(); return s.text.Write(p) }

func (s *sink) count(part string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.text.String(), part)
}

// The whole agent keeps the NIC records of its sled: it asks nothing for two
// minutes, repairs all within ten, follows what is done by hand, waits for an
// operator's sync, stops while that is forbidden, and says once what is wrong.
func TestTheAgentKeepsNICRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		machine := sim.New(sim.Options{M2: -1, U2: -1, Links: 1}, hosttest.Files)
		defer machine.Close()
		change := func(fn func(*world.Tx)) {
			t.Helper()
			if err := machine.World().Update(context.Background(), func(tx *world.Tx) error { fn(tx); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		record := func(mac, vm, state string) {
			change(func(tx *world.Tx) {
				simtest.AddNIC(tx, mac, world.NAPINIC{BelongsToType: "zone", BelongsToUUID: vm, OwnerUUID: vmOfNIC, CNUUID: thisSled, State: state})
			})
		}
		state := func(mac string) (state string) {
			change(func(tx *world.Tx) {
				if r := tx.State.NAPI.NICs[mac]; r != nil {
					state = r.State
				}
			})
			return state
		}
		change(func(tx *world.Tx) { tx.State.NAPI = simnapi.New("10.99.99.12:80", simnapi.EraD) })
		record(macGone, leakedBy, "running")

		var asked sync.Map
		env := operationtest.New(t, host.Trace(machine.Host(), func(e host.Event) {
			if strings.Contains(e.Line.Text, "/nics") {
				asked.Store(e.Line.Text, true)
			}
		}))
		log := &sink{}
		s := Settings{
			Log: slog.New(slog.NewTextHandler(log, nil)), TombstoneTTL: time.Hour,
			NICs: &NICs{
				Settings: nicsync.Settings{Owner: nicsync.Owner{CN: thisSled}, Server: "10.99.99.12:80", Names: naming.DefaultPrefixes(), AllowNICs: true, LockFile: napi.LockFile("/moving")},
				Options:  nicsync.Options{Backfill: true, Reap: true, State: true, MaxDelete: -1, ConfirmTwice: 5 * time.Second},
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx, env, func() {}) }()

		time.Sleep(2*time.Minute - time.Millisecond)
		asked.Range(func(request, _ any) bool { t.Errorf("before two minutes: %s", request); return true })
		time.Sleep(8*time.Minute + 10*time.Second)
		if state(macGone) != "" {
			t.Error("what is leaked did not go within ten minutes")
		}

		byHand := func(program string, args ...string) {
			t.Helper()
			if r, err := machine.Host().Run(t.Context(), host.Command{Program: program, Args: args}); err != nil || r.Exit != 0 {
				t.Fatalf("%s: %s %v", program, r.Stderr, err)
			}
		}
		record(macHere, vmOfNIC, "provisioning")
		byHand("zonecfg", "-z", vmOfNIC, "create -b; set brand=sparse; set zonepath=/zone/one; set ip-type=exclusive; add net; set physical=vm1; set mac-addr="+macHere+"; end")
		change(func(tx *world.Tx) { tx.FindZone(vmOfNIC).State = "installed" })
		time.Sleep(6 * time.Second)
		if got := state(macHere); got != "stopped" {
			t.Errorf("the record of a zone that was made by hand: %q", got)
		}

		// An operator syncs and takes long: the agent waits.
		release := hold(t, env)
		record(macHere, vmOfNIC, "running")
		byHand("zonecfg", "-z", vmOfNIC, "set autoboot=true")
		time.Sleep(time.Minute)
		if state(macHere) != "running" {
			t.Error("two syncs at once")
		}
		release()
		time.Sleep(10 * time.Second)
		if state(macHere) != "stopped" {
			t.Error("the agent did not go on when the operator was done")
		}

		// Nothing is written while it is forbidden; that is said once.
		if err := host.WriteFile(machine.Host().Files(), "/moving", []byte("web1 moves\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		record(macGone, leakedBy, "running")
		time.Sleep(time.Minute)
		byHand("zonecfg", "-z", vmOfNIC, "set autoboot=false")
		time.Sleep(time.Minute)
		if state(macGone) == "" || log.count("web1 moves") != 1 {
			t.Errorf("while it is forbidden: %q, said %d times", state(macGone), log.count("web1 moves"))
		}
		if err := machine.Host().Files().Remove("/moving"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Second)
		if state(macGone) != "" || log.count("can be kept again") != 1 {
			t.Errorf("afterwards: %q\n%s", state(macGone), log.text.String())
		}

		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		synctest.Wait()
	})
}

// hold has what an operator's nics sync has as long as it runs.
func hold(t *testing.T, env operation.Env) (release func()) {
	t.Helper()
	release, err := operation.Hold(t.Context(), env, "nics sync", "nics")
	if err != nil {
		t.Fatal(err)
	}
	return release
}
