package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sledctl/sledctl/engine/plan"
)

// forty is how many VMs a sled has in the morning.
const forty = 40

// In memory nothing but sledctl is in the way of the longest chain of one VM; in a
// directory every host command is a process, and all of them share the cores.
const (
	morningInMemory    = 1.3
	morningInDirectory = 1.6
)

// morning compares what an operator waits for with the longest chain of one VM, at the
// pace of a real sled: forty VMs that are stopped, deleted, or brought up after a
// reboot.
func (b bench) morning(ctx context.Context) ([]row, error) {
	alone, err := oneAlone(ctx)
	if err != nil {
		return nil, fmt.Errorf("one VM: %w", err)
	}
	many, err := fortyInMemory(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("in memory: %w", err)
	}
	rows := against(alone, many, "in memory", morningInMemory)
	if many, err = b.fortyInDirectory(ctx); err != nil {
		return nil, fmt.Errorf("in a directory: %w", err)
	}
	return append(rows, against(alone, many, "in a directory", morningInDirectory)...), nil
}

// day is how long each of what is done with VMs took.
type day struct{ up, stop, remove time.Duration }

func against(alone, many day, where string, budget float64) []row {
	one := func(what string, chain, took time.Duration) row {
		ratio := float64(took) / float64(chain)
		return row{
			What: fmt.Sprintf("40 VMs %s, %s, against the longest chain of one", what, where), Budget: fmt.Sprintf("≤ %.1f", budget),
			Measured: fmt.Sprintf("%.2f (%.2f s / %.2f s)", ratio, took.Seconds(), chain.Seconds()), Judged: true, Over: ratio > budget,
		}
	}
	return []row{
		one("after a reboot: bootstrap, instance ensure --all", alone.up, many.up),
		one("instance stop --all", alone.stop, many.stop),
		one("instance delete of 40 names", alone.remove, many.remove),
	}
}

// oneAlone is the longest chain of steps of one VM.
func oneAlone(ctx context.Context) (day, error) {
	s, err := slowWith(ctx, 1)
	if err != nil {
		return day{}, err
	}
	defer s.Close()
	if _, err := s.run(ctx, nil, "bootstrap"); err != nil {
		return day{}, err
	}
	var d day
	for _, part := range []struct {
		took *time.Duration
		args []string
	}{
		{&d.up, []string{"instance", "ensure", "--all"}},
		{&d.stop, []string{"instance", "stop", "--all"}},
		{&d.remove, []string{"instance", "delete", "vm00"}},
	} {
		if part.took == &d.remove { // what runs is deleted, as of the forty
			if _, err := s.run(ctx, nil, "instance", "start", "vm00"); err != nil {
				return d, err
			}
		}
		var c chainOf
		if _, err := s.run(ctx, c.observe, part.args...); err != nil {
			return d, err
		}
		*part.took = c.longest()
	}
	return d, nil
}

// slowWith is a sled that has been rebooted under n VMs, and has the times of a real one
// since.
func slowWith(ctx context.Context, n int) (machine, error) {
	s, err := inMemory(ctx)
	if err != nil {
		return s, err
	}
	for _, name := range vmNames(n) {
		if _, err := s.run(ctx, nil, "instance", "ensure", name, "--memory", "1G", "--nic", "over=net0"); err != nil {
			return s, err
		}
	}
	if err := s.Reboot(ctx); err != nil {
		return s, err
	}
	return s, s.slow(ctx)
}

func vmNames(n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("vm%02d", i))
	}
	return names
}

// fortyInMemory takes the day of forty VMs by command lines in this process. Observe,
// unless nil, hears of all steps of the bring-up.
func fortyInMemory(ctx context.Context, observe func(plan.Event), flags ...string) (day, error) {
	s, err := slowWith(ctx, forty)
	if err != nil {
		return day{}, err
	}
	defer s.Close()
	line := func(observe func(plan.Event), args ...string) (time.Duration, error) {
		r, err := s.run(ctx, observe, append(args, flags...)...)
		return r.wall, err
	}
	booted, err := s.run(ctx, nil, "bootstrap")
	if err != nil {
		return day{}, err
	}
	var d day
	if d.up, err = line(observe, "instance", "ensure", "--all"); err != nil {
		return d, err
	}
	d.up += booted.wall
	if d.stop, err = line(nil, "instance", "stop", "--all"); err != nil {
		return d, err
	}
	if _, err = line(nil, append([]string{"instance", "start"}, vmNames(forty)...)...); err != nil {
		return d, err
	}
	d.remove, err = line(nil, append([]string{"instance", "delete"}, vmNames(forty)...)...)
	return d, err
}

