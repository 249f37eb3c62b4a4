// Bench measures sledctl against its budgets, on the simulated sled, and
// prints a table.
//
// usage: go run ./test/bench [-strict] PATH-TO-SLEDCTL
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
	"time"
)

func main() {
	strict := flag.Bool("strict", false, "exit 1 if something is over its budget")
	flag.Usage = func() { fmt.Fprintln(os.Stderr, "usage: bench [-strict] PATH-TO-SLEDCTL") }
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	rows, err := measure(context.Background(), flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	print(os.Stdout, rows)
	if *strict && over(rows) > 0 {
		os.Exit(1)
	}
}

// bench is what the measurements share.
type bench struct {
	binary string
	dir    string // empty, and gone afterwards
}

// measure takes all measurements, one after the other: they would disturb each
// other.
func measure(ctx context.Context, binary string) ([]row, error) {
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
	b := bench{binary: binary, dir: dir}
	var rows []row
	for _, m := range []struct {
		what string
		take func(context.Context) ([]row, error)
	}{
		{"the machine", b.noise},
		{"start-up", b.startUp},
		{"bootstrap", b.bootstrap},
		{"instance ensure", b.fullEnsure},
		{"instance ensure, nothing to do", b.idleEnsure},
		{"waits", b.waits},
		{"instance ensure against its longest chain", b.longestChain},
		{"instance list", b.lists},
		{"reap", b.reap},
		{"64 at once", b.crowd},
		{"agent", b.agents},
		{"host commands", b.counts},
	} {
		start := time.Now()
		more, err := m.take(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.what, err)
		}
		fmt.Fprintf(os.Stderr, "%s: measured in %.1f s\n", m.what, time.Since(start).Seconds())
		rows = append(rows, more...)
		runtime.GC() // what one leaves behind is not the next one's
	}
	return rows, nil
}
