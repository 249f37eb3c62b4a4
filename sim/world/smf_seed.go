package world

import (
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world/scf"
)

// BaseManifests are the manifests that the system delivers, by the path below
// the root where they lie. A real system has some two hundred; these are those
// that the way to the multi-user milestone, and ipadm(8), cannot do without.
func BaseManifests() map[string][]byte {
	all := map[string][]byte{}
	err := eachFile("root/common"+systemManifests, func(name string, data []byte) error {
		all[path.Join(systemManifests[1:], name)] = data
		return nil
	})
	if err != nil {
		panic("embedded manifests: " + err.Error()) // they are part of the program
	}
	return all
}

// SeedRepository is the contents of lib/svc/seed/nonglobal.db: as on a real
// system it knows the services that everything starts with, and not the rest,
// which is what makes a zone's first boot slow.
func SeedRepository() []byte { return slices.Clone(seeds().nonglobal) }

// seeds are constants: the embedded manifests, imported. They are worked out
// once, since every sled of every test begins with them.
var seeds = sync.OnceValue(func() (s struct{ nonglobal, full []byte }) {
	s.nonglobal = seed(func(name string) bool { return !strings.Contains(name, "/network") })
	s.full = seed(func(string) bool { return true })
	return s
})

func seed(include func(name string) bool) []byte {
	r := &scf.Repository{}
	manifests := BaseManifests()
	var names []string
	for name := range manifests {
		if include(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		bundle, err := scf.Parse(manifests[name], "manifest")
		if err != nil {
			panic("embedded manifest " + name + ": " + err.Error())
		}
		r.Import(bundle, "/"+name)
		r.SetHash("/"+name, scf.Sum(manifests[name]))
	}
	data, err := r.Encode()
	if err != nil {
		panic(err)
	}
	return data
}

// layRepositories puts the seeds and the global zone's repository in place.
func layRepositories(files host.Files) error {
	s := seeds()
	for name, data := range map[string][]byte{
		seedPath: s.nonglobal, "/lib/svc/seed/global.db": s.full, repositoryPath: s.full,
	} {
		if err := put(files, name, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// globalServices are the services of the global zone of a sled that has just
// been booted: all online.
func globalServices(now time.Time) *Repository {
	repository, err := scf.Decode(seeds().full)
	if err != nil {
		panic(err)
	}
	tx := NewTx(&State{Services: map[string]*Repository{GlobalZone: {Door: now, Instances: map[string]*Service{}}}}, now, nil)
	tx.adopt(GlobalZone, repository, true)
	r := tx.Repository(GlobalZone)
	for _, s := range r.Instances {
		if s.Wanted() {
			tx.become(s, Online, "", "dependencies_satisfied")
		} else {
			tx.become(s, Disabled, "", "")
		}
	}
	for _, fmri := range []string{restarterFMRI, earlyManifestImportFMRI} {
		tx.become(r.Instances[fmri], Online, "", "")
	}
	return r
}
