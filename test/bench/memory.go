package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// memory measures how much larger an agent is that watches 10,000 VMs than one
// that watches none: what the system has given to its process. The two are the
// program itself, as it runs on a sled, with real files and connections; the far
// ends of these are here. There is no NAPI: the agent looks again and again at all
// NICs of the sled, which takes more than anything else that it does at rest.
func (b bench) memory(ctx context.Context) ([]row, error) {
	const vms = 10_000
	// What was needed to begin is given back bit by bit, behind the next collection
	// (runtime/mgcscavenge.go): there is one every two minutes.
	const settled = 150 * time.Second
	var agents [2]*alone
	for i, n := range []int{0, vms} {
		a, err := b.alone(ctx, n)
		if err != nil {
			return nil, err
		}
		defer a.stop()
		agents[i] = a
	}
	time.Sleep(settled)
	var resident [2]int
	for i, a := range agents {
		var err error
		if resident[i], err = a.resident(ctx); err != nil {
			return nil, err
		}
	}
	perVM := float64(resident[1]-resident[0]) / vms
	return []row{{
		What: "agent: memory per VM, of 10,000", Budget: "≤ 20 KiB", Judged: true, Over: perVM > 20,
		Measured: fmt.Sprintf("%.1f KiB (resident, of a process of its own: %d MiB; without a VM %d MiB)", perVM, resident[1]>>10, resident[0]>>10),
	}}, nil
}

// alone is an agent that is a process of its own.
type alone struct {
	pid  int
	stop func()
}

// alone has one watch n VMs, whose Propolis servers and control plane are here.
func (b bench) alone(ctx context.Context, n int) (*alone, error) {
	p, records := pretend(n)
	far, err := net.Listen("tcp4", ":0")
	if err != nil {
		return nil, err
	}
	go p.Serve(far)
	dir := filepath.Join(b.dir, fmt.Sprint("alone", n))
	s, err := inDirectory(ctx, dir)
	if err == nil {
		err = s.record(ctx, records)
		s.Close()
	}
	if err != nil {
		far.Close()
		return nil, err
	}
	port := far.Addr().(*net.TCPAddr).Port
	cmd := exec.CommandContext(ctx, b.binary, "sim", "shell", "--", "sh", "-c", "echo $$; exec sledctl agent")
	cmd.Env = append(os.Environ(), "SLEDCTL_HOST=sim:"+dir, "SLEDCTL_CONFIG=", fmt.Sprint("SLEDCTL_PROPOLIS_PORT=", port),
		fmt.Sprint("SLEDCTL_NEXUS_URL=http://127.0.0.1:", port), "SLEDCTL_NICS_FIRST_LOOK=20s")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		far.Close()
		return nil, err
	}
	a := &alone{}
	_, err = fmt.Fscan(out, &a.pid)
	a.stop = func() {
		if a.pid > 0 {
			_ = syscall.Kill(a.pid, syscall.SIGTERM)
		}
		_ = cmd.Wait()
		far.Close()
	}
	if err != nil {
		a.stop()
		return nil, fmt.Errorf("sim shell: %w: %s", err, &said)
	}
	if err := until(func() bool { return len(p.rang) >= n }); err != nil {
		a.stop()
		return nil, fmt.Errorf("of %d VMs the agent has reported %d: %s", n, len(p.rang), &said)
	}
	return a, nil
}

// resident is how much of a process is in memory, in KiB.
func (a *alone) resident(ctx context.Context) (int, error) {
	said, err := exec.CommandContext(ctx, "ps", "-o", "rss=", "-p", strconv.Itoa(a.pid)).Output()
	if err != nil {
		return 0, fmt.Errorf("ps: %w", err)
	}
	return strconv.Atoi(string(bytes.TrimSpace(said)))
}
