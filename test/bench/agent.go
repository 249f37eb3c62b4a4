package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// agents measures the agent with as many VMs as it is meant for. Their Propolis
// servers and the control plane are pretended, in this process: they say what
// they are to say and cost next to nothing, while all of the agent is the real
// one, from the ledger to its socket.
func (b bench) agents(ctx context.Context) ([]row, error) {
	var rows []row
	for _, m := range []struct {
		vms  int
		take func(context.Context, *agentRun) ([]row, error)
	}{{10_000, underLoad}, {1000, atRest}} {
		r, err := startAgent(ctx, filepath.Join(b.dir, fmt.Sprint("agent", m.vms, ".sock")), m.vms)
		if err != nil {
			return nil, err
		}
		more, err := m.take(ctx, r)
		if serr := r.stop(); err == nil {
			err = serr
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
		debug.FreeOSMemory() // which otherwise goes on next to the next one
	}
	return rows, nil
}

// underLoad: all VMs change state in turn, 1,000 a second, and there is always
// somebody who asks. More clients than keep two cores busy would only wait for
// each other.
func underLoad(_ context.Context, r *agentRun) ([]row, error) {
	const changes, clients, length = 1000, 6, 3 * time.Second
	time.Sleep(settling)
	rings := r.changing(changes, ringing)
	asked, err := r.whileChanging(changes, clients, length)
	if err != nil {
		return nil, err
	}
	away, err := whileAway(r, changes, clients)
	if err != nil {
		return nil, err
	}
	rate := float64(len(asked)) / length.Seconds()
	rows := []row{
		{What: "agent: GET state, 10,000 VMs, 1,000 of them changing per second: requests per second", Budget: "≥ 20000", Measured: fmt.Sprintf("%.0f (%d clients)", rate, clients), Judged: true, Over: rate < 20_000},
		timed("agent: the same: p99", 5*time.Millisecond, asked.percentile(99), fmt.Sprintf("(p50 %s, n=%d)", millis(asked.median()), len(asked))),
		timed("agent: from a change to the doorbell: p99", 10*time.Millisecond, rings.percentile(99), fmt.Sprintf("(p50 %s, n=%d)", millis(rings.median()), len(rings))),
	}
	return slices.Insert(rows, 2, away...), nil
}

// ringing is so long that garbage is collected meanwhile, more than once.
const ringing = 12 * time.Second

// settling is until what was needed to get there is over.
const settling = 2 * time.Second

// atRest: nothing changes, but for what the streams are to tell.
func atRest(ctx context.Context, r *agentRun) ([]row, error) {
	const length, streams, changes = 5 * time.Second, 1000, 20
	time.Sleep(settling)
	before := cpu()
	time.Sleep(length)
	idle := 100 * (cpu() - before).Seconds() / length.Seconds()
	told, err := r.listen(ctx, streams, changes)
	if err != nil {
		return nil, err
	}
	return []row{
		{What: "agent: at rest with 1,000 VMs: of a core", Budget: "≤ 1 %", Measured: fmt.Sprintf("%.2f %%", idle), Judged: true, Over: idle > 1},
		{What: "agent: event streams at once that miss nothing", Budget: "≥ 1000", Measured: fmt.Sprintf("%d (an event has reached all of them after %s, p99 of %d)", streams, millis(told.percentile(99)), changes), Judged: true},
	}, nil
}

// cpu is the time that this process has been given.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// agentRun is an agent that runs.
type agentRun struct {
	sled   *pretended
	socket string
	stop   func() error
}

// startAgent has an agent watch n VMs. It logs to a file, as a service does: in
// memory, what is kept of it would be copied again and again.
func startAgent(ctx context.Context, socket string, n int) (*agentRun, error) {
	s, err := inMemory(ctx)
	if err != nil {
		return nil, err
	}
	config := commands.SimulatedConfig() + "\n[nexus]\nurl = \"http://" + planeAddress + "\"\n"
	if err := s.configureAs(config); err != nil {
		return nil, err
	}
	p, records := pretend(n)
	p.Host = s.Host()
	if err := s.record(ctx, records); err != nil {
		return nil, err
	}
	log, err := os.Create(socket + ".log")
	if err != nil {
		return nil, err
	}
	env, _, _ := commands.On(p, nil)
	env.Streams.Err.Writer = log
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan int, 1)
	go func() { ended <- commands.Run(ctx, env, []string{"agent", "--listen", "unix:" + socket}) }()
	r := &agentRun{sled: p, socket: socket, stop: func() error {
		cancel()
		<-ended
		s.Close()
		return log.Close()
	}}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil && len(r.sled.rang) >= n {
			break // all are known, and told
		}
		if time.Now().After(deadline) {
			said, _ := os.ReadFile(log.Name())
			return nil, errors.Join(fmt.Errorf("the agent does not answer: %s", said), r.stop())
		}
	}
	return r, nil
}

