package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// requests are those that the API server has answered, by verb and resource.
func (f *Fleet) requests() map[string]int {
	f.t.Helper()
	label := regexp.MustCompile(`(resource|subresource|verb)="([^"]*)"`)
	all := map[string]int{}
	for line := range strings.Lines(f.Must("get", "--raw", "/metrics")) {
		if !strings.HasPrefix(line, "apiserver_request_total{") {
			continue
		}
		is := map[string]string{}
		for _, m := range label.FindAllStringSubmatch(line, -1) {
			is[m[1]] = m[2]
		}
		words := strings.Fields(line)
		count, err := strconv.ParseFloat(words[len(words)-1], 64)
		f.ok(err)
		all[strings.TrimSpace(is["verb"]+" "+is["resource"]+" "+is["subresource"])] += int(count)
	}
	return all
}

// per is how many requests there were since for each of so many.
func (f *Fleet) per(count int, before map[string]int) string {
	f.t.Helper()
	now, total := f.requests(), 0
	for what, n := range before {
		now[what] -= n
	}
	var text strings.Builder
	for _, what := range slices.SortedFunc(maps.Keys(now), func(a, b string) int { return cmp.Compare(now[b], now[a]) }) {
		total += now[what]
		if n := float64(now[what]) / float64(count); n >= 0.2 {
			fmt.Fprintf(&text, ", %.1f %s", n, what)
		}
	}
	return fmt.Sprintf("%.1f requests each%s", float64(total)/float64(count), text.String())
}
