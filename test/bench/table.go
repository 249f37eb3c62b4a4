package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// row is one line of the table. Without a budget there is no verdict.
type row struct {
	What, Budget, Measured string
	Judged, Over           bool
	Missed                 bool // could not be measured
}

// timed is a row about a time.
func timed(what string, budget, measured time.Duration, detail string) row {
	return row{
		What: what, Budget: "≤ " + millis(budget), Measured: millis(measured) + " " + detail,
		Judged: true, Over: measured > budget,
	}
}

// told is a row that only says what there is.
func told(what, measured string) row { return row{What: what, Measured: measured} }

func millis(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case d >= 100*time.Millisecond || d%time.Millisecond == 0:
		return fmt.Sprintf("%.0f ms", ms)
	case d >= 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.2f ms", ms)
}

// print writes the table. A time is the median of n runs, unless the row says
// otherwise.
func print(out io.Writer, rows []row) {
	fmt.Fprintf(out, "%s/%s, %d cores, %s\n\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "what\tbudget\tmeasured\t")
	for _, r := range rows {
		verdict := ""
		switch {
		case r.Over:
			verdict = "OVER"
		case r.Judged:
			verdict = "ok"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.What, r.Budget, r.Measured, verdict)
	}
	w.Flush()
	for line := range strings.Lines(table.String()) {
		fmt.Fprintln(out, strings.TrimRight(line, " \n"))
	}
}
