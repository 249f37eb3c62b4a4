package spec

import "cmp"

// What is known about a live migration before it begins: what of a VM cannot be sent,
// and what may differ at its target
// (bin/propolis-server/src/lib/migrate and ReplacementComponent in
// crates/propolis-api-types-versions of oxidecomputer/propolis).

// Unmovable lists what keeps a machine from being migrated. A server finds most
// of it only when the guest has been paused already.
func (s InstanceSpec) Unmovable() []Problem {
	var p problems
	if s.SMBIOS != nil {
		p.add("smbios", "is not sent along: the guest would find another SMBIOS table")
	}
	for _, key := range s.Components.Keys() {
		switch part := s.Components[key].(type) {
		case PCIBridge, VirtioSocket, SoftNPUPCIPort, SoftNPUPort, SoftNPUP9, P9FS, DLPINetwork:
			p.add(componentPath(key), "a %s cannot be migrated", part.Type())
		case Other:
			p.add(componentPath(key), "it is not known whether a %s can be migrated", part.Type())
		}
	}
	return p
}

// Replace lists the components that a migration's target exchanges, so that the
// machine of the source becomes the wanted one, and what would differ all the
// same: nothing else can be exchanged. Backends of networks are always listed,
// as a VNIC is the target's own.
//
// Guess crucible-volume-is-exchanged: a Crucible volume of a VM that moves is exchanged for the one of
// the target's registration or document, whose generation is above the source's; its Propolis opens it
// when the source has let the VM go.
// Check: let a control plane move a VM that has a distributed disk; `sledctl instance migrate NAME --to
// SLED` with a volume in a Crucible
func Replace(source, wanted InstanceSpec) (map[string]Replacement, []Problem) {
	ours := map[string]Component{} // by the server's spelling
	for key, part := range wanted.Components {
		ours[Key(key)] = part
	}
	all := map[string]Replacement{}
	amended := source.Clone()
	for key, had := range source.Components {
		part, there := ours[Key(key)]
		if !there || replacementTag(part) == "" || part.Type() != had.Type() || part == had && !isA[VirtioNetwork](part) {
			continue
		}
		all[key], amended.Components[key] = Replacement{part}, part
	}
	var p problems
	for _, d := range Compare(wanted, amended) {
		p.add(d.Path, "is %s at the source, and would be %s", cmp.Or(d.Got, "absent"), cmp.Or(d.Sent, "absent"))
	}
	return all, p
}
