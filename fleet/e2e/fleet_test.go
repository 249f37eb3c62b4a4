// Package e2e plays stories of a fleet on Kubernetes' own servers: kubectl is what users type,
// the controller is a process, and each sled is a simulated machine with the real agent, node
// and guard. Nothing is mocked.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/sledctl/sledctl/fleet/api"
	"github.com/sledctl/sledctl/fleet/deploy"
	"github.com/sledctl/sledctl/fleet/eviction"
	"github.com/sledctl/sledctl/fleet/guard/clock"
	"github.com/sledctl/sledctl/fleet/leash"
	"github.com/sledctl/sledctl/fleet/node"
	"github.com/sledctl/sledctl/fleet/plane"
	"github.com/sledctl/sledctl/fleet/simulated"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world/crucible"
	"github.com/sledctl/sledctl/test/hosttest"
)

// servers is where make fleet-servers builds them.
const servers = "../../bin/servers"

// soon is how long a thing may take that takes a second on an idle machine.
const soon = 90 * time.Second

// Fleet is a control plane with sleds.
type Fleet struct {
	*plane.Plane
	t      *testing.T
	dir    string
	leash  *leash.Leash
	scheme *runtime.Scheme
	log    *slog.Logger
	sleds  map[string]*Sled
	shared crucible.Crucible // its volumes

	leading sync.WaitGroup
	leads   sync.Mutex    // held while none is to be started
	kill    chan struct{} // each has the controller killed
	leader  atomic.Pointer[leash.Process]
	over    chan struct{} // closed when the story is
}

// Sled is a sled of the fleet whose parts run.
type Sled struct {
	*simulated.Sled
	cable   cable
	changes *counting
	node    func(context.Context) error
	parts   sync.WaitGroup
	mu      sync.Mutex
	dark    bool                          // it has no power
	stop    map[string]context.CancelFunc // by part
	ended   map[string]chan struct{}      // by part; closed once it has
	jump    atomic.Int64                  // how far the clock of its node is from the right time
	passed  atomic.Int64                  // time that has passed for its node and guard alone
}

// Begin starts a control plane, and applies what the fleet needs there.
func Begin(t *testing.T) *Fleet { t.Helper(); return beginWith(t, nil) }

// beginWith is Begin with further variables of the servers' environment.
func beginWith(t *testing.T, env map[plane.Server][]string) *Fleet {
	t.Helper()
	dir, err := os.MkdirTemp("", "fleet") // the name of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	logs, err := os.Create(filepath.Join(dir, "sleds.log"))
	if err != nil {
		t.Fatal(err)
	}
	f := &Fleet{t: t, dir: dir, scheme: runtime.NewScheme(), sleds: map[string]*Sled{}, kill: make(chan struct{}), over: make(chan struct{}), log: slog.New(slog.NewTextHandler(logs, nil))}
	ctrl.SetLogger(logr.FromSlogHandler(f.log.Handler()))
	klog.SetLogger(logr.FromSlogHandler(f.log.Handler()))
	f.ok(errors.Join(clientscheme.AddToScheme(f.scheme), api.AddToScheme(f.scheme)))
	bin, err := filepath.Abs(servers)
	f.ok(err)
	ctx, done := context.WithTimeout(t.Context(), soon)
	defer done()
	f.ok(os.Mkdir(filepath.Join(dir, "plane"), 0o700))
	f.Plane, err = plane.Start(ctx, plane.Options{Bin: bin, Dir: filepath.Join(dir, "plane"), Env: env})
	f.ok(err)
	f.leash, err = leash.New()
	f.ok(err)
	t.Cleanup(func() { f.end(logs) })
	return f
}

// end ends everything; of a test that failed, the logs are kept.
func (f *Fleet) end(logs io.Closer) {
	close(f.over)
	f.leading.Wait()
	for _, s := range f.sleds {
		for _, stop := range s.stop {
			stop()
		}
	}
	for _, s := range f.sleds {
		s.parts.Wait()
		s.Machine.Close()
	}
	for _, err := range []error{f.leash.Close(), f.Stop(), logs.Close()} {
		if err != nil {
			f.t.Error(err)
		}
	}
	if f.t.Failed() {
		f.t.Logf("the logs are in %s", f.dir)
		return
	}
	_ = os.RemoveAll(f.dir) // what is left is the system's to clean
}

