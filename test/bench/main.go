// Bench measures sledctl against its budgets, on the simulated sled, and
// prints a table.
//
// usage: go run ./test/bench [-strict] [-profile ROW] PATH-TO-SLEDCTL
// usage: go run ./test/bench -chart FILE
//
// Each measurement is taken by a process of its own, so that none pays for the heap that
// another has left. With -profile only the measurements whose name contains ROW are taken, by
// this process, and a CPU profile of them is written, for go tool pprof.
//
// Own time is the time of a command line without the time in which a host
// command or a request was under way; writing files counts. Where a row has no
// process of its own, the command line is run in the measurement's, by the code
// that the program runs, so that its start is not in the figure: it has a row
// of its own.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sledctl/sledctl/commands/cli"
)

// profileFile is where -profile writes.
const profileFile = "bench.pprof"

func main() {
	strict := flag.Bool("strict", false, "exit 1 if something is over its budget")
	profile := flag.String("profile", "", "take only the measurements whose name contains `ROW`, and write a CPU profile to "+profileFile)
	only := flag.Int("only", -1, "take only the `N`-th measurement, and print its rows as JSON: what bench calls itself with")
	chart := flag.String("chart", "", "only draw what runs when as forty VMs are brought up, as SVG to `FILE`")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: bench [-strict] [-profile ROW] PATH-TO-SLEDCTL, or bench -chart FILE")
		flag.PrintDefaults()
	}
	flag.Parse()
	if *chart != "" {
		if err := drawMorning(context.Background(), *chart); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	cli.CollectLate() // as the program does
	rows, err := take(context.Background(), flag.Arg(0), *profile, *only)
	if err == nil && *only >= 0 {
		if err = json.NewEncoder(os.Stdout).Encode(rows); err == nil {
			return
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	print(os.Stdout, rows)
	if slices.ContainsFunc(rows, func(r row) bool { return r.Missed || *strict && r.Over }) {
		os.Exit(1)
	}
}

// take takes all measurements, or with a profile those of a name, or only one.
func take(ctx context.Context, binary, profile string, only int) ([]row, error) {
	dir, err := os.MkdirTemp("", "sledctl-bench.")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	binary, err = filepath.Abs(binary)
	if err != nil {
		return nil, err
	}
	if _, err := exec.LookPath(binary); err != nil {
		return nil, err
	}
	all := bench{binary: binary, dir: dir}.measurements()
	switch {
	case only >= len(all):
		return nil, fmt.Errorf("there are %d measurements, and no number %d", len(all), only)
	case only >= 0:
		return measure(ctx, all[only:only+1])
	case profile == "":
		return each(ctx, binary, all)
	}
	named := slices.DeleteFunc(slices.Clone(all), func(m measurement) bool { return !strings.Contains(m.name, profile) })
	if len(named) == 0 {
		var names []string
		for _, m := range all {
			names = append(names, m.name)
		}
		return nil, fmt.Errorf("no measurement is called %q: want a part of one of these: %s", profile, strings.Join(names, "; "))
	}
	out, err := os.Create(profileFile)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	if err := pprof.StartCPUProfile(out); err != nil {
		return nil, err
	}
	defer pprof.StopCPUProfile()
	return measure(ctx, named)
}

// each takes measurements one after the other, as they would disturb each other, each by a
// process of its own. What cannot be measured is a row that says so: the others stand.
func each(ctx context.Context, binary string, all []measurement) (rows []row, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for n, m := range all {
		var said bytes.Buffer
		c := exec.CommandContext(ctx, self, "-only", strconv.Itoa(n), binary)
		c.Stderr = io.MultiWriter(os.Stderr, &said)
		out, err := c.Output()
		var more []row
		if err == nil {
			err = json.Unmarshal(out, &more)
		}
		if err != nil {
			more = []row{{What: m.name, Measured: "not measured: " + lastLine(said.String(), err), Missed: true}}
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// lastLine is what a process said last, or the error of one that said nothing.
func lastLine(said string, err error) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return last
	}
	return err.Error()
}

// bench is what the measurements share.
type bench struct {
	binary string
	dir    string // empty, and gone afterwards
}

// measurement takes the rows of one name.
type measurement struct {
	name string
	take func(context.Context) ([]row, error)
}

func (b bench) measurements() []measurement {
	return []measurement{
		{"the machine", b.noise},
		{"start-up", b.startUp},
		{"bootstrap", b.bootstrap},
		{"instance ensure", b.fullEnsure},
		{"instance ensure, nothing to do", b.idleEnsure},
		{"waits", b.waits},
		{"instance ensure against its longest chain", b.longestChain},
		{"instance ensure from spares", b.fromSpares},
		{"the morning of forty VMs", b.morning},
		{"instance list", b.lists},
		{"events", b.events},
		{"looks at a thousand that run", b.looks},
		{"growth", b.growth},
		{"reap", b.reap},
		{"64 at once", b.crowd},
		{"a large sled", b.large},
		{"agent", b.agents},
		{"what an agent takes", b.memory},
		{"control planes", b.planes},
		{"next to peers", b.peers},
		{"images", b.images},
		{"host commands", b.counts},
	}
}

// measure takes measurements one after the other in this process.
func measure(ctx context.Context, measurements []measurement) ([]row, error) {
	var rows []row
	for _, m := range measurements {
		start := time.Now()
		more, err := m.take(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		fmt.Fprintf(os.Stderr, "%s: measured in %.1f s\n", m.name, time.Since(start).Seconds())
		rows = append(rows, more...)
		runtime.GC() // what one leaves behind is not the next one's
	}
	return rows, nil
}
