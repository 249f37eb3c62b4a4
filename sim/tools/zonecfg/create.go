package zonecfg

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// The texts of libzonecfg (zonecfg_strerror in libzonecfg.c).
const (
	NoZone           = "No such zone configured"
	zBadState        = "Zone state is invalid for the requested operation"
	zInvalidDocument = "Invalid document"
	zMissingResource = "Required resource missing"
	zMissingProperty = "Required property missing"
	zInvalid         = "Invalid argument"
	zNoResourceType  = "No such resource type"
	zNoResourceID    = "No such resource with that id"
	zNoPropertyType  = "No such property type"
	zNoPropertyID    = "No such property with that id"
	zNoEntry         = "No such entry"
	zNotSpecific     = "Insufficient specification"
	zIncompatible    = "Incompatible settings"
	zAliasDisallow   = "An incompatible rctl already exists for this property"
	zClearDisallow   = "Clearing this property is not allowed"
	zBadProperty     = "Bad document property"
	zInvalidProperty = "Specified property is invalid"
	zTooBig          = "Argument list too long"
	zNameInUse       = "Zone name already in use"
	zBogusName       = "Bogus zone name"
)

// load is zonecfg_get_handle: the configuration as it is saved. A template's
// is a file that no zone has.
func (s *cfgSession) load(zone string) (*world.Config, string) {
	if z := s.tx.FindZone(zone); z != nil {
		c := z.Config.Clone()
		return &c, ""
	}
	c, err := zones.ZoneTemplate(s.tx, zone)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, NoZone
	case err != nil:
		return nil, zInvalidDocument
	}
	return &c, ""
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
	c, problem := s.load(s.zone)
	switch {
	case problem == NoZone && s.isGlobal && !s.got:
		s.config = &world.Config{IPType: "shared", Brand: "ipkg"}
		s.changed, s.got = true, true
		return true
	case problem != "":
		s.zerr("%s: %s", s.zone, problem)
		s.sawError = s.sawError || expected || s.got
		if problem == NoZone && !s.got && s.interactive {
			s.out.WriteString("Use 'create' to begin configuring a new zone.\n")
		}
		return false
	}
	s.config, s.got = c, true
	if !slices.Contains(Brands(s.tx.State.Mode), c.Brand) && !s.isGlobal {
		s.die("Zone %s uses non-existent brand \"%s\".  Unable to continue", s.zone, c.Brand)
		return false
	}
	return true
}

// create begins a new configuration. A zone that is installed is refused
// without an error that counts, and the commands that follow then change the
// configuration that is there (create_func, check_if_zone_already_exists).
func (s *cfgSession) create(st cfgStatement) {
	o := s.options(st, "?a:bFt:")
	if o == nil || s.readOnly() {
		return
	}
	_, forced := o['F']
	if _, problem := s.load(s.zone); problem == "" {
		if s.stateAtLeast(world.ZoneInstalled) {
			s.zerr("Zone %s already installed; create not allowed.", s.zone)
			return
		}
		if !forced {
			s.ask()
			s.die("Zone exists, input not from terminal and -F not specified:\ncreate command ignored, exiting.")
			return
		}
		fmt.Fprintf(&s.out, "Zone %s already exists; overwriting.\n", s.zone)
	}
	c, ok := s.beginning(o)
	if !ok {
		return
	}
	s.config, s.got, s.changed = c, true, true
}

// beginning is what a new configuration starts from.
func (s *cfgSession) beginning(o map[byte]string) (*world.Config, bool) {
	template := "SUNWdefault"
	if _, blank := o['b']; blank {
		template = "SUNWblank"
	}
	if name, ok := o['t']; ok {
		template = name
	}
	if dir, ok := o['a']; ok {
		data, err := host.ReadFile(s.tx.Files, path.Join("/", dir, "SUNWdetached.xml"))
		if err != nil {
			s.err.WriteString("invalid path to detached zone\n")
			return nil, false
		}
		_, c, err := zones.ParseZoneXML(data)
		if err != nil {
			s.err.WriteString("Cannot attach to an earlier release of the operating system\n")
			return nil, false
		}
		c.Zonepath = path.Join("/", dir)
		return &c, true
	}
	c, problem := s.load(template)
	if problem != "" {
		s.fail("%s: %s", template, problem)
		return nil, false
	}
	c.ClearGlobal("debugid")
	return c, true
}