func (f *Fleet) ok(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// Install builds the fleet's program, applies what it needs, and starts a controller with
// these flags.
func (f *Fleet) Install(flags ...string) {
	f.t.Helper()
	program := filepath.Join(f.dir, "sledctl-fleet")
	build := exec.Command("go", "build", "-o", program, "./cmd/sledctl-fleet")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		f.t.Fatalf("build the fleet: %v\n%s", err, out)
	}
	crds, err := exec.Command(program, "crds").Output()
	f.ok(err)
	f.Apply(string(crds))
	f.Must("wait", "--for=condition=Established", "--timeout=60s", "crd/virtualmachines.sledctl.dev")
	f.Must("apply", "--server-side", "-f", "../deploy/rbac.yaml")
	certs := filepath.Join(f.dir, "webhook")
	f.ok(os.Mkdir(certs, 0o700))
	f.ok(f.Serving(certs))
	port, err := plane.FreePort()
	f.ok(err)
	f.Lead(append(flags, "--webhook-certs", certs, "--webhook-host", "127.0.0.1", "--webhook-port", strconv.Itoa(port))...)
	hook, err := deploy.WebhookAt(fmt.Sprintf("https://127.0.0.1:%d%s", port, eviction.Path), f.Authority())
	f.ok(err)
	f.Apply(string(hook))
}

