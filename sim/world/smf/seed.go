package smf

import (
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/scf"
)

// BaseManifests are the manifests that the system delivers, by the path below
// the root where they lie. A real system has some two hundred; these are those
// that the way to the multi-user milestone, and ipadm(8), cannot do without.
func BaseManifests() map[string][]byte {
	all := map[string][]byte{}
	err := world.EachFile("root/common"+systemManifests, func(name string, data []byte) error {
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

// LayRepositories puts the seeds and the global zone's repository in place.
func LayRepositories(files host.Files) error {
	s := seeds()
	for name, data := range map[string][]byte{
		seedPath: SeedRepository(), "/lib/svc/seed/global.db": s.full, RepositoryPath: s.full,
	} {
		if err := world.Put(files, name, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// GlobalServices are the services of the global zone of a sled that has just
// been booted: all online.
func GlobalServices(now time.Time) *world.Repository {
	repository, err := scf.Decode(seeds().full)
	if err != nil {
		panic(err)
	}
	tx := world.NewTx(&world.State{Services: map[string]*world.Repository{world.GlobalZone: {Door: now, Instances: map[string]*world.Service{}}}}, now, nil)
	adopt(tx, world.GlobalZone, repository, true)
	r := Repository(tx, world.GlobalZone)
	for _, s := range r.Instances {
		if Wanted(s) {
			become(tx, s, Online, "", "dependencies_satisfied")
		} else {
			become(tx, s, Disabled, "", "")
		}
	}
	for _, fmri := range []string{RestarterFMRI, EarlyManifestImportFMRI} {
		become(tx, r.Instances[fmri], Online, "", "")
	}
	return r
}
