package histories

import (
	"regexp"
	"strings"
)

// unmarked leaves out of a world what a sled that is as it was may have otherwise:
// the witness names what the ledger drew, a base is made again once the ledger
// was lost, and a boot leaves unmounted what nobody needs: those of a base, and of
// a pool that comes late.
func unmarked(text string) string {
	lines := strings.Split(text, "\n")
	kept, ofBase := lines[:0], false
	for _, line := range lines {
		line = ungenerated(line)
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case key == `"sledctl:ledger"` || strings.HasPrefix(key, `"org.opensolaris.libbe:`):
			line = key
		case key == `"sledctl-base"`:
			ofBase = true // the generation follows
		case ofBase && len(key) > 1 && key[1] >= '0' && key[1] <= '9':
			line, ofBase = "", false
		case key == `"mounted"` && late(value):
			last := &kept[len(kept)-1] // it is the last of its dataset
			*last = strings.TrimSuffix(*last, ",")
			continue
		}
		kept = append(kept, line)
	}
	return strings.Join(kept, "\n")
}

// ungenerated leaves out which generation a base is of: what follows its pool's
// eight characters, or rpool.
func ungenerated(line string) string {
	const prefix, pool, root = "propolis_base_", 8, "rpool_"
	at := strings.Index(line, prefix)
	if at < 0 {
		return line
	}
	at += len(prefix)
	if strings.HasPrefix(line[at:], root) {
		at += len(root) - 1
	} else {
		at += pool
	}
	if at >= len(line) {
		return line
	}
	return line[:at] + ungenerated(strings.TrimLeft(line[at:], "_0123456789"))
}

func late(mountpoint string) bool {
	pool := strings.HasPrefix(mountpoint, `"/oxi_`) || strings.HasPrefix(mountpoint, `"/oxp_`)
	return pool && strings.Count(mountpoint, "/") == 1 || strings.Contains(mountpoint, "propolis_base")
}

// inherits leaves out an MTU of VNICs that is what most links have: a run that goes on
// where another one died does not set what the VNIC already inherits.
func inherits(world string) string { return mtu.ReplaceAllString(world, "") }

var mtu = regexp.MustCompile(`,\s*"properties": {\s*"mtu": "(1500|9000)"\s*}`)
