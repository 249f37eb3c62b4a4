package world

import (
	"time"

	"github.com/sledctl/sledctl/sim/world/scf"
)

// The events of a boot.
const (
	doorKind   = "smf-door"   // svc.configd answers
	importKind = "smf-import" // early-manifest-import is through, and services start
)

// ServiceHandlers carry out the events of SMF; methods run in the shell.
func ServiceHandlers(shell Shell) Handlers {
	return Handlers{
		doorKind:   func(tx *Tx, e *Event) { tx.openDoor(e.Zone) },
		importKind: func(tx *Tx, e *Event) { tx.earlyImport(e.Zone) },
		methodKind: func(tx *Tx, e *Event) { tx.runMethod(e, shell) },
		exitKind:   func(tx *Tx, e *Event) { tx.methodExit(e) },
	}
}

// The parts of the time from boot to the single-user milestone with a seeded
// repository: until the door opens, for the early import, and for the chain of
// services. Guess: nobody published them; the sum is what was measured.
const (
	doorShare  = 0.3
	chainShare = 0.4
)

func share(d time.Duration, part float64) time.Duration { return time.Duration(float64(d) * part) }

// BootServices is svc.startd of a zone that starts running. The global zone's
// boot is not simulated: its services come up at once.
func (tx *Tx) BootServices(zone string) {
	if tx.State.Services == nil {
		tx.State.Services = map[string]*Repository{}
	}
	tx.State.Services[zone] = &Repository{Instances: map[string]*Service{}}
	if zone == GlobalZone {
		tx.openDoor(zone)
		return
	}
	tx.Schedule(share(tx.Latency(StepMilestone), doorShare)+tx.Slower(FaultSlowDoor, zone), doorKind, zone, "")
}

// HaltServices is the end of a zone's SMF: its processes are gone, and what
// was only in memory is lost.
func (tx *Tx) HaltServices(zone string) {
	for _, kind := range []string{doorKind, importKind, methodKind, exitKind} {
		tx.Cancel(kind, zone, "")
	}
	tx.killZone(zone)
	delete(tx.State.Services, zone)
}

// openDoor is svc.configd opening the repository. A file that it cannot read
// leaves the zone without one: svc.startd waits for an administrator.
func (tx *Tx) openDoor(zone string) {
	r := tx.Repository(zone)
	if r == nil {
		return
	}
	repository, err := tx.LoadRepository(zone)
	if err != nil {
		return
	}
	if repository.DropTransient() {
		_ = tx.SaveRepository(zone, repository) // as in earlyImport
	}
	r.Door = tx.Now
	for _, fmri := range []string{restarterFMRI, earlyManifestImportFMRI} {
		r.Instances[fmri] = &Service{FMRI: fmri, Enabled: true, Duration: "transient"}
		tx.become(r.Instances[fmri], Online, "", "")
	}
	if zone == GlobalZone {
		tx.earlyImport(zone)
		return
	}
	tx.Schedule(tx.importTime(zone, repository)+tx.Slower(FaultSlowMilestone, zone), importKind, zone, "")
}

// importTime is how long early-manifest-import takes: most of it is spent on
// manifests that the repository does not have yet.
func (tx *Tx) importTime(zone string, repository *scf.Repository) time.Duration {
	seeded := tx.Latency(StepMilestone)
	total := seeded
	names := append(tx.zoneManifests(zone, systemManifests), tx.zoneManifests(zone, otherManifests)...)
	if len(tx.changed(zone, repository, names)) > 0 {
		total = tx.Latency(StepMilestoneUnseeded)
	}
	return max(0, total-share(seeded, doorShare)-share(seeded, chainShare))
}

// earlyImport is the end of early-manifest-import, which svc.startd runs before
// any service: the system's manifests, and the site profile as far as its
// services are known by then. Then the graph is built.
func (tx *Tx) earlyImport(zone string) {
	r := tx.Repository(zone)
	if r == nil {
		return
	}
	repository, err := tx.LoadRepository(zone)
	if err != nil {
		return
	}
	tx.importManifests(zone, repository, tx.zoneManifests(zone, systemManifests))
	tx.cleanup(zone, repository)
	tx.applyProfile(zone, repository, false)
	_ = tx.SaveRepository(zone, repository) // a zone on a full disk goes on with what it has in memory
	tx.adopt(zone, repository, true)
	if s, i := repository.Lookup(restarterFMRI); i != nil {
		r.Milestone = s.Composed(i).Value("options", "milestone")
	}
	if target := r.Instances[singleUserFMRI]; target != nil {
		if deep := r.depth(target, map[string]int{}); deep > 0 {
			r.Pace = share(tx.Latency(StepMilestone), chainShare) / time.Duration(deep)
		}
	}
	tx.evaluate(zone)
}

// manifestImport is the start method of system/manifest-import
// (usr/src/cmd/svc/milestone/manifest-import): the manifests below
// /var/svc/manifest, the site profile with the final say, and the services
// whose manifests are gone.
func (tx *Tx) manifestImport(zone string) int {
	repository, err := tx.LoadRepository(zone)
	if err != nil {
		return 1
	}
	tx.importManifests(zone, repository, tx.zoneManifests(zone, otherManifests))
	tx.applyProfile(zone, repository, true)
	tx.cleanup(zone, repository)
	if err := tx.SaveRepository(zone, repository); err != nil {
		return 1
	}
	tx.adopt(zone, repository, true)
	return 0
}

// adopt brings svc.startd's view to the repository: new instances are taken
// in, deleted ones stopped. The others are read again if reread says so, else
// only whether they are enabled.
func (tx *Tx) adopt(zone string, repository *scf.Repository, reread bool) {
	r := tx.Repository(zone)
	known := map[string]bool{restarterFMRI: true, earlyManifestImportFMRI: true}
	for _, service := range repository.Services {
		for _, instance := range service.Instances {
			fmri := service.InstanceFMRI(instance)
			known[fmri] = true
			e := scf.Entity{Service: service, Instance: instance}
			s := r.Instances[fmri]
			switch {
			case s == nil:
				s = &Service{FMRI: fmri}
				r.Instances[fmri] = s
				tx.become(s, Uninitialized, "", "insert_in_graph")
				s.configure(e)
			case reread:
				s.configure(e)
			default:
				s.Enabled = enabledIn(e)
			}
		}
	}
	for _, fmri := range r.FMRIs() {
		if !known[fmri] {
			tx.killContract(zone, r.Instances[fmri])
			tx.Cancel(methodKind, zone, "start "+fmri)
			tx.Cancel(methodKind, zone, "stop "+fmri)
			delete(r.Instances, fmri)
		}
	}
}