// Lead runs the controller, as the service account that it has in a cluster. One that ends is
// started again, as a cluster does.
func (f *Fleet) Lead(flags ...string) {
	f.t.Helper()
	token := strings.TrimSpace(f.Must("create", "token", "sledctl-fleet", "-n", "sledctl-system", "--duration=24h"))
	kubeconfig, err := f.KubeconfigOf("sledctl-fleet", token)
	f.ok(err)
	log, err := os.OpenFile(filepath.Join(f.dir, "controller.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	f.ok(err)
	args := append([]string{"controller", "--kubeconfig", kubeconfig}, flags...)
	f.leading.Go(func() {
		defer log.Close()
		for {
			f.leads.Lock()
			c := exec.Command(filepath.Join(f.dir, "sledctl-fleet"), args...)
			c.Stdout, c.Stderr = log, log
			process, err := f.leash.Start(c)
			f.leads.Unlock()
			if err != nil {
				f.t.Errorf("start a controller: %v", err)
				return
			}
			f.leader.Store(process)
			select {
			case <-process.Done():
			case <-f.kill:
				f.t.Log("a controller was killed: ", process.Kill())
			case <-f.over:
				_ = process.Kill() // it may have ended
				return
			}
		}
	})
}

// Join adds a sled with all its parts.
func (f *Fleet) Join(number int, pace node.Pace) *Sled {
	f.t.Helper()
	name := fmt.Sprintf("sled%d", number)
	dir := filepath.Join(f.dir, name)
	f.ok(os.Mkdir(dir, 0o700))
	machine := sim.New(sim.Options{Seed: uint64(number), M2: 1, U2: 1}, hosttest.Files)
	machine.World().Share(&f.shared)
	changes := &counting{Host: machine.Host()}
	s := &Sled{stop: map[string]context.CancelFunc{}, ended: map[string]chan struct{}{}, changes: changes, Sled: &simulated.Sled{
		Name: name, Machine: machine, Host: changes, Dir: dir, Log: f.log,
	}}
	s.Now = func() time.Time { return time.Now().Add(time.Duration(s.jump.Load() + s.passed.Load())) }
	s.Clock = func() int64 { return clock.Now() + s.passed.Load() }
	f.ok(s.Prepare(f.t.Context(), number))
	for _, other := range f.sleds {
		f.ok(sim.Connect(f.t.Context(), machine, other.Machine))
	}
	f.sleds[name] = s
	config, err := f.Config("system:node:"+name, "system:nodes")
	f.ok(err)
	config.Dial = s.cable.Dial
	s.node = func(ctx context.Context) error { return s.Node(ctx, config, f.scheme, pace) }
	f.Run(s, "agent", s.Agent)
	f.ok(s.Answers(f.t.Context()))
	f.Run(s, "node", s.node)
	f.Run(s, "guard", s.Guard)
	return s
}

// Run runs a part of a sled until it is stopped. On one without power nothing runs.
func (f *Fleet) Run(s *Sled, part string, run func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dark {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	s.stop[part], s.ended[part] = stop, ended
	s.parts.Go(func() {
		defer close(ended)
		if err := run(ctx); err != nil && ctx.Err() == nil {
			f.t.Errorf("the %s of sled %s has ended: %v", part, s.Name, err)
		}
	})
}

// End ends a part of a sled.
func (s *Sled) End(part string) {
	s.mu.Lock()
	stop, ended := s.stop[part], s.ended[part]
	s.mu.Unlock()
	stop()
	<-ended
}

// Has reports whether a part of a sled runs.
func (s *Sled) Has(part string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.ended[part]:
		return false
	default:
		return true
	}
}

// Try is what kubectl prints.
func (f *Fleet) Try(args ...string) (string, error) { return f.Within(soon, args...) }

// Within is Try with another time to have ended in.
func (f *Fleet) Within(most time.Duration, args ...string) (string, error) {
	ctx, done := context.WithTimeout(f.t.Context(), most)
	defer done()
	c := f.Kubectl(ctx, args...)
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return string(out), nil
}

// Must is what kubectl prints that has to succeed.
func (f *Fleet) Must(args ...string) string {
	f.t.Helper()
	out, err := f.Try(args...)
	f.ok(err)
	return out
}

// Apply applies objects.
func (f *Fleet) Apply(yaml string) string {
	f.t.Helper()
	name := filepath.Join(f.dir, "apply.yaml")
	f.ok(os.WriteFile(name, []byte(yaml), 0o600))
	return f.Must("apply", "--server-side", "-f", name)
}

// Refused is why the API server does not take an object.
func (f *Fleet) Refused(yaml string) error {
	f.t.Helper()
	name := filepath.Join(f.dir, "refused.yaml")
	f.ok(os.WriteFile(name, []byte(yaml), 0o600))
	_, err := f.Try("apply", "--server-side", "--dry-run=server", "-f", name)
	return err
}

// Until waits for what a person would wait for.
func (f *Fleet) Until(what string, is func() bool) time.Duration {
	f.t.Helper()
	start := time.Now()
	for !is() {
		if time.Since(start) > soon {
			f.t.Fatalf("not within %v: %s\n%s", soon, what, f.state())
		}
		time.Sleep(50 * time.Millisecond)
	}
	return time.Since(start)
}

// state is what an operator would look at.
func (f *Fleet) state() string {
	var out strings.Builder
	for _, args := range [][]string{{"get", "nodes,vm,pods,vmm,sledmaintenance", "-A", "-o", "wide"}, {"get", "events", "-A"}} {
		said, err := f.Try(args...)
		fmt.Fprintln(&out, said, err)
	}
	log, err := os.ReadFile(filepath.Join(f.dir, "controller.log"))
	fmt.Fprintf(&out, "the controller: %s %v\n", log[max(0, len(log)-4000):], err)
	for name, s := range f.sleds {
		runs, err := s.Runs(context.Background())
		fmt.Fprintf(&out, "sled %s runs %v %v\n", name, runs, err)
	}
	return out.String()
}

// Ready reports whether every sled is.
func (f *Fleet) Ready() bool {
	said, err := f.Try("get", "nodes", "-o", `jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status} {end}`)
	return err == nil && strings.Count(said, "True") == len(f.sleds)
}

// On are the sleds on which a VM runs.
func (f *Fleet) On(vm string) (on []string) {
	f.t.Helper()
	for name, s := range f.sleds {
		runs, err := s.Runs(f.t.Context())
		f.ok(err)
		for _, run := range runs {
			if strings.HasPrefix(run, vm+".") {
				on = append(on, name)
			}
		}
	}
	return on
}

// Running waits until kubectl shows these VMs as Running.
func (f *Fleet) Running(vms ...string) time.Duration {
	f.t.Helper()
	return f.Until(strings.Join(vms, ", ")+" are Running", func() bool {
		running := 0
		for line := range strings.Lines(f.Must("get", "vm", "--no-headers")) {
			words := strings.Fields(line)
			if len(words) > 1 && words[1] == "Running" && slices.Contains(vms, words[0]) {
				running++
			}
		}
		return running == len(vms)
	})
}
