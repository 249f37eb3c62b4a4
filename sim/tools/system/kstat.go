package system

import (
	"fmt"
	"hash/fnv"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// statistic is one of the kernel's, as kstat -p prints it.
type statistic struct {
	module   string
	instance int
	name     string
	field    string
	value    string
}

// Kstat is kstat(8) with -p and selectors (usr/src/cmd/stat/kstat/kstat.c) of the fields
// that somebody reads: the boot time, what the processors are, the processor time of zones, the bytes of links.
func Kstat(tx *world.Tx, c cli.Call) cli.Reply {
	given, selectors := cli.Options(c.Args, "p", nil)
	cli.Simulated(given.Has('p') && len(selectors) > 0 && c.Zone == world.GlobalZone)
	var out strings.Builder
	for _, s := range statistics(tx) {
		if slices.ContainsFunc(selectors, s.fits) {
			fmt.Fprintf(&out, "%s:%d:%s:%s\t%s\n", s.module, s.instance, s.name, s.field, s.value)
		}
	}
	if out.Len() == 0 {
		return cli.Reply{Exit: 1}
	}
	return cli.Reply{Stdout: out.String()}
}

// fits says whether a selector is of the statistic: module:instance:name:statistic, in which what is
// empty fits all.
func (s statistic) fits(selector string) bool {
	patterns := strings.Split(selector, ":")
	cli.Simulated(len(patterns) == 4)
	for i, text := range []string{s.module, fmt.Sprint(s.instance), s.name, s.field} {
		fits, err := path.Match(patterns[i], text)
		cli.Simulated(err == nil)
		if patterns[i] != "" && !fits {
			return false
		}
	}
	return true
}

// statistics are sorted as kstat sorts them: by module, instance, name and field, without
// regard to capitals.
func statistics(tx *world.Tx) []statistic {
	all := []statistic{{"unix", 0, "system_misc", "boot_time", fmt.Sprint(tx.State.Booted.Unix())}}
	for id := range tx.Processors() { // of an EPYC 7713P
		name := fmt.Sprintf("cpu_info%d", id)
		all = append(all, statistic{"cpu_info", id, name, "family", "25"}, statistic{"cpu_info", id, name, "model", "1"}, statistic{"cpu_info", id, name, "vendor_id", "AuthenticAMD"})
	}
	all = append(all, zoneStatistics(tx, 0, world.GlobalZone, tx.State.Booted)...)
	since := map[string]time.Time{world.GlobalZone: tx.State.Booted, "": tx.State.Booted}
	for _, z := range tx.State.Zones {
		if z.Kernel != nil {
			since[z.Name] = z.Kernel.Booted
			all = append(all, zoneStatistics(tx, z.Kernel.ID, z.Name, z.Kernel.Booted)...)
		}
	}
	for _, l := range tx.State.Links {
		elapsed := tx.Now.Sub(since[l.Zone])
		all = append(all,
			statistic{"link", 0, l.Name, "obytes64", fmt.Sprint(share(elapsed, l.Name+"/out") * 20_000)},
			statistic{"link", 0, l.Name, "rbytes64", fmt.Sprint(share(elapsed, l.Name+"/in") * 10_000)})
	}
	slices.SortStableFunc(all, func(a, b statistic) int {
		if a.module == b.module && a.instance != b.instance {
			return a.instance - b.instance
		}
		return strings.Compare(strings.ToLower(a.module+":"+a.name+":"+a.field), strings.ToLower(b.module+":"+b.name+":"+b.field))
	})
	return all
}

// nameOfKstat is how much of a name the name of a kstat has (KSTAT_STRLEN).
const nameOfKstat = 30

func zoneStatistics(tx *world.Tx, id int, zone string, since time.Time) []statistic {
	name := zone[:min(len(zone), nameOfKstat)]
	elapsed := tx.Now.Sub(since)
	return []statistic{
		{"zones", id, name, "nsec_sys", fmt.Sprint(share(elapsed, zone+"/sys") * int64(time.Millisecond))},
		{"zones", id, name, "nsec_user", fmt.Sprint(share(elapsed, zone+"/user") * int64(time.Millisecond))},
		{"zones", id, name, "zonename", zone},
	}
}

// share is how many of the milliseconds that have elapsed something was busy: always the
// same share of them, of 0 to 49 %, which its name decides.
func share(elapsed time.Duration, of string) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(of))
	return max(0, elapsed.Milliseconds()) * int64(h.Sum32()%50) / 100
}
