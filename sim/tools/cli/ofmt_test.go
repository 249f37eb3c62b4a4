package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type pair struct{ a, b string }

func pairColumns() []Column[pair] {
	return []Column[pair]{
		{"LEFT", 6, func(p pair) string { return p.a }},
		{"RIGHT", 6, func(p pair) string { return p.b }},
	}
}

func printPairs(t *testing.T, fields string, parsable, wrap bool, rows ...pair) string {
	t.Helper()
	out, fatal := Table(pairColumns(), &fields, parsable, wrap, rows)
	if fatal != "" {
		t.Fatal(fatal)
	}
	return out
}

// The rules are those of ofmt_print_field in usr/src/lib/libofmt/common/ofmt.c.
func TestParsableLinesEscapeOnlyAmongSeveralFields(t *testing.T) {
	row := pair{`2:8:20`, `a\b`}
	for fields, want := range map[string]string{
		"left":       "2:8:20\n",
		"right":      `a\b` + "\n",
		"left,right": `2\:8\:20:a\\b` + "\n",
		"RIGHT,left": `a\\b:2\:8\:20` + "\n",
	} {
		if got := printPairs(t, fields, true, false, row); got != want {
			t.Errorf("-p -o %s: %q, want %q", fields, got, want)
		}
	}
}

func TestParsableEmptyValuesStayEmptyAndTablesShowDashes(t *testing.T) {
	if got := printPairs(t, "left,right", true, false, pair{}); got != ":\n" {
		t.Errorf("parsable: %q", got)
	}
	if got := printPairs(t, "left,right", false, false, pair{}); got != "LEFT  RIGHT\n--    --\n" {
		t.Errorf("table: %q", got)
	}
}

func TestWideValuesPushTheNextOnesAndNarrowOnesGiveWay(t *testing.T) {
	columns := append(pairColumns(), Column[pair]{"LAST", 4, func(pair) string { return "x" }})
	got, _ := Table(columns, nil, false, false, []pair{{"sevenxx", "b"}})
	want := "LEFT  RIGHT LAST\nsevenxx b   x\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestHeaderIsRepeatedOnEachPage(t *testing.T) {
	rows := make([]pair, 50)
	out := printPairs(t, "left", false, false, rows...)
	if n := strings.Count(out, "LEFT"); n != 3 {
		t.Errorf("%d headers over 50 rows, want 3: a page has 24 rows, its header among them", n)
	}
}

func TestListsBreakAtCommasWhenTheyAreTooWide(t *testing.T) {
	got := printPairs(t, "left,right", false, true, pair{"x", "aa,bb,cc"})
	if want := "LEFT  RIGHT\nx     aa,bb,\n      cc\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAFieldThatTheDistributionLacks(t *testing.T) {
	fields := "left,x"
	if _, fatal := Table(append(pairColumns(), Column[pair]{Name: "X"}), &fields, true, false, nil); fatal != "unknown output field: `x'" {
		t.Errorf("-p -o %s: %q", fields, fatal)
	}
}

// getopt_long(3C) as libc has it, without moving operands.
func TestGetopt(t *testing.T) {
	long := map[string]byte{"temporary": 't', "link": 'l'}
	for line, want := range map[string]struct {
		options  []Option
		operands []string
	}{
		"-t -l net0 v0":      {[]Option{{Letter: 't'}, {Letter: 'l', Value: "net0"}}, []string{"v0"}},
		"-tlnet0 v0":         {[]Option{{Letter: 't'}, {Letter: 'l', Value: "net0"}}, []string{"v0"}},
		"--temporary v0":     {[]Option{{Letter: 't'}}, []string{"v0"}},
		"--link=net0 v0":     {[]Option{{Letter: 'l', Value: "net0"}}, []string{"v0"}},
		"--link net0":        {[]Option{{Letter: 'l', Value: "net0"}}, []string{}},
		"-l":                 {[]Option{{Letter: ':', Bad: "l"}}, []string{}},
		"-x v0":              {[]Option{{Letter: '?', Bad: "x"}}, []string{"v0"}},
		"--nope v0":          {[]Option{{Letter: '?', Bad: "?"}}, []string{"v0"}},
		"v0 -t":              {nil, []string{"v0", "-t"}},
		"-- -t":              {nil, []string{"-t"}},
		"-t - v0":            {[]Option{{Letter: 't'}}, []string{"-", "v0"}},
		"--temporary=yes v0": {[]Option{{Letter: '?', Bad: "?"}}, []string{"v0"}},
	} {
		options, operands := Getopt(strings.Fields(line), ":tl:", long)
		if diff := cmp.Diff(want.options, options); diff != "" {
			t.Errorf("%s: options (-want +got):\n%s", line, diff)
		}
		if diff := cmp.Diff(want.operands, operands); diff != "" {
			t.Errorf("%s: operands (-want +got):\n%s", line, diff)
		}
	}
}
