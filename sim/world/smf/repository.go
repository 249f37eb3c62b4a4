package smf

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/scf"
)

// Where SMF keeps its things in a zone (smf_bootstrap(7)).
const (
	RepositoryPath   = "/etc/svc/repository.db"
	seedPath         = "/lib/svc/seed/nonglobal.db"
	systemManifests  = "/lib/svc/manifest"
	otherManifests   = "/var/svc/manifest"
	customManifests  = "/opt/custom/smf" // SmartOS: the operator's
	SiteProfile      = "/var/svc/profile/site.xml"
	methodLogs       = "/var/svc/log"
	manifestImporter = "/lib/svc/method/manifest-import"
)

// LoadRepository reads a zone's repository file. A file that does not exist is
// an empty repository, as it is for svc.configd (backend_create in
// usr/src/cmd/svc/configd/backend.c).
func LoadRepository(tx *world.Tx, zone string) (*scf.Repository, error) {
	r, err := ReadRepository(tx, zone)
	if err != nil {
		return nil, err
	}
	return r.Clone(), nil
}

// ReadRepository is LoadRepository for those who change nothing of it.
func ReadRepository(tx *world.Tx, zone string) (*scf.Repository, error) {
	return readRepository(tx.Files, tx.ZonePathOf(zone, RepositoryPath), tx.Decoded)
}

// LoadRepositoryFile reads a repository file by its name in the global zone.
func LoadRepositoryFile(files host.Files, name string) (*scf.Repository, error) {
	return readRepository(files, name, nil)
}

func readRepository(files host.Files, name string, decoded *scf.Cache) (*scf.Repository, error) {
	data, err := host.ReadFile(files, name)
	if errors.Is(err, fs.ErrNotExist) {
		return &scf.Repository{}, nil
	}
	if err != nil {
		return nil, err
	}
	return decoded.Decode(data)
}

// SaveRepository writes a zone's repository file.
func SaveRepository(tx *world.Tx, zone string, r *scf.Repository) error {
	return SaveRepositoryFile(tx.Files, tx.ZonePathOf(zone, RepositoryPath), r)
}

// SaveRepositoryFile writes a repository file by its name in the global zone:
// in place, as SQLite does.
func SaveRepositoryFile(files host.Files, name string, r *scf.Repository) error {
	data, err := r.Encode()
	if err != nil {
		return err
	}
	return world.Put(files, name, data, 0o600)
}

// Manifests lists the manifests below a directory: the regular files that end
// in .xml, at any depth, sorted (find_manifests in
// usr/src/cmd/svc/common/manifest_find.c). A directory that does not exist has none.
func Manifests(files host.Files, dir string) []string {
	entries, err := files.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		switch {
		case e.Mode.IsDir():
			names = append(names, Manifests(files, name)...)
		case e.Mode.IsRegular() && strings.HasSuffix(e.Name, ".xml"):
			names = append(names, name)
		}
	}
	return names
}

// zoneManifests are the manifests below a directory of a zone, with the names
// that they have there.
func zoneManifests(tx *world.Tx, zone, dir string) []string {
	outside := tx.ZonePathOf(zone, dir)
	names := Manifests(tx.Files, outside)
	for n, name := range names {
		names[n] = dir + strings.TrimPrefix(name, outside)
	}
	return names
}

// changed are the manifests among names that the repository has not imported
// as they are now.
func changed(tx *world.Tx, zone string, r *scf.Repository, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		data, err := host.ReadFile(tx.Files, tx.ZonePathOf(zone, name))
		return err != nil || r.Hash(name) == scf.Sum(data)
	})
}

// importManifests is svccfg import with SVCCFG_CHECKHASH inside a zone: what
// has not changed is passed over, what cannot be read goes to the log.
func importManifests(tx *world.Tx, zone string, r *scf.Repository, names []string) {
	for _, name := range changed(tx, zone, r, names) {
		data, err := host.ReadFile(tx.Files, tx.ZonePathOf(zone, name))
		if err != nil {
			continue
		}
		bundle, err := scf.Parse(data, "manifest")
		if err != nil {
			logLine(tx, zone, ManifestImportFMRI, "svccfg: "+err.Error()+"\nWARNING: svccfg import of "+name+" failed.")
			continue
		}
		r.Import(bundle, name)
		r.SetHash(name, scf.Sum(data))
	}
}

// applyProfile applies the site profile unless the repository has done so
// before: a profile, unlike a manifest, is applied once, whatever happens to
// the file (mhash_test_file in usr/src/cmd/svc/common/manifest_hash.c).
//
// Guess apply-passes-over-unknown-services: `svccfg apply` passes over services that do not exist,
// with a warning only under -v.
// Check: that line
func applyProfile(tx *world.Tx, zone string, r *scf.Repository, remember bool) {
	data, err := host.ReadFile(tx.Files, tx.ZonePathOf(zone, SiteProfile))
	if err != nil || r.Hash(SiteProfile) != "" {
		return
	}
	bundle, err := scf.Parse(data, "profile")
	if err != nil {
		logLine(tx, zone, ManifestImportFMRI, "svccfg: "+err.Error()+"\nWARNING: svccfg apply "+SiteProfile+" failed")
		return
	}
	r.Apply(bundle)
	if remember {
		r.SetHash(SiteProfile, scf.Sum(data))
	}
}

// cleanup deletes the services whose manifests are gone.
func cleanup(tx *world.Tx, zone string, r *scf.Repository) {
	r.Cleanup(func(name string) bool {
		_, err := tx.Files.Stat(tx.ZonePathOf(zone, name))
		return err == nil
	})
}

// LogPath is the log file of a service inside its zone.
func LogPath(fmri string) string {
	return path.Join(methodLogs, strings.ReplaceAll(strings.TrimPrefix(fmri, "svc:/"), "/", "-")+".log")
}

// logLine adds to the log of a service what svc.startd or a method printed. A
// log that cannot be written is lost, as on a full disk.
func logLine(tx *world.Tx, zone, fmri, text string) {
	name := tx.ZonePathOf(zone, LogPath(fmri))
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	err := tx.Files.Append(name, []byte(text))
	if !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if host.MkdirAll(tx.Files, path.Dir(name), 0o755) != nil {
		return
	}
	if f, err := tx.Files.Open(name, os.O_CREATE|os.O_WRONLY, 0o644); err == nil {
		_, _ = f.Write([]byte(text))
		_ = f.Close()
	}
}

// logEvent is a line that svc.startd writes about a method.
func logEvent(tx *world.Tx, zone, fmri, text string) {
	logLine(tx, zone, fmri, "[ "+tx.Now.Format("2006 Jan _2 15:04:05")+" "+text+" ]")
}
