package spec

import (
	"cmp"
	"maps"
	"slices"
)

// Clone is a copy whose components can be changed.
func (s InstanceSpec) Clone() InstanceSpec {
	s.Components = maps.Clone(s.Components)
	return s
}

// Networks are the keys of the backends of virtio NICs, in the order of the
// NICs' places on the PCI bus.
func (s InstanceSpec) Networks() []string {
	return s.backends(func(device Component) (string, bool) {
		nic, ok := device.(VirtioNIC)
		return nic.Backend, ok
	})
}

// Files are the keys of the backends of disks that are files or volumes, in the
// order of the disks' places.
func (s InstanceSpec) Files() []string {
	keys := s.backends(func(device Component) (string, bool) {
		switch d := device.(type) {
		case NVMeDisk:
			return d.Backend, true
		case VirtioDisk:
			return d.Backend, true
		}
		return "", false
	})
	return slices.DeleteFunc(keys, func(key string) bool { return !isA[FileStorage](s.Components[key]) })
}

// backends are the keys of those backends that are there of the devices of a
// kind.
func (s InstanceSpec) backends(of func(device Component) (string, bool)) []string {
	type device struct {
		at  PCIPath
		key string
	}
	own := map[string]string{} // as they are written here
	for key := range s.Components {
		own[Key(key)] = key
	}
	var found []device
	for _, key := range s.Components.Keys() {
		backend, ok := of(s.Components[key])
		written, there := own[Key(backend)]
		if ok && there {
			at, _ := Place(s.Components[key])
			found = append(found, device{at, written})
		}
	}
	slices.SortStableFunc(found, func(a, b device) int {
		return cmp.Or(cmp.Compare(a.at.Bus, b.at.Bus), cmp.Compare(a.at.Device, b.at.Device), cmp.Compare(a.at.Function, b.at.Function))
	})
	keys := make([]string, len(found))
	for i, d := range found {
		keys[i] = d.key
	}
	return keys
}

// Path is where a field of a component stands: components.KEY.component.FIELD.
func Path(key, field string) string { return bodyPath(key, field) }

// Request is what is sent for a VM that does not exist yet. Errors:
// *InvalidError, *TooLargeError.
func Request(id, name string, s InstanceSpec, on Server) (EnsureRequest, error) {
	if err := s.Check(on); err != nil {
		return EnsureRequest{}, err
	}
	r := EnsureRequest{Properties: properties(id, name), Init: Init{Spec: &s}}
	_, err := r.Encode(Latest)
	return r, err
}
