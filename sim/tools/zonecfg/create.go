package zonecfg

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// The texts of libzonecfg (zonecfg_strerror in libzonecfg.c).
const (
	NoZone           = "No such zone configured"
	zBadState        = "Zone state is invalid for the requested operation"
	zMissingResource = "Required resource missing"
	zInvalid         = "Invalid argument"
	zNoResourceID    = "No such resource with that id"
	zNoPropertyType  = "No such property type"
	zNoPropertyID    = "No such property with that id"
	zNoEntry         = "No such entry"
	zNotSpecific     = "Insufficient specification"
	zBadProperty     = "Bad document property"
)

// load is zonecfg_get_handle: the configuration as it is saved, nil if there is none.
// A template's is a file that no zone has.
func (s *cfgSession) load(zone string) *world.Config {
	if z := s.tx.FindZone(zone); z != nil {
		c := z.Config.Clone()
		return &c
	}
	c, err := zones.ZoneTemplate(s.tx, zone)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	cli.Simulated(err == nil)
	return &c
}

// stateAtLeast says whether the zone is saved, and as far as this state.
func (s *cfgSession) stateAtLeast(state string) bool {
	z := s.tx.FindZone(s.zone)
	return z != nil && zones.ZoneRank(z.Current()) >= zones.ZoneRank(state)
}

// initialize loads the configuration if none is there.
func (s *cfgSession) initialize(expected bool) bool {
	if s.config != nil {
		return true
	}
	c := s.load(s.zone)
	if c == nil {
		cli.Simulated(!s.interactive || s.got) // what to begin with is told there
		s.zerr("%s: %s", s.zone, NoZone)
		s.sawError = s.sawError || expected || s.got
		return false
	}
	cli.Simulated(slices.Contains(Brands(s.mode()), c.Brand))
	s.config, s.got = c, true
	return true
}

// create begins a new configuration. A zone that is installed is refused
// without an error that counts, and the commands that follow then change the
// configuration that is there (create_func, check_if_zone_already_exists).
func (s *cfgSession) create(st cfgStatement) {
	o := s.options(st, "bF")
	if s.load(s.zone) != nil {
		if s.stateAtLeast(world.ZoneInstalled) {
			s.zerr("Zone %s already installed; create not allowed.", s.zone)
			return
		}
		if !o['F'] {
			s.die("Zone exists, input not from terminal and -F not specified:\ncreate command ignored, exiting.")
			return
		}
		fmt.Fprintf(&s.out, "Zone %s already exists; overwriting.\n", s.zone)
	}
	s.config = s.load(map[bool]string{true: "SUNWblank", false: "SUNWdefault"}[o['b']])
	cli.Simulated(s.config != nil)
	s.config.ClearGlobal("debugid")
	s.got, s.changed = true, true
}

// save is zonecfg_save: the file and the line of the index.
//
// Guess choice-of-debug-ids: how a zone's debug id is chosen.
// Check: `zonecfg -z ZONE info`
func (s *cfgSession) save() {
	tx := s.tx
	if _, ok := s.config.Globals["debugid"]; !ok && s.mode() != world.Helios {
		s.config.SetGlobal("debugid", strconv.FormatUint(tx.Count("debug id"), 10))
	}
	z := tx.FindZone(s.saved)
	var err error
	if z == nil {
		_, err = zones.AddZone(tx, s.zone, s.config.Clone())
	} else if z.Config = s.config.Clone(); s.zone != s.saved {
		err = zones.RenameZone(tx, z, s.zone)
	} else {
		err = zones.SaveZone(tx, z)
	}
	cli.Simulated(err == nil)
	s.changed, s.saved = false, s.zone
}

// commit verifies and saves.
func (s *cfgSession) commit(st cfgStatement) {
	s.options(st, "")
	s.verify(true)
}

// check only verifies.
func (s *cfgSession) check(st cfgStatement) {
	s.options(st, "")
	s.verify(false)
}

// delete drops the configuration: with -F that of an installed zone too,
// whatever it has on disk.
//
// Guess delete-of-a-lone-file-refused: `zonecfg delete -F` refuses a zone of which only the file is
// left. zonecfg_destroy compares a state that nothing has set, so a real one may do either; sledctl
// removes the file itself.
// Check: remove a zone's line of /etc/zones/index; `zonecfg -z ZONE delete -F`
// State: settled by usr/src/lib/libzonecfg/common/libzonecfg.c:354 (the state is uninitialised)
func (s *cfgSession) delete(st cfgStatement) {
	forced := s.options(st, "F")['F']
	if !s.initialize(true) && !forced {
		return
	}
	if !forced {
		s.die("Input not from terminal and -F not specified:\ndelete command ignored, exiting.")
		return
	}
	z := s.tx.FindZone(s.zone)
	switch {
	// Of a zone without a line in the index, zonecfg_destroy compares a state that nobody
	// has set: here it is one that is refused.
	case z == nil && s.config != nil, z != nil && zones.ZoneRank(z.Current()) > zones.ZoneRank(world.ZoneInstalled):
		s.fail("%s: %s", s.zone, zBadState)
	case z == nil:
		s.fail("%s: %s", s.zone, NoZone)
	default:
		network.DropStack(s.tx, z.Name)
		cli.Simulated(zones.RemoveZone(s.tx, z) == nil)
	}
	s.changed = false
	if s.got {
		s.config = s.load(s.zone)
		s.got = s.config != nil
	}
}

// revert goes back to what is saved: nothing, for only that is simulated.
func (s *cfgSession) revert(st cfgStatement) {
	s.options(st, "F")
	cli.Simulated(s.global && s.config == nil)
	s.fail("No changes to revert.")
}

// cancel leaves a resource as it was.
func (s *cfgSession) cancel(st cfgStatement) {
	s.options(st, "")
	if s.global {
		s.scopeUsage(st.name)
	}
	s.global, s.work, s.old = true, nil, nil
}

// scopeUsage is for a command in the wrong scope.
func (s *cfgSession) scopeUsage(command string) {
	scope := map[bool]string{true: "resource", false: "global"}[s.global]
	s.fail("The %s command only makes sense in the %s scope.", command, scope)
}
