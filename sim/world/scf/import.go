package scf

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
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

// DeleteHash forgets a file's hash.
func (r *Repository) DeleteHash(path string) {
	if s := r.Service(hashService); s != nil {
		Entity{Service: s}.DeleteGroup(HashName(path))
	}
}

// Import puts a manifest into the repository: what is new is added, what an
// administrator has changed since the last import stays, all else becomes what
// the manifest says. path is the file as the zone will see it. It returns the
// full names of the instances that were touched; their running snapshots are
// taken again.
func (r *Repository) Import(b *Bundle, path string) []string {
	var touched []string
	for _, from := range b.Services {
		r.AddService(from.Name)
		s := r.Service(from.Name)
		e := Entity{Service: s}
		e.Ensure("manifestfiles", "framework", HashName(path), "astring", path)
		e.merge(from.Groups, from.Deleted)
		for _, fromInstance := range from.Instances {
			s.AddInstance(fromInstance.Name)
			i := s.Instance(fromInstance.Name)
			Entity{Service: s, Instance: i}.merge(fromInstance.Groups, fromInstance.Deleted)
			touched = append(touched, r.addDependents(s.InstanceFMRI(i), fromInstance.Dependents)...)
		}
		touched = append(touched, r.addDependents(s.FMRI(), from.Dependents)...)
		for _, i := range s.Instances {
			touched = append(touched, s.InstanceFMRI(i))
		}
	}
	return r.refresh(touched)
}

func (r *Repository) refresh(fmris []string) []string {
	slices.Sort(fmris)
	fmris = slices.Compact(fmris)
	for _, fmri := range fmris {
		if _, i := r.Lookup(fmri); i != nil {
			i.Refresh()
		}
	}
	return fmris
}

// merge is the import of one entity.
func (e Entity) merge(groups Groups, deleted []string) {
	for _, name := range deleted {
		e.DeleteGroup(name)
	}
	for _, from := range groups {
		e.AddGroup(from.Name, from.Type, false)
		e.keep()
		g := e.Groups().Find(from.Name)
		for _, p := range from.Properties {
			switch own := g.Property(p.Name); {
			case own == nil:
				c := *p
				c.Values = slices.Clone(p.Values)
				g.Properties = append(g.Properties, &c)
			case own.Imported != nil:
				own.Imported = slices.Clone(p.Values)
			default:
				own.Type, own.Values = p.Type, slices.Clone(p.Values)
			}
		}
	}
}

// addDependents gives the targets of a bundle's dependents their dependency on
// fmri. Targets that the repository does not have are left out.
func (r *Repository) addDependents(fmri string, dependents []Dependent) (touched []string) {
	for _, d := range dependents {
		f, ok := ParseFMRI(d.Target)
		s := r.Service(f.Service)
		if !ok || s == nil {
			continue
		}
		e := Entity{Service: s, Instance: s.Instance(f.Instance)}
		if f.Instance != "" && e.Instance == nil {
			continue
		}
		e.Ensure(d.Name, "dependency", "grouping", "astring", d.Grouping)
		e.Set(d.Name, "restart_on", "astring", d.RestartOn)
		e.Set(d.Name, "type", "astring", "service")
		e.Set(d.Name, "entities", "fmri", fmri)
		e.Set(d.Name, "external", "boolean", "true")
		for _, i := range s.Instances {
			if e.Instance == nil || e.Instance == i {
				touched = append(touched, s.InstanceFMRI(i))
			}
		}
	}
	return touched
}

// Apply puts a profile into the repository: what it names becomes what it
// says. Services and instances that do not exist are passed over, each with a
// warning in svccfg's words. It returns the full names of the instances that
// were touched; their running snapshots are taken again.
func (r *Repository) Apply(b *Bundle) (touched, warnings []string, err error) {
	for _, from := range b.Services {
		s := r.Service(from.Name)
		if s == nil {
			warnings = append(warnings, fmt.Sprintf("Ignoring nonexistent service %s.", from.Name))
			continue
		}
		if err := (Entity{Service: s}).override(from.Groups, from.Deleted); err != nil {
			return nil, warnings, err
		}
		if len(from.Groups) > 0 {
			for _, i := range s.Instances {
				touched = append(touched, s.InstanceFMRI(i))
			}
		}
		for _, fromInstance := range from.Instances {
			i := s.Instance(fromInstance.Name)
			if i == nil {
				warnings = append(warnings, fmt.Sprintf("Ignoring nonexistent instance %s:%s.", from.Name, fromInstance.Name))
				continue
			}
			if err := (Entity{Service: s, Instance: i}).override(fromInstance.Groups, fromInstance.Deleted); err != nil {
				return nil, warnings, err
			}
			touched = append(touched, s.InstanceFMRI(i))
		}
	}
	return r.refresh(touched), warnings, nil
}

// override is the application of a profile to one entity. A type that the
// profile leaves out is the one that the entity, or its service, has
// (find_current_pg_type and find_current_prop_type in svccfg_libscf.c).
func (e Entity) override(groups Groups, deleted []string) error {
	for _, name := range deleted {
		e.DeleteGroup(name)
	}
	known := *e.Groups()
	if e.Instance != nil {
		known = e.Service.Composed(e.Instance)
	}
	for _, from := range groups {
		had := known.Find(from.Name)
		typ := from.Type
		if typ == "" {
			if had == nil {
				return refuse("Could not find property group type for \"%s\" from \"%s\"", from.Name, e.FMRI())
			}
			typ = had.Type
		}
		e.AddGroup(from.Name, typ, false)
		for _, p := range from.Properties {
			ptype, values := p.Type, slices.Clone(p.Values)
			if ptype == "" {
				own := had.Property(p.Name)
				if own == nil {
					return refuse("Could not find property type for \"%s\" from \"%s\"", p.Name, e.FMRI())
				}
				ptype = own.Type
				if err := normalizeAll(ptype, values); err != nil {
					return err
				}
			}
			e.Set(from.Name, p.Name, ptype, values...)
		}
	}
	return nil
}

// Cleanup deletes the services whose manifests are all gone (svccfg cleanup, a
// part of every manifest import) and returns the full names of their
// instances. Services that no manifest delivered stay.
func (r *Repository) Cleanup(exists func(path string) bool) []string {
	var gone []string
	for _, s := range slices.Clone(r.Services) {
		files := s.Groups.Find("manifestfiles")
		if files == nil || len(files.Properties) == 0 {
			continue
		}
		there := slices.ContainsFunc(files.Properties, func(p *Property) bool {
			return len(p.Values) > 0 && exists(p.Values[0])
		})
		if there {
			continue
		}
		for _, i := range s.Instances {
			gone = append(gone, s.InstanceFMRI(i))
		}
		for _, p := range files.Properties {
			if len(p.Values) > 0 {
				r.DeleteHash(p.Values[0])
			}
		}
		r.DeleteService(s.Name)
	}
	return gone
}
