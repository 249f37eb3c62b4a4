package sledtest

import (
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

const RunDir = "/var/run/sledctl"

// Value is the one word that a command line prints.
func (s *Operator) Value(line string) string {
	s.T.Helper()
	return strings.TrimSpace(s.Run(line))
}

func (s *Operator) Arm(f world.Fault) {
	s.T.Helper()
	if err := s.World().Update(s.T.Context(), func(tx *world.Tx) error { tx.Arm(f); return nil }); err != nil {
		s.T.Fatal(err)
	}
}

// Unrecorded makes a running zone that is marked as sledctl's own, and of which
// the ledger knows nothing.
func (s *Operator) Unrecorded(pool, base string) (zone string) {
	s.T.Helper()
	const id = "7f9619ff-8b86-4011-b42d-00c04fc964ff"
	zone = "propolis_instance_" + id
	zonepath := "/pool/ext/" + strings.TrimPrefix(pool, "oxp_") + "/crypt/zone/" + zone
	s.Command("zfs create -o sledctl:instance=" + id + " " + pool + "/crypt/zone/" + zone)
	if err := s.Host().Files().Chmod(zonepath, 0o700); err != nil {
		s.T.Fatal(err)
	}
	s.Command("zonecfg -z " + zone + " create -b ; set brand=sparse ; set zonepath=" + zonepath + " ; set ip-type=exclusive")
	s.Command("zoneadm -z " + zone + " clone " + base)
	s.Command("zoneadm -z " + zone + " boot")
	return zone
}
