// Package plane runs a control plane of Kubernetes on this machine: etcd, API server,
// scheduler and controller manager, on loopback addresses, with certificates of its own. It
// is for trying the fleet and for its tests; everything ends with the process that started it.
package plane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/sledctl/sledctl/fleet/leash"
)

// Server is the name of one of the programs.
type Server string

// The servers, in the order in which they are started.
const (
	Etcd              Server = "etcd"
	APIServer         Server = "kube-apiserver"
	Scheduler         Server = "kube-scheduler"
	ControllerManager Server = "kube-controller-manager"
)

// Kubectl is the client that is built with the servers.
const Kubectl = "kubectl"

// Options say which control plane.
type Options struct {
	Bin string // the directory of the programs
	Dir string // an empty directory for what they write
	// More are further flags of a server.
	More map[Server][]string
	// Env are further variables of a server's environment, NAME=VALUE.
	Env map[Server][]string
}

// Plane is a control plane that runs.
type Plane struct {
	o       Options
	ca      *authority
	leash   *leash.Leash
	mu      sync.Mutex
	running map[Server]*leash.Process // those that are wanted
	ports   struct{ etcd, peer, api int }
	admin   *rest.Config
}

// MissingError is a program that is not where it should be.
type MissingError struct {
	Dir     string
	Program string
}

// Error says how to build it.
func (e *MissingError) Error() string {
	return fmt.Sprintf("no %s in %s: to build the servers, run: make fleet-servers", e.Program, e.Dir)
}

// Start starts a control plane and waits until its API server is ready.
func Start(ctx context.Context, o Options) (*Plane, error) {
	for _, name := range []string{string(Etcd), string(APIServer), string(Scheduler), string(ControllerManager), Kubectl} {
		if _, err := os.Stat(filepath.Join(o.Bin, name)); errors.Is(err, fs.ErrNotExist) {
			return nil, &MissingError{o.Bin, name}
		} else if err != nil {
			return nil, err
		}
	}
	p := &Plane{o: o, running: map[Server]*leash.Process{}}
	err := p.prepare()
	if err != nil {
		return nil, fmt.Errorf("prepare a control plane: %w", err)
	}
	if p.leash, err = leash.New(); err != nil {
		return nil, err
	}
	for _, s := range []Server{Etcd, APIServer, Scheduler, ControllerManager} {
		if err := p.Run(ctx, s); err != nil {
			return nil, errors.Join(err, p.Stop())
		}
	}
	return p, nil
}

// prepare writes what the servers read.
func (p *Plane) prepare() (err error) {
	if p.ca, err = newAuthority(); err != nil {
		return err
	}
	if err := p.takePorts(); err != nil {
		return err
	}
	key, err := p.ca.secret()
	if err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(p.file("ca.crt"), p.ca.pem(), 0o600), os.WriteFile(p.file("ca.key"), key, 0o600)); err != nil {
		return err
	}
	for _, name := range []string{"server", "accounts"} {
		one, err := p.ca.issue("sledctl-fleet-" + name)
		if err != nil {
			return err
		}
		if err := errors.Join(os.WriteFile(p.file(name+".crt"), one.cert, 0o600), os.WriteFile(p.file(name+".key"), one.key, 0o600)); err != nil {
			return err
		}
	}
	for name, groups := range map[string][]string{"admin": {"system:masters"}, "system:kube-scheduler": nil, "system:kube-controller-manager": nil} {
		if _, err := p.Kubeconfig(name, groups...); err != nil {
			return err
		}
	}
	if err := os.WriteFile(p.file(schedulerConfig), []byte(p.schedulerText()), 0o600); err != nil {
		return err
	}
	p.admin, err = p.Config("admin", "system:masters")
	return err
}

// takePorts finds ports that are free now.
func (p *Plane) takePorts() error {
	for _, port := range []*int{&p.ports.etcd, &p.ports.peer, &p.ports.api} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close()
		*port = l.Addr().(*net.TCPAddr).Port
	}
	return nil
}

