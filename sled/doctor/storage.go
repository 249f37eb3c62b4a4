package doctor

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/illumos/system"
	"github.com/sledctl/sledctl/zfs"
)

// storageChecks ask whether what is written stays written.
func storageChecks() []Check {
	const group = "storage"
	return []Check{
		{ID: "pools", Group: group, About: "every imported pool is online", Asks: []Question{askPools}, Judge: judgePools},
		{ID: "failmode", Group: group, About: "a pool that loses its disk gives errors instead of hanging", Asks: []Question{askPools}, Judge: judgeFailmode},
		{ID: "ledger-place", Group: group, About: "the ledger outlives a reboot", Asks: []Question{askLedger, askMounts, askPools}, Judge: judgePlace},
		{ID: "sync", Group: group, About: "what is flushed to the ledger is on disk", Asks: []Question{askSync}, Judge: judgeSync},
		{ID: "clock", Group: group, About: "the clock is not behind what was written", Asks: []Question{askLedger}, Judge: judgeClock},
	}
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

func judgePools(s Seen) Finding {
	var ill []string
	worst, first := OK, ""
	for _, p := range s.Pools {
		if p.Health == "ONLINE" {
			continue
		}
		ill = append(ill, p.Name+" is "+p.Health)
		if v := poolVerdict(p); rank(v) > rank(worst) {
			worst, first = v, p.Name
		}
	}
	if ill == nil {
		return fine("%d pools are online", len(s.Pools))
	}
	f := Finding{Verdict: worst, Evidence: strings.Join(ill, ", ")}.then("zpool clear " + first)
	if worst == Fail {
		f.Hands = "bring the disk back"
	}
	return f
}

func poolVerdict(p zfs.Pool) Verdict {
	if p.Answers() {
		return Warn
	}
	return Fail
}

// judgeFailmode asks for what bootstrap sets on the pools of a sled's disks: a lone disk
// that stops must give errors, or every command that reads there hangs.
func judgeFailmode(s Seen) Finding {
	var wrong, next []string
	count := 0
	for _, p := range s.Pools {
		if kind, _ := naming.ParsePool(p.Name); kind == naming.OtherPool {
			continue
		}
		if count++; p.Failmode != "continue" {
			wrong = append(wrong, p.Name+" has failmode="+p.Failmode)
			next = append(next, "zpool set failmode=continue "+p.Name)
		}
	}
	if wrong != nil {
		return fails("%s", strings.Join(wrong, ", ")).then(next...)
	}
	return fine("continue, on %d pools of the sled's disks", count)
}

// judgePlace judges where the ledger is, or will be.
func judgePlace(s Seen) Finding {
	const hands = "set paths.ledger to a directory that outlives a reboot, or prepare an M.2"
	if len(s.Ledger) == 0 {
		internal := slices.ContainsFunc(s.Pools, func(p zfs.Pool) bool {
			kind, _ := naming.ParsePool(p.Name)
			return kind == naming.InternalPool
		})
		if internal {
			return fine("none yet: bootstrap puts the ledger on the M.2s")
		}
		return fails("there is no place for the ledger: no M.2 has a pool, and paths.ledger is not set").byHand(hands).then("sledctl bootstrap --format-blank")
	}
	var said []string
	for _, p := range s.Ledger {
		m, ok := system.MountOf(s.Mounts, p.Directory)
		switch {
		case !ok:
			return warns("no file system is known for %s", p.Directory)
		case m.Type == "tmpfs":
			return fails("%s is on tmpfs: a reboot empties it", p.Directory).byHand(hands)
		case inRAM(s.Pools, m):
			return fails("%s is on %s, a RAM disk: a reboot empties it", p.Directory, m.Special).byHand(hands)
		}
		said = append(said, m.Special)
	}
	return fine("on %s", strings.Join(slices.Compact(said), ", "))
}

// inRAM says whether a file system lies on a pool in memory.
func inRAM(pools []zfs.Pool, m system.Mount) bool {
	name, _, _ := strings.Cut(m.Special, "/")
	return m.Type == "zfs" && slices.ContainsFunc(pools, func(p zfs.Pool) bool {
		return p.Name == name && p.InMemory()
	})
}

func judgeSync(s Seen) Finding {
	var wrong, next []string
	for _, name := range slices.Sorted(maps.Keys(s.Sync)) {
		if s.Sync[name] == "disabled" {
			wrong, next = append(wrong, name), append(next, "zfs set sync=standard "+name)
		}
	}
	if wrong != nil {
		return fails("sync=disabled on %s: a power cut loses what was decided", strings.Join(wrong, ", ")).then(next...)
	}
	return fine("not disabled, on %d datasets of the ledger", len(s.Sync))
}

// behind is how far the clock may be behind the times of files.
const behind = time.Minute

func judgeClock(s Seen) Finding {
	for _, p := range s.Ledger {
		if p.Written.Sub(s.Now) > behind {
			return fails("the clock says %s, and the ledger was written at %s", s.Now.UTC().Format(time.RFC3339), p.Written.UTC().Format(time.RFC3339)).
				byHand("set the clock, and let NTP or chrony keep it")
		}
	}
	return fine("%s", s.Now.UTC().Format(time.RFC3339))
}
