package zoneadm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/tools/storage"
	"github.com/sledctl/sledctl/sim/tools/zonecfg"
	"github.com/sledctl/sledctl/sim/world"
)

// This file knows the brands. What a brand does at install, clone and so on is
// up to the hooks that its /usr/lib/brand/NAME/config.xml names; what is
// mounted in its zones is in platform.xml (omniosorg/pkg5 src/brand,
// oxidecomputer/helios-omicron-brand config).

// The exit codes of hooks (usr/src/uts/common/sys/zone.h): improper arguments,
// failed but another attempt may be made, failed and to be uninstalled.
const (
	hookOK          = 0
	hookUsage       = 253
	hookNotComplete = 254
	hookFatal       = 255
)

// The commands and states that zoneadmd passes to state-change hooks
// (omniosorg/pkg5 src/brand/shared/vars.ksh).
const (
	stateCommandReady = 0
	stateCommandHalt  = 4
)

// brand is a brand of the sled's distribution.
type brand struct {
	name string
	// init is the first process, inside the zone.
	init string
	// loops are the directories that every zone of the brand has from the
	// global zone, read-only.
	loops []string
	// overlays are the file systems below the zone's root that the brand keeps
	// apart and mounts over a loop: the last part of the dataset's name, and
	// where it is mounted.
	overlays []overlay
	hooks
}

type overlay struct{ dataset, dir string }

// hooks are the brand's programs. A long one is cut in two: what it does
// before most of its time passes, and after. Nil behind the first three: the brand has none.
type hooks struct {
	install, installed func(h *hook, args []string) int
	clone, cloned      func(h *hook, args []string) int
	uninstall          func(h *hook, args []string) int
	builtIn            bool // uninstalling goes on in zoneadm's own way
	verify             func(h *hook, command string) int
	prestate           func(h *hook, command int) int
	poststate          func(h *hook, command int) int
	sysboot            func(h *hook) int
}

// hook is a brand's program at work.
type hook struct {
	streams
	tx    *world.Tx
	brand *brand
	zone  string
	path  string // zonepath
}

func (h *hook) root() string { return h.path + "/root" }

// fatal is fail_fatal of usr/src/lib/brand/shared/zone/common.ksh: on standard
// output.
func (h *hook) fatal(format string, args ...any) int {
	h.outf("ERROR: "+format, args...)
	return hookFatal
}

// zfs runs zfs(8) and passes on what it says.
func (h *hook) zfs(args ...string) bool {
	ok, out := h.quietZFS(args...)
	h.out.WriteString(out)
	return ok
}

// quietZFS keeps its standard output. It is run to its end, at once: the time that the
// hook takes counts as a whole.
func (h *hook) quietZFS(args ...string) (ok bool, out string) {
	r := storage.Zfs(h.tx, cli.Call{Tool: "zfs", Args: args, Zone: world.GlobalZone})
	cli.Simulated(r.Next == nil)
	h.err.WriteString(r.Stderr)
	return r.Exit == 0, r.Stdout
}

// said prints what the sled refused, and whether it did.
func (h *hook) said(err error) bool {
	if err != nil {
		h.errf("%s", err)
	}
	return err != nil
}

// streams collects the two streams.
type streams struct{ out, err strings.Builder }

func (p *streams) outf(format string, args ...any) { fmt.Fprintf(&p.out, format+"\n", args...) }
func (p *streams) errf(format string, args ...any) { fmt.Fprintf(&p.err, format+"\n", args...) }

func (p *streams) reply(exit int) cli.Reply {
	return cli.Reply{Stdout: p.out.String(), Stderr: p.err.String(), Exit: exit}
}

// brandOf finds a brand of this distribution.
//
// Guess brands-that-do-nothing: zones of brands lx, illumos and joyent cannot be installed; in
// those of bhyve, kvm and emu nothing runs.
// Check: nothing: sledctl uses none of them
func brandOf(tx *world.Tx, name string) (*brand, bool) {
	if !slices.Contains(zonecfg.Brands(tx.State.Mode), name) {
		return nil, false
	}
	b := &brand{name: name, init: "/sbin/init"}
	switch name {
	case "sparse":
		b.loops = []string{"/sbin", "/usr", "/lib"}
		b.overlays = []overlay{{"svc", "lib/svc"}, {"fm", "usr/lib/fm"}}
		b.hooks = bootEnvironmentHooks()
		b.verify = verifySparse
	case "ipkg", "lipkg", "pkgsrc":
		b.hooks = bootEnvironmentHooks()
	case "omicron1":
		b.hooks = omicronHooks()
	case "kvm", "emu":
		b.hooks = hooks{install: nothing, installed: createRoot, clone: b.refused, uninstall: nothing, builtIn: true}
	default:
		b.hooks = hooks{install: b.refused, clone: b.refused, uninstall: b.refused}
	}
	return b, true
}

func nothing(*hook, []string) int { return hookOK }

// refused stands for hooks that are not simulated, such as those of brands that are
// installed from images of zones.
func (b *brand) refused(*hook, []string) int {
	panic(world.Unsimulated{What: "zones of brand " + b.name})
}