// save is zonecfg_save: the file and the line of the index.
func (s *cfgSession) save() {
	tx := s.tx
	if s.isGlobal {
		if err := cli.WriteFile(tx.Files, "/etc/zones/global.xml", zones.ZoneXML("global", *s.config), 0o644); err == nil {
			s.changed = false
		}
		return
	}
	if _, ok := s.config.Globals["debugid"]; !ok && tx.State.Mode != world.Helios {
		s.config.SetGlobal("debugid", strconv.FormatUint(tx.Count("debug id"), 10))
	}
	z := tx.FindZone(s.saved)
	var err error
	switch {
	case z == nil:
		_, err = zones.AddZone(tx, s.zone, s.config.Clone())
	case s.zone != s.saved:
		z.Config = s.config.Clone()
		err = zones.RenameZone(tx, z, s.zone)
	default:
		z.Config = s.config.Clone()
		err = zones.SaveZone(tx, z)
	}
	if err != nil {
		s.fail("%s: Problem saving file", s.zone)
		return
	}
	s.changed, s.saved = false, s.zone
}

// commit verifies and saves.
func (s *cfgSession) commit(st cfgStatement) {
	if s.options(st, "?") == nil || s.readOnly() {
		return
	}
	s.verify(true)
}

// delete drops the configuration: with -F that of an installed zone too,
// whatever it has on disk.
func (s *cfgSession) delete(st cfgStatement) {
	o := s.options(st, "?F")
	if o == nil || s.readOnly() {
		return
	}
	if _, forced := o['F']; !forced {
		if !s.initialize(true) {
			return
		}
		s.ask()
		s.die("Input not from terminal and -F not specified:\ndelete command ignored, exiting.")
		return
	}
	s.initialize(true)
	if s.dead {
		return
	}
	switch z := s.tx.FindZone(s.zone); {
	case z == nil && s.config != nil:
		// zonecfg_destroy compares a state that nobody has set. Guess: it is one
		// that is refused.
		s.fail("%s: %s", s.zone, zBadState)
	case z == nil:
		s.fail("%s: %s", s.zone, NoZone)
	case zones.ZoneRank(z.Current()) > zones.ZoneRank(world.ZoneInstalled):
		s.fail("%s: %s", s.zone, zBadState)
	default:
		network.DropStack(s.tx, z.Name)
		if err := zones.RemoveZone(s.tx, z); err != nil {
			s.fail("%s: Problem updating index file", s.zone)
		}
	}
	s.changed = false
	if s.got {
		s.config, _ = s.load(s.zone)
		s.got = s.config != nil
	}
}

// scopeUsage is for a command in the wrong scope.
func (s *cfgSession) scopeUsage(command string) {
	scope := "global"
	if s.global {
		scope = "resource"
	}
	s.fail("The %s command only makes sense in the %s scope.", command, scope)
}

// rename is set zonename.
func (s *cfgSession) rename(name string) {
	problem := ""
	z := s.tx.FindZone(s.saved)
	switch {
	case !validZoneName(name):
		problem = zBogusName
	case name != s.saved && s.tx.FindZone(name) != nil:
		problem = zNameInUse
	case z != nil && zones.ZoneRank(z.Current()) > zones.ZoneRank(world.ZoneInstalled):
		problem = zBadState
	}
	if problem != "" {
		s.fail("%s: %s", name, problem)
		s.usage(&s.err, cfgHelpSyntax, false)
		return
	}
	s.zone, s.changed = name, true
}

// hasResource says whether the configuration has any resource of a type.
func (s *cfgSession) hasResource(kind string) bool {
	return slices.ContainsFunc(s.config.Resources, func(r world.Resource) bool { return r.Type == kind })
}
