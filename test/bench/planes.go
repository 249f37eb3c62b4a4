package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/agent/registration"
	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/peer/nexus"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sled/hardware"
)

// planes measures what control planes ask of a sled on which many VMs run: that it makes itself
// known to Nexus, says what it has, and keeps the NIC records that NAPI has of them.
func (b bench) planes(ctx context.Context) ([]row, error) {
	const few, many = 1, 1000
	asked := map[int]int64{}
	var rows []row
	for _, n := range []int{few, many} {
		p, err := b.plane(ctx, n)
		if err != nil {
			return nil, err
		}
		if asked[n], err = p.nicRequests(ctx); err == nil && n == many {
			rows, err = p.nexus(ctx)
		}
		if err = errors.Join(err, p.stop()); err != nil {
			return nil, err
		}
	}
	return append(rows, row{
		What: "agent: a VM ends: requests to NAPI, where 1,000 VMs run, against where 1 runs", Budget: "0 more",
		Measured: fmt.Sprintf("%d more (%d, %d)", asked[many]-asked[few], asked[many], asked[few]), Judged: true, Over: asked[many] > asked[few],
	}), nil
}

const (
	benchSled   = "5b6f33bb-9c0c-4a3c-8e5f-2d6b1c0b7a11"
	benchCN     = "564d2cec-64ee-4aca-9e27-d71c02af3b6a" // the same
	napiAddress = "127.77.255.1:8081"                    // as commands.SimulatedConfig says
)

// planeRun is an agent between its control planes.
type planeRun struct {
	sled   machine
	socket string
	nics   atomic.Int64 // requests to NAPI
	stop   func() error
}

// plane has an agent run on a sled with n VMs that run.
func (b bench) plane(ctx context.Context, n int) (*planeRun, error) {
	s, err := inMemory(ctx)
	if err != nil {
		return nil, err
	}
	if s.host, err = s.populate(ctx, n); err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	config := commands.SimulatedConfig() + fmt.Sprintf("\n[nexus]\nurl = \"http://%s\"\nsled_id = %q\nmode = \"off\"\n", planeAddress, benchSled)
	if err := errors.Join(s.configureAs(config), s.InitNAPI(ctx, sim.NAPIOptions{Address: napiAddress, Era: "D"}), s.recordNICs(ctx)); err != nil {
		return nil, err
	}
	p := &planeRun{sled: s, socket: filepath.Join(b.dir, fmt.Sprint("plane", n, ".sock"))}
	log, err := os.Create(p.socket + ".log")
	if err != nil {
		return nil, err
	}
	env, _, _ := commands.On(host.Trace(s.host, func(e host.Event) {
		if e.Status != 0 && strings.Contains(e.Line.Text, "/nics") {
			p.nics.Add(1)
		}
	}), nil)
	env.Streams.Err.Writer = log
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan int, 1)
	go func() {
		ended <- commands.Run(ctx, env, []string{"agent", "--listen", "unix:" + p.socket, "--listen", fmt.Sprintf("tcp:[::1]:%d", port), "--insecure-listen"})
	}()
	p.stop = func() error {
		cancel()
		<-ended
		s.Close()
		return log.Close()
	}
	if err := until(func() bool { _, err := p.ask(ctx, "/healthz"); return err == nil }); err != nil {
		said, _ := os.ReadFile(log.Name())
		return nil, errors.Join(fmt.Errorf("the agent does not answer: %s", said), p.stop())
	}
	return p, nil
}

func freePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "[::1]:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// recordNICs gives NAPI a record of each guest NIC on the sled.
func (s machine) recordNICs(ctx context.Context) error {
	all, err := s.records(ctx)
	if err != nil {
		return err
	}
	return s.World().Update(ctx, func(tx *world.Tx) error {
		tx.TouchAround()
		for _, r := range all {
			for _, l := range r.Incarnation.Guests {
				tx.State.NAPI.NICs[l.MAC] = &world.NAPINIC{Etag: "00000000", BelongsToType: "zone", BelongsToUUID: r.ID, OwnerUUID: benchCN, CNUUID: benchCN, State: "running"}
			}
		}
		return nil
	})
}

// ask asks the agent, and gives how long that took.
func (p *planeRun) ask(ctx context.Context, path string) (time.Duration, error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", p.socket)
	}}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://sled"+path, nil)
	if err != nil {
		return 0, err
	}
	r.Header.Set("api-version", "48.0.0")
	begun := time.Now()
	reply, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("GET %s: %s", path, reply.Status)
	}
	return time.Since(begun), nil
}

// nicRequests are the requests that follow when a VM's zone ends by itself.
func (p *planeRun) nicRequests(ctx context.Context) (int64, error) {
	time.Sleep(settling)
	before := p.nics.Load()
	err := p.sled.World().Update(ctx, func(tx *world.Tx) error {
		for _, z := range tx.State.Zones {
			if strings.HasPrefix(z.Name, "propolis_instance_") {
				z.Kernel = nil
				return nil
			}
		}
		return errors.New("no VM runs")
	})
	if err == nil {
		err = until(func() bool { return p.nics.Load() > before })
	}
	time.Sleep(settling)
	return p.nics.Load() - before, err
}

// nexus measures how the sled makes itself known, and says what it has.
func (p *planeRun) nexus(ctx context.Context) ([]row, error) {
	const n, budget = 7, 50 * time.Millisecond
	var told, known times
	for range n {
		time.Sleep(lookAgain)
		took, err := p.ask(ctx, "/inventory")
		if err != nil {
			return nil, err
		}
		told = append(told, took)
		if took, err = p.register(ctx); err != nil {
			return nil, err
		}
		known = append(known, took)
	}
	return []row{timed("agent: registration and inventory, 1,000 VMs", budget, known.median()+told.median(), fmt.Sprintf("(%s + %s, n=%d)", millis(known.median()), millis(told.median()), n))}, nil
}

// lookAgain is as long as an answer that others have had is given once more.
const lookAgain = 2100 * time.Millisecond

// register is how long it takes until a control plane that has never heard of the sled knows it.
func (p *planeRun) register(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed atomic.Pointer[error]
	r := registration.Registration{Settings: registration.Settings{
		ID: uuid.New(), Client: nexus.Client{Host: p.sled.host, URL: &url.URL{Scheme: "http", Host: planeAddress}}, Draw: func() float64 { return 0 },
		Sled: func(ctx context.Context) (nexus.Sled, error) {
			is, err := hardware.Look(ctx, p.sled.host)
			return nexus.Sled{Address: "[::1]:12345", Role: nexus.RoleGimlet, Baseboard: nexus.Baseboard{Part: is.Board.Part, Serial: is.Board.Serial}, Threads: uint32(is.Threads), RAM: is.RAM}, err
		},
		Log: func(string, ...any) {}, Warn: func(err error) { failed.Store(&err) },
	}}
	begun := time.Now()
	go r.Run(ctx)
	if err := until(func() bool { return r.Known() || failed.Load() != nil }); err != nil {
		return 0, err
	}
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return time.Since(begun), nil
}
