package scf

import (
	"crypto/md5"
	"encoding/hex"
	"slices"
	"strings"
)

// hashService is where the hashes of imported files are kept (manifest_hash.h).
const hashService = "smf/manifest"

// HashName is the property group of smf/manifest, and the property of a
// service's manifestfiles group, that stand for a file
// (mhash_filename_to_propname in usr/src/cmd/svc/common/manifest_hash.c).
func HashName(path string) string {
	name := []byte(strings.TrimPrefix(path, "/"))
	for i, b := range name {
		letter := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
		switch {
		case letter, i > 0 && (b >= '0' && b <= '9' || b == '_' || b == '-'):
		case i == 0:
			name[i] = 'A'
		default:
			name[i] = '_'
		}
	}
	return string(name)
}

// Sum is the hash of a file's contents.
func Sum(data []byte) string {
	sum := md5.Sum(data)
	return hex.EncodeToString(sum[:])
}

// Hash is the recorded hash of a file, or "".
func (r *Repository) Hash(path string) string {
	if s := r.Service(hashService); s != nil {
		return s.Groups.Value(HashName(path), "md5sum")
	}
	return ""
}

// SetHash records a file's hash.
func (r *Repository) SetHash(path, sum string) {
	r.AddService(hashService)
	e := Entity{Service: r.Service(hashService)}
	e.Ensure(HashName(path), "framework", "md5sum", "opaque", sum)
}

// Import puts a manifest into the repository: what is new is added, what an
// administrator has changed since the last import stays, all else becomes what
// the manifest says. path is the file as the zone will see it. It returns the
// full names of the instances that were touched; their running snapshots are
// taken again.
func (r *Repository) Import(manifest []*Service, path string) []string {
	var touched []string
	for _, from := range manifest {
		r.AddService(from.Name)
		s := r.Service(from.Name)
		e := Entity{Service: s}
		e.Ensure("manifestfiles", "framework", HashName(path), "astring", path)
		e.merge(from.Groups)
		for _, fromInstance := range from.Instances {
			s.AddInstance(fromInstance.Name)
			Entity{s, s.Instance(fromInstance.Name)}.merge(fromInstance.Groups)
		}
		for _, i := range s.Instances {
			i.Refresh()
			touched = append(touched, s.InstanceFMRI(i))
		}
	}
	slices.Sort(touched)
	return slices.Compact(touched)
}

// merge is the import of one entity.
func (e Entity) merge(groups Groups) {
	for _, from := range groups.clone() {
		e.AddGroup(from.Name, from.Type)
		e.keep()
		g := e.Groups().Find(from.Name)
		for _, p := range from.Properties {
			switch own := g.Property(p.Name); {
			case own == nil:
				g.Properties = append(g.Properties, p)
			case own.Imported != nil:
				own.Imported = p.Values
			default:
				own.Type, own.Values = p.Type, p.Values
			}
		}
	}
}

// Apply puts a profile into the repository: what it names becomes what it
// says. Instances that do not exist are passed over, with a warning under -v. It returns
// the full names of those that were touched.
func (r *Repository) Apply(profile []*Service) (touched []string) {
	for _, from := range profile {
		for _, i := range from.Instances {
			e, ok := r.Lookup(from.InstanceFMRI(i))
			if !ok {
				continue
			}
			for _, g := range i.Groups {
				for _, p := range g.Properties {
					e.Ensure(g.Name, g.Type, p.Name, p.Type, p.Values...)
				}
			}
			e.Instance.Refresh()
			touched = append(touched, e.FMRI())
		}
	}
	return touched
}

// Cleanup deletes the services whose manifests are all gone, and the hashes of these
// (svccfg cleanup, a part of every manifest import). Services that no manifest
// delivered stay.
func (r *Repository) Cleanup(exists func(path string) bool) {
	gone := map[string]bool{}
	r.Services = slices.DeleteFunc(r.Services, func(s *Service) bool {
		files := s.Groups.Find("manifestfiles")
		there := func(p *Property) bool { return exists(p.Values[0]) }
		if files == nil || slices.ContainsFunc(files.Properties, there) {
			return false
		}
		for _, p := range files.Properties {
			gone[p.Name] = true
		}
		return true
	})
	if s := r.Service(hashService); s != nil {
		s.Groups = slices.DeleteFunc(s.Groups, func(g *Group) bool { return gone[g.Name] })
	}
}
