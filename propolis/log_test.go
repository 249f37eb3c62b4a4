package propolis_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sim/world"
)

const logFile = "/var/svc/log/propolis.log" // of a server that no service keeps

func logged() propolis.Target {
	t := target()
	t.Log = propolis.Log{Root: "/", File: logFile}
	return t
}

// What a server keeps to itself is in its log.
func TestAnOpaqueErrorIsExplainedFromTheLog(t *testing.T) {
	simulated(t, 0, func(t *testing.T, r rig) {
		must(t, host.MkdirAll(r.host.Files(), "/var/svc/log", 0o755))
		must(t, host.WriteFile(r.host.Files(), logFile, []byte("+ exec propolis-server\n{\"req_id\":\"another\"}\n"), 0o644))
		must(t, r.host.Files().Remove(disk))
		err := propolis.Ensure{Target: logged(), Request: r.request()}.Do(t.Context(), r.host)
		const cause = "VM initialization failed: failed to create backend of disk0: No such file or directory (os error 2)"
		e, ok := errors.AsType[*propolis.Error](err)
		if !ok || e.Cause != cause || err.Error() != "Propolis of web1: PUT /instance: 500: "+cause {
			t.Error(err)
		}
		// What was not this request is not its cause.
		err = propolis.Ensure{Target: target(), Request: r.request()}.Do(t.Context(), r.host)
		if e, ok := errors.AsType[*propolis.Error](err); !ok || e.Cause != "" || !strings.Contains(err.Error(), "req_id "+e.RequestID) {
			t.Error(err)
		}
	})
}

func TestALogThatDoesNotTell(t *testing.T) {
	for name, write := range map[string]func(t *testing.T, files host.Files){
		"there is none":  func(*testing.T, host.Files) {},
		"it is a device": func(t *testing.T, files host.Files) { must(t, host.MkdirAll(files, logFile, 0o755)) },
		"it cannot be written to, and has foreign text": func(t *testing.T, files host.Files) {
			must(t, host.MkdirAll(files, "/var/svc/log", 0o755))
			must(t, host.WriteFile(files, "/var/svc/log/other.log", []byte("x"), 0o644))
		},
	} {
		simulated(t, 0, func(t *testing.T, r rig) {
			write(t, r.host.Files())
			must(t, r.host.Files().Remove(disk))
			tgt := logged()
			switch {
			case strings.Contains(name, "foreign text"):
				tgt.Log.File = "/var/svc/log/other.log"
			case name == "there is none":
				tgt.Log.Root = "/zones/gone/root"
			}
			begun := time.Now()
			err := propolis.Ensure{Target: tgt, Request: r.request()}.Do(t.Context(), r.host)
			if e, ok := errors.AsType[*propolis.Error](err); !ok || e.Cause != "" || time.Since(begun) > time.Second {
				t.Errorf("%s: %v after %s", name, err, time.Since(begun))
			}
		})
	}
}

func TestTheLastWordsOfAServer(t *testing.T) {
	simulated(t, 0, func(t *testing.T, r rig) {
		must(t, host.MkdirAll(r.host.Files(), "/var/svc/log", os.ModePerm))
		must(t, host.WriteFile(r.host.Files(), logFile, []byte("{\"msg\":\"it panicked before\"}\nthread 'main' panicked at \x1b[31mserver.rs:1:\n"), 0o644))
		r.change(func(tx *world.Tx) { tx.Arm(world.Fault{Name: world.FaultCrash, Match: "propolis PUT", Times: 1}) })
		err := propolis.Ensure{Target: logged(), Request: r.request()}.Do(t.Context(), r.host)
		if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "the server died: thread 'main' panicked at ?[31mserver.rs:1:") {
			t.Error(err)
		}
	})
}
