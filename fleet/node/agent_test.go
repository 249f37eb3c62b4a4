package node

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sledctl/sledctl/fleet/api"
)

// The real agent, on a simulated sled, takes what the node asks for: a generation runs once,
// ends, is removed, and is not taken again.
func TestTheAgentRunsAGenerationOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	dir, err := os.MkdirTemp("", "fleet") // the name of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program := filepath.Join(dir, "sledctl")
	sledctl := func(ctx context.Context, args ...string) *exec.Cmd {
		c := exec.CommandContext(ctx, program, args...)
		c.Env = append(os.Environ(), "SLEDCTL_HOST=sim:"+filepath.Join(dir, "sled"))
		return c
	}
	build := exec.Command("go", "build", "-o", program, "./cmd/sledctl")
	build.Dir = "../.."
	for _, c := range []*exec.Cmd{build, sledctl(t.Context(), "bootstrap"), sledctl(t.Context(), "sled", "keeper", "fleet")} {
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", c.Args, err, out)
		}
	}
	socket := filepath.Join(dir, "agent.sock")
	server := sledctl(t.Context(), "agent", "--listen", "unix:"+socket)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	agent, err := NewAgent("unix:"+socket, "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	until := func(what string, is func() bool) {
		t.Helper()
		for !is() {
			if ctx.Err() != nil {
				runs, err := agent.Runs(context.WithoutCancel(ctx))
				t.Fatalf("not %s: %+v, %v", what, runs, err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	until("answering", func() bool { _, err := agent.Runs(ctx); return err == nil })
	room, err := agent.Capacity(ctx)
	if err != nil || room.CPUs == 0 || room.Memory == 0 || len(room.Pools) == 0 {
		t.Fatalf("%+v, %v", room, err)
	}

	if err := agent.Answers(ctx); err != nil {
		t.Error(err)
	}
	changes := make(chan string, 1000)
	begun := make(chan struct{})
	following, unfollow := context.WithCancel(ctx)
	followed := make(chan error, 1)
	go func() {
		followed <- agent.Changes(following, func() { close(begun) }, func(propolis string) { changes <- propolis })
	}()
	<-begun

	id, err := api.PropolisID(types.UID(vm), 3)
	if err != nil {
		t.Fatal(err)
	}
	run := Run{VM: vm, Generation: 3, PropolisID: id}
	document := json.RawMessage(`{"id":"` + vm + `","name":"web.0f2a7c1e","cpus":1,"memory":1073741824}`)
	if err := agent.Start(ctx, run, document); err != nil {
		t.Fatal(err)
	}
	here := func() Run {
		runs, err := agent.Runs(ctx)
		if err != nil || len(runs) != 1 {
			return Run{}
		}
		return runs[0]
	}
	until("running", func() bool { return here().State == "running" })
	until("reported to have changed", func() bool { return len(changes) > 0 })
	if got := <-changes; got != id {
		t.Errorf("%s has changed, not %s", got, id)
	}
	unfollow()
	if err := <-followed; err == nil {
		t.Error("changes are no longer reported, and that is no error")
	}
	if got := here(); got.VM != vm || got.Generation != 3 || got.PropolisID != id {
		t.Errorf("%+v", got)
	}
	if err := agent.Start(ctx, run, document); err != nil {
		t.Errorf("asked again for what runs: %v", err)
	}
	if err := agent.Stop(ctx, run); err != nil {
		t.Fatal(err)
	}
	until("ended", func() bool { r := here(); return r.VM == "" || r.over() })
	if err := agent.Remove(ctx, run); err != nil {
		t.Fatal(err)
	}
	until("gone", func() bool { runs, err := agent.Runs(ctx); return err == nil && len(runs) == 0 })
	for generation := int64(2); generation < 4; generation++ {
		run.Generation = generation
		if run.PropolisID, err = api.PropolisID(types.UID(vm), generation); err != nil {
			t.Fatal(err)
		}
		if err := agent.Start(ctx, run, document); !errors.As(err, new(*PassedError)) {
			t.Errorf("generation %d after 3: %v", generation, err)
		}
	}
	run.Generation = 4
	if run.PropolisID, err = api.PropolisID(types.UID(vm), 4); err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(ctx, run, document); err != nil {
		t.Fatal(err)
	}
	until("running again", func() bool { return here().State == "running" && here().Generation == 4 })
}