// running is the record of the i-th instance, which runs.
func running(i int) record.Record {
	r := stopped(i)
	id := uuid.NewSHA1(uuid.NameSpaceOID, []byte(r.Name)).String()
	r.Wanted = record.WantedRunning
	r.Incarnation = &record.Incarnation{PropolisID: id, Zone: "propolis_instance_" + id, Zonepath: "/pool/ext/x/zone/" + id, Ensured: true}
	return r
}

// changing changes the state of so many VMs a second, each once before any twice,
// and gives how long after each the control plane was rung at. They change at
// times of their own, which nobody has agreed on: it is a Poisson process.
func (r *agentRun) changing(perSecond int, length time.Duration) times {
	for len(r.sled.rang) > 0 {
		<-r.sled.rang
	}
	draw := rand.New(rand.NewPCG(1, 1))
	begun, next := time.Now(), 0
	for due := time.Duration(0); due < length; due += time.Duration(draw.ExpFloat64() * float64(time.Second) / float64(perSecond)) {
		time.Sleep(time.Until(begun.Add(due)))
		r.sled.all[next%len(r.sled.all)].change()
		next++
	}
	time.Sleep(100 * time.Millisecond)
	var all times
	for len(r.sled.rang) > 0 {
		all = append(all, <-r.sled.rang)
	}
	return all
}

// whileChanging has so many VMs a second change, and gives how long those waited
// who asked the agent for states meanwhile.
func (r *agentRun) whileChanging(perSecond, clients int, length time.Duration) (times, error) {
	stop := make(chan struct{})
	var changing sync.WaitGroup
	changing.Go(func() {
		defer close(stop)
		r.changing(perSecond, length)
	})
	defer changing.Wait()
	return r.ask(clients, stop)
}

// ask has clients ask for states, each as soon as it has its answer, until stop.
func (r *agentRun) ask(clients int, stop <-chan struct{}) (times, error) {
	each, errs := make([]times, clients), make([]error, clients)
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() { each[c], errs[c] = r.client(c*len(r.sled.all)/clients, stop) })
	}
	all.Wait()
	var asked times
	for c := range clients {
		if errs[c] != nil {
			return nil, errs[c]
		}
		asked = append(asked, each[c]...)
	}
	return asked, nil
}

// client asks on one connection. It reads no more of an answer than it must: its
// own time is not the agent's.
func (r *agentRun) client(at int, stop <-chan struct{}) (asked times, err error) {
	conn, err := net.Dial("unix", r.socket)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	for ; ; at++ {
		select {
		case <-stop:
			return asked, nil
		default:
		}
		id := r.sled.all[at%len(r.sled.all)].id
		begun := time.Now()
		if _, err := io.WriteString(conn, stateRequest(id)); err != nil {
			return nil, err
		}
		if err := answered(in); err != nil {
			return nil, err
		}
		asked = append(asked, time.Since(begun))
	}
}

func stateRequest(id string) string {
	return "GET /vmms/" + id + "/state HTTP/1.1\r\nHost: sled\r\napi-version: 48.0.0\r\n\r\n"
}

// answered reads an answer, which must be 200.
func answered(in *bufio.Reader) error {
	length := 0
	for first := true; ; first = false {
		line, err := in.ReadSlice('\n')
		switch {
		case err != nil:
			return err
		case first && !bytes.HasPrefix(line, []byte("HTTP/1.1 200")):
			return fmt.Errorf("the agent answers %q", line)
		case len(line) == 2:
			_, err = in.Discard(length)
			return err
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
}

// listen opens so many streams of events, changes one VM after the other, and
// gives how long each event took to reach all of them.
func (r *agentRun) listen(ctx context.Context, streams, changes int) (times, error) {
	var got atomic.Int64
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	var open atomic.Int64
	for range streams {
		conn, err := net.Dial("unix", r.socket)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { conn.Close() })
		all.Go(func() {
			_, _ = io.WriteString(conn, "GET /events?after=9007199254740991 HTTP/1.1\r\nHost: sled\r\n\r\n")
			in := bufio.NewReader(conn)
			for {
				line, err := in.ReadSlice('\n')
				switch {
				case err != nil:
					return
				case len(line) == 2:
					open.Add(1)
				case bytes.HasPrefix(line, []byte("event: vmm")):
					got.Add(1)
				}
			}
		})
	}
	if err := until(func() bool { return open.Load() >= int64(streams) }); err != nil {
		return nil, fmt.Errorf("%d of %d streams have begun", open.Load(), streams)
	}
	time.Sleep(100 * time.Millisecond)
	var told times
	for n := range changes {
		begun := time.Now()
		r.sled.all[n].change()
		if err := until(func() bool { return got.Load() >= int64(streams*(n+1)) }); err != nil {
			return nil, fmt.Errorf("of %d events on %d streams %d have come", n+1, streams, got.Load())
		}
		told = append(told, time.Since(begun))
	}
	return told, nil
}

func until(holds func() bool) error {
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond / 4) {
		if time.Now().After(deadline) {
			return context.DeadlineExceeded
		}
	}
	return nil
}

// planeAddress is where the control plane is pretended to be.
const planeAddress = "10.99.0.1:12221"
