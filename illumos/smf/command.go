package smf

import "github.com/sledctl/sledctl/host"

// The zone is named by -z, which talks to its svc.configd from the global
// zone: no login, no shell. svccfg(8) has no -z; it is only ever pointed at a
// repository file.

func inZone(zone string, args ...string) []string {
	if zone == "" {
		return args
	}
	return append([]string{"-z", zone}, args...)
}

func listCommand(zone string) host.Command {
	return host.Command{Program: "svcs", Args: inZone(zone, "-a", "-H", "-o", "state,fmri"), ReadOnly: true}
}

// findCommand lists the instances that patterns fit: of a service, all that it
// has. One that fits none is told on stderr, with exit 1; the others are listed.
func findCommand(patterns []string) host.Command {
	return host.Command{Program: "svcs", Args: append([]string{"-H", "-o", "state,fmri"}, patterns...), ReadOnly: true}
}

func stateCommand(zone, fmri string) host.Command {
	return host.Command{Program: "svcprop", Args: inZone(zone, "-p", "restarter/state", fmri), ReadOnly: true}
}

// waitCommand ends at the next change of the instance's restarter properties
// and prints the state of then. It has no timeout.
func waitCommand(zone, fmri string) host.Command {
	return host.Command{Program: "svcprop", Args: append([]string{"-w"}, inZone(zone, "-p", "restarter/state", fmri)...), ReadOnly: true}
}

// enableCommand stores a request and does not wait: -s has no timeout, and
// misjudges an instance that was only just imported (illumos 13837).
func enableCommand(zone, fmri string, temporary bool) host.Command {
	return svcadm(zone, "enable", fmri, temporary)
}

// disableCommand does not wait either: -s never returns for an instance in
// maintenance (omicron issue 4252).
func disableCommand(zone, fmri string, temporary bool) host.Command {
	return svcadm(zone, "disable", fmri, temporary)
}

func svcadm(zone, verb, fmri string, temporary bool) host.Command {
	args := inZone(zone, verb)
	if temporary {
		args = append(args, "-t")
	}
	return host.Command{Program: "svcadm", Args: append(args, fmri)}
}

// applyCommand runs in the zone: svccfg(8) has no -z.
func applyCommand(zone string) host.Command {
	return host.Command{Program: "svccfg", Args: []string{"apply", SiteProfile}, Zone: zone}
}

// dtd is what manifests are validated against: the global zone's own, as in
// the sled agent's seeding (omicron at cf9a9ee9be) and illumos image-builder's
// seed_smf. An absolute name, as it stands in every manifest.
const dtd = "/usr/share/lib/xml/dtd/service_bundle.dtd.1"

// importCommand imports the manifests below a directory of a zone's root into
// a repository file. SVCCFG_CHECKHASH makes svccfg record their hashes, without
// which the zone would import them again; PKG_INSTALL_ROOT makes it record the
// names that they have inside the zone, without which the zone's clean-up would
// find the files missing and delete the services
// (usr/src/cmd/svc/common/manifest_hash.c, usr/src/cmd/svc/svccfg/svccfg_xml.c).
func importCommand(repository, root, directory string) host.Command {
	return host.Command{
		Program: "svccfg", Args: []string{"import", directory},
		Env: []string{"SVCCFG_DTD=" + dtd, "SVCCFG_REPOSITORY=" + repository, "SVCCFG_CHECKHASH=1", "PKG_INSTALL_ROOT=" + root},
	}
}