func (p *Plane) file(name string) string { return filepath.Join(p.o.Dir, name) }

// Store is the directory of etcd's data, to be copied or replaced while etcd does not run.
func (p *Plane) Store() string { return p.file("etcd") }

// Dir is where the servers write, and their logs are.
func (p *Plane) Dir() string { return p.o.Dir }

// Address is HOST:PORT of the API server.
func (p *Plane) Address() string { return "127.0.0.1:" + strconv.Itoa(p.ports.api) }

// Run starts a server that does not run, and waits until it answers. Scheduler and controller
// manager end when they have lost their leases: they are started again, as a cluster does.
func (p *Plane) Run(ctx context.Context, s Server) error {
	p.mu.Lock()
	process, err := p.start(s)
	p.mu.Unlock()
	if err != nil {
		return err
	}
	if s == Scheduler || s == ControllerManager {
		go p.keep(s, process)
	}
	return p.answers(ctx, s, process)
}

// start starts a server. The caller holds the lock.
func (p *Plane) start(s Server) (*leash.Process, error) {
	c := exec.Command(filepath.Join(p.o.Bin, string(s)), append(p.flags(s), p.o.More[s]...)...)
	c.Env = append(os.Environ(), p.o.Env[s]...)
	log, err := os.OpenFile(p.file(string(s)+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the server has it open, too
	c.Stdout, c.Stderr = log, log
	process, err := p.leash.Start(c)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s, err)
	}
	p.running[s] = process
	return process, nil
}

// keep starts a server again that has ended by itself, until it is killed.
func (p *Plane) keep(s Server, process *leash.Process) {
	for {
		<-process.Done()
		time.Sleep(time.Second)
		p.mu.Lock()
		if p.running[s] != process {
			p.mu.Unlock()
			return
		}
		next, err := p.start(s)
		p.mu.Unlock()
		if err != nil {
			return // what is wanted of it is missed, and its log says why
		}
		process = next
	}
}

// answers waits until a server does its work.
func (p *Plane) answers(ctx context.Context, s Server, process *leash.Process) error {
	ready := map[Server]func(context.Context) error{Etcd: p.etcdListens, APIServer: p.apiReady}[s]
	if ready == nil {
		return nil // what it does is seen by what it has done
	}
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w; its last words: %s", s, err, p.lastWords(s))
		case <-process.Done():
			return fmt.Errorf("%s has ended: %w; its last words: %s", s, process.Err(), p.lastWords(s))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (p *Plane) etcdListens(ctx context.Context) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:"+strconv.Itoa(p.ports.etcd))
	if err != nil {
		return err
	}
	return c.Close()
}

func (p *Plane) apiReady(ctx context.Context) error {
	h, err := rest.HTTPClientFor(p.admin)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.admin.Host+"/readyz", nil)
	if err != nil {
		return err
	}
	reply, err := h.Do(r)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("the API server answers %s", reply.Status)
	}
	return nil
}

// lastWords are the last lines of a server's log.
func (p *Plane) lastWords(s Server) string {
	data, err := os.ReadFile(p.file(string(s) + ".log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// Kill ends a server at once. Run starts it again, with what it has stored.
func (p *Plane) Kill(s Server) error {
	p.mu.Lock()
	process := p.running[s]
	delete(p.running, s)
	p.mu.Unlock()
	if process == nil {
		return nil
	}
	return process.Kill()
}

// IDs are the process ids of the servers that run.
func (p *Plane) IDs() map[Server]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	ids := map[Server]int{}
	for s, process := range p.running {
		ids[s] = process.ID()
	}
	return ids
}

// Stop ends all servers at once, the last that was started first: nothing of them is kept.
func (p *Plane) Stop() error {
	var errs []error
	for _, s := range []Server{ControllerManager, Scheduler, APIServer, Etcd} {
		errs = append(errs, p.Kill(s))
	}
	return errors.Join(append(errs, p.leash.Close())...)
}
