package smf

import (
	"time"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/scf"
)

// The events of a boot.
const (
	doorKind   = "smf-door"   // svc.configd answers
	importKind = "smf-import" // early-manifest-import is through, and services start
)

// ServiceHandlers carry out the events of SMF; methods run in the shell.
func ServiceHandlers(shell Shell) world.Handlers {
	return world.Handlers{
		doorKind:   func(tx *world.Tx, e *world.Event) { openDoor(tx, e.Zone) },
		importKind: func(tx *world.Tx, e *world.Event) { earlyImport(tx, e.Zone) },
		methodKind: func(tx *world.Tx, e *world.Event) { runMethod(tx, e, shell) },
		exitKind:   func(tx *world.Tx, e *world.Event) { methodExit(tx, e) },
	}
}

// The parts of the time from boot to the single-user milestone with a seeded
// repository: until the door opens, for the early import, and for the chain of
// services.
//
// Guess parts-of-a-seeded-boot: from boot to single-user a seeded zone spends 30 % until
// svc.configd's door is there, then early-manifest-import, then 40 % on services. The sums are
// published: 1.31 s seeded, 17.9 s not (omicron PR 385).
// Check: `svcs -o stime,fmri` in a fresh zone
const (
	doorShare  = 0.3
	chainShare = 0.4
)

func share(d time.Duration, part float64) time.Duration { return time.Duration(float64(d) * part) }

// BootServices is svc.startd of a zone that starts running. The global zone's
// boot is not simulated: its services come up at once.
func BootServices(tx *world.Tx, zone string) {
	closeDoor(tx, zone) // what lies there is of another boot: the file system is a new one
	if tx.State.Services == nil {
		tx.State.Services = map[string]*world.Repository{}
	}
	tx.TouchServices(zone)
	tx.State.Services[zone] = &world.Repository{Instances: map[string]*world.Service{}}
	if zone == world.GlobalZone {
		openDoor(tx, zone)
		return
	}
	tx.Schedule(share(tx.Latency(world.StepMilestone), doorShare)+tx.Slower(world.FaultSlowDoor, zone), doorKind, zone, "")
}

// HaltServices is the end of a zone's SMF: its processes are gone, and what
// was only in memory is lost.
func HaltServices(tx *world.Tx, zone string) {
	for _, kind := range []string{doorKind, importKind, methodKind, exitKind} {
		tx.Cancel(kind, zone, "")
	}
	killZone(tx, zone)
	closeDoor(tx, zone)
	tx.TouchServices(zone)
	delete(tx.State.Services, zone)
}

// doorPath is where svc.configd answers, in a file system in memory
// (REPOSITORY_DOOR_NAME in usr/src/lib/libscf/inc/repcache_protocol.h).
const doorPath = "/etc/svc/volatile/repository_door"

func closeDoor(tx *world.Tx, zone string) {
	_ = world.RemoveFile(tx.Files, tx.ZonePathOf(zone, doorPath))
}

// openDoor is svc.configd opening the repository. A file that it cannot read
// leaves the zone without one: svc.startd waits for an administrator.
func openDoor(tx *world.Tx, zone string) {
	r := Repository(tx, zone)
	if r == nil {
		return
	}
	repository, err := LoadRepository(tx, zone)
	if err != nil {
		return
	}
	r.Door = tx.Now
	_ = world.Put(tx.Files, tx.ZonePathOf(zone, doorPath), nil, 0o644) // a zone without a root has none
	for fmri, state := range map[string]string{RestarterFMRI: Online, EarlyManifestImportFMRI: Offline} {
		r.Instances[fmri] = &world.Service{FMRI: fmri, Enabled: true, Duration: "transient"}
		become(tx, r.Instances[fmri], state, "", "")
	}
	if zone == world.GlobalZone {
		earlyImport(tx, zone)
		return
	}
	tx.Schedule(importTime(tx, zone, repository)+tx.Slower(world.FaultSlowMilestone, zone), importKind, zone, "")
}

// importTime is how long early-manifest-import takes: most of it is spent on
// manifests that the repository does not have yet.
func importTime(tx *world.Tx, zone string, repository *scf.Repository) time.Duration {
	seeded := tx.Latency(world.StepMilestone)
	total := seeded
	names := append(zoneManifests(tx, zone, systemManifests), zoneManifests(tx, zone, otherManifests)...)
	if len(changed(tx, zone, repository, names)) > 0 {
		total = tx.Latency(world.StepMilestoneUnseeded)
	}
	return max(0, total-share(seeded, doorShare)-share(seeded, chainShare))
}

// earlyImport is the end of early-manifest-import, which svc.startd runs before
// any service: the system's manifests, and the site profile as far as its
// services are known by then. Then the graph is built.
func earlyImport(tx *world.Tx, zone string) {
	r := Repository(tx, zone)
	if r == nil {
		return
	}
	repository, err := LoadRepository(tx, zone)
	if err != nil {
		return
	}
	importManifests(tx, zone, repository, zoneManifests(tx, zone, systemManifests))
	if zone == world.GlobalZone && tx.State.Mode == world.SmartOS { // by fs-joyent, which mounts /opt
		importManifests(tx, zone, repository, zoneManifests(tx, zone, customManifests))
	}
	cleanup(tx, zone, repository)
	applyProfile(tx, zone, repository, false)
	_ = SaveRepository(tx, zone, repository) // a zone on a full disk continues with what it has in memory
	// Offline until it is through (fork_emi in usr/src/cmd/svc/startd/fork.c).
	become(tx, r.Instances[EarlyManifestImportFMRI], Online, "", "")
	adopt(tx, zone, repository, true)
	if target := r.Instances[SingleUserFMRI]; target != nil {
		if deep := depth(r, target, map[string]int{}); deep > 0 {
			r.Pace = share(tx.Latency(world.StepMilestone), chainShare) / time.Duration(deep)
		}
	}
	evaluate(tx, zone)
}

// manifestImport is the start method of system/manifest-import
// (usr/src/cmd/svc/milestone/manifest-import): the manifests below
// /var/svc/manifest, the site profile with the final say, and the services
// whose manifests are gone.
func manifestImport(tx *world.Tx, zone string) int {
	repository, err := LoadRepository(tx, zone)
	if err != nil {
		return 1
	}
	importManifests(tx, zone, repository, zoneManifests(tx, zone, otherManifests))
	applyProfile(tx, zone, repository, true)
	cleanup(tx, zone, repository)
	if err := SaveRepository(tx, zone, repository); err != nil {
		return 1
	}
	adopt(tx, zone, repository, true)
	return 0
}

// adopt brings svc.startd's view to the repository: new instances are taken
// in. The others are read again if reread says so, else only whether they are
// enabled.
func adopt(tx *world.Tx, zone string, repository *scf.Repository, reread bool) {
	r := Repository(tx, zone)
	for _, e := range repository.Entities() {
		s := r.Instances[e.FMRI()]
		if s == nil {
			s = &world.Service{FMRI: e.FMRI()}
			r.Instances[s.FMRI] = s
			become(tx, s, Uninitialized, "", "insert_in_graph")
		} else if !reread {
			s.Enabled = enabledIn(e)
			continue
		}
		configure(s, e)
	}
}
