// Bench measures sledctl against its budgets, on the simulated sled, and
// prints a table.
//
// usage: go run ./test/bench [-strict] [-profile ROW] PATH-TO-SLEDCTL
// usage: go run ./test/bench -chart FILE
//
// With -profile only the measurements whose name contains ROW are taken, and a CPU
// profile of them is written, for go tool pprof.
//
// Own time is the time of a command line without the time in which a host
// command or a request was under way; writing files counts. Where a row has no
// process of its own, the command line is run in this process, by the code
// that the program runs, so that its start is not in the figure: it has a row
// of its own.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/commands/cli"
)

// profileFile is where -profile writes.
const profileFile = "bench.pprof"

func main() {
	strict := flag.Bool("strict", false, "exit 1 if something is over its budget")
	profile := flag.String("profile", "", "take only the measurements whose name contains `ROW`, and write a CPU profile to "+profileFile)
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
	rows, err := take(context.Background(), flag.Arg(0), *profile)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	print(os.Stdout, rows)
	if *strict && over(rows) > 0 {
		os.Exit(1)
	}
}

// take takes all measurements, or with a profile those of a name.
func take(ctx context.Context, binary, profile string) ([]row, error) {
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
	if profile == "" {
		return measure(ctx, all)
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

// measure takes measurements one after the other: they would disturb each other.
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
