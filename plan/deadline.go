package plan

import "time"

// limit is how long a step of a verb may take (0: as long as the operator
// allows) and whether it only waits. A step that only waits is abandoned at once when the run ends early; one that
// changes the host is let finish.
type limit struct {
	deadline time.Duration
	waits    bool
}

// limitOf is the one table of default deadlines. They are several times the
// slowest published durations (omicron#3010, #4399, #5318, #7918: single-user
// took up to 70 s under load, installs 8 s), because a deadline that fires
// leaves work behind.
func limitOf(verb string) limit {
	switch verb {
	case "zone.install":
		return limit{deadline: 10 * time.Minute}
	case "zone.clone", "zone.uninstall", "zone.discard", "smf.seed":
		return limit{deadline: 5 * time.Minute}
	case "zone.boot", "zone.halt":
		return limit{deadline: 3 * time.Minute}
	case "propolis.ensure", "propolis.run", "propolis.await-state", "propolis.power-off", "propolis.arrive", "instance.send":
		// How long a machine takes is its own affair: a terabyte of memory took more
		// than a minute (omicron#7918). The server goes on whatever we do, so that
		// nobody need wait for its answer. The last has a limit of its own.
		return limit{waits: true}
	case "smf.await", "propolis.await-http":
		return limit{deadline: 3 * time.Minute, waits: true}
	case "ipadm.await-address":
		return limit{deadline: 2 * time.Minute, waits: true}
	}
	return limit{deadline: time.Minute}
}

// UndoTime is how long taking back may last, beyond the run's own deadline.
const UndoTime = time.Minute