// fortyInDirectory takes it by processes.
func (b bench) fortyInDirectory(ctx context.Context) (day, error) {
	p := program{binary: b.binary, sled: filepath.Join(b.dir, "morning")}
	line := func(args ...string) (time.Duration, error) {
		start := time.Now()
		_, err := p.run(ctx, args...)
		return time.Since(start), err
	}
	for _, args := range [][]string{{"sim", "init", "--latency", "helios2021"}, {"bootstrap"}} {
		if _, err := line(args...); err != nil {
			return day{}, err
		}
	}
	var all sync.WaitGroup
	errs := make([]error, forty)
	for i, name := range vmNames(forty) {
		all.Go(func() { _, errs[i] = line("instance", "ensure", name, "--memory", "1G", "--nic", "over=net0") })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return day{}, err
		}
	}
	if _, err := line("sim", "reboot"); err != nil {
		return day{}, err
	}
	var d day
	again, err := line("bootstrap")
	if err != nil {
		return d, err
	}
	if d.up, err = line("instance", "ensure", "--all"); err != nil {
		return d, err
	}
	d.up += again
	if d.stop, err = line("instance", "stop", "--all"); err != nil {
		return d, err
	}
	if _, err = line(append([]string{"instance", "start"}, vmNames(forty)...)...); err != nil {
		return d, err
	}
	d.remove, err = line(append([]string{"instance", "delete"}, vmNames(forty)...)...)
	return d, err
}

// bar is one step of one VM, from the beginning of the picture.
type bar struct {
	verb     string
	from, to time.Duration
}

// drawMorning writes what ran when for forty VMs after a reboot: eight at a time, as it
// was until 11c88b6, and as it is by default now.
func drawMorning(ctx context.Context, file string) error {
	var panels []panel
	for _, p := range []struct {
		title string
		flags []string
	}{{"eight at a time", []string{"--parallel", "8"}}, {"as it is, up to 64 at a time", nil}} {
		var mu sync.Mutex
		var bars []bar
		var begun time.Time
		observe := func(e plan.Event) {
			mu.Lock()
			defer mu.Unlock()
			now := time.Now()
			if begun.IsZero() {
				begun = now
			}
			if e.Kind == plan.Finished {
				bars = append(bars, bar{e.Action.Step.Verb(), now.Sub(begun) - e.Elapsed, now.Sub(begun)})
			}
		}
		d, err := fortyInMemory(ctx, observe, p.flags...)
		if err != nil {
			return err
		}
		panels = append(panels, panel{fmt.Sprintf("instance ensure --all of 40 VMs after a reboot, %s: %.1f s", p.title, d.up.Seconds()), bars})
	}
	return os.WriteFile(file, []byte(draw(panels)), 0o644)
}

// panel is one part of the picture.
type panel struct {
	title string
	bars  []bar
}

// draw is the picture as SVG: a band for each verb, in the order in which the verbs
// begin, and a line for each step in it.
func draw(panels []panel) string {
	const left, width, band, top = 170, 780, 44, 34
	var longest time.Duration
	height := 0
	for _, p := range panels {
		height += top + band*len(verbs(p.bars)) + 30
		for _, b := range p.bars {
			longest = max(longest, b.to)
		}
	}
	x := func(d time.Duration) float64 { return left + width*d.Seconds()/longest.Seconds() }
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", left+width+20, height)
	fmt.Fprintf(&out, `<rect width="100%%" height="100%%" fill="white"/>`+"\n")
	y := 0
	for _, p := range panels {
		fmt.Fprintf(&out, `<text x="10" y="%d" font-weight="bold">%s</text>`+"\n", y+20, p.title)
		y += top
		for i, verb := range verbs(p.bars) {
			fmt.Fprintf(&out, `<text x="10" y="%d">%s</text>`+"\n", y+band/2+4, verb)
			fmt.Fprintf(&out, `<line x1="%d" x2="%d" y1="%d" y2="%d" stroke="#ddd"/>`+"\n", left, left+width, y+band, y+band)
			n := 0
			for _, b := range p.bars {
				if b.verb != verb {
					continue
				}
				at := float64(y) + 2 + float64(n%forty)
				n++
				fmt.Fprintf(&out, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="%s" stroke-width="0.9"/>`+"\n",
					x(b.from), max(x(b.to), x(b.from)+0.8), at, at, []string{"#1b6ca8", "#c0562b"}[i%2])
			}
			y += band
		}
		for at := time.Duration(0); at <= longest; at += time.Second {
			fmt.Fprintf(&out, `<text x="%.1f" y="%d" fill="#555">%d s</text>`+"\n", x(at), y+16, int(at.Seconds()))
		}
		y += 30
	}
	out.WriteString("</svg>\n")
	return out.String()
}

// verbs are those of bars, in the order of their first beginnings.
func verbs(bars []bar) []string {
	var names []string
	for _, b := range slices.SortedFunc(slices.Values(bars), func(a, b bar) int { return int(a.from - b.from) }) {
		if !slices.Contains(names, b.verb) {
			names = append(names, b.verb)
		}
	}
	return names
}
