package e2e

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// spent is the processor time that each process of a fleet has taken. The sleds are this process.
type spent map[string]time.Duration

// spent reads it from the system; what has ended is left out.
func (f *Fleet) spent() spent {
	all := spent{"sleds": processor(os.Getpid())}
	for server, id := range f.IDs() {
		all[string(server)] = processor(id)
	}
	if p := f.leader.Load(); p != nil {
		all["controller"] = processor(p.ID())
	}
	return all
}

// since is what was taken after before.
func (s spent) since(before spent) spent {
	now := maps.Clone(s)
	for name, took := range before {
		now[name] -= took
	}
	return now
}

// per is what was taken for each of so many, in ms.
func (s spent) per(count float64) string {
	var total time.Duration
	var text strings.Builder
	for _, name := range slices.SortedFunc(maps.Keys(s), func(a, b string) int { return int(s[b] - s[a]) }) {
		total += s[name]
		fmt.Fprintf(&text, ", %s %.2f", name, s[name].Seconds()*1000/count)
	}
	return fmt.Sprintf("%.2f ms%s", total.Seconds()*1000/count, text.String())
}

// processor is the processor time of a process, in hundredths of a second; 0 of one that has ended.
func processor(id int) time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(data), ") ") // the name, which may have blanks, is before
	words := strings.Fields(after)
	const user, system, tick = 11, 12, 10 * time.Millisecond // of proc(5), without the first two
	var total time.Duration
	for _, at := range []int{user, system} {
		n, _ := strconv.Atoi(words[at])
		total += time.Duration(n) * tick
	}
	return total
}
