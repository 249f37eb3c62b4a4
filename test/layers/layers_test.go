// Package layers checks the layers of the code: which package may import which, and
// which may touch the machine. docs/architecture.md gives the reasons.
package layers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/sledctl/sledctl"

// place is a package's place in the layers.
type place struct {
	// layer: imports go down only, and never to another place of one's layer.
	layer int
	// below is how far a subpackage lies below its parent, whose layer it
	// shares: a parent imports its children, and a child those below it.
	below int
	// by, if set, are the only packages that may import this one.
	by []string
	// imports, if set, replaces the rule of the layers.
	imports []string
	// machine allows what else only host and sim may: see forbidden.
	machine []use
}

// use is a way past the one boundary.
type use string

const (
	useFiles   use = "files"   // package os on files
	useExec    use = "exec"    // processes
	useDial    use = "dial"    // connections to others
	useSignals use = "signals" // syscall beyond error numbers
)

// layers are the layers of the code. A package that is not in them fails the test: a
// new package is added here with its layer.
func layers() map[string]place {
	all := []use{useFiles, useExec, useDial, useSignals}
	sim := place{imports: []string{"host", "sim", "sim/"}, by: append(commandLine(), "sim", "sim/", "test/bench", "test/lattice", "test/sledtest"), machine: all}
	return map[string]place{
		"cmd/sledctl": {layer: 8},

		// Where the operator stands: documents, settings, output; not the sled.
		"test/bench":               {layer: 9, machine: all},                      // measures the program from outside
		"test/fuzz":                {layer: 9, machine: []use{useExec, useFiles}}, // runs the fuzz tests
		"docs/generate":            {layer: 9, machine: []use{useFiles}},
		"packaging":                {layer: 9, machine: []use{useExec, useFiles}}, // builds the program
		"docs/pictures":            {layer: 9, machine: []use{useExec, useFiles}}, // runs the program on a terminal
		"docs/pictures/emulator":   {layer: 9, below: 1},
		"commands":                 {layer: 7},
		"commands/config":          {by: commandLine(), imports: []string{"host", "host/fault", "illumos/naming", "propolis/spec"}, machine: []use{useFiles}},
		"commands/progress":        {by: []string{"commands/cli"}, imports: []string{"commands/terminal", "engine/operation", "engine/plan"}},
		"commands/sleds":           {by: []string{"commands/agent", "commands/cli", "commands/sled"}, imports: []string{"commands/terminal", "host", "host/fault", "illumos/naming"}, machine: []use{useFiles}},
		"commands/query":           {by: commandLine(), imports: []string{"commands/terminal", "host/fault", "illumos/naming"}},
		"commands/terminal":        {by: append(commandLine(), "commands/query", "commands/progress", "commands/sleds", "commands/terminal/screen"), imports: []string{"host", "host/fault", "illumos/naming"}, machine: []use{useFiles}},
		"commands/terminal/screen": {by: []string{"commands/cli", "commands/top"}, imports: []string{"commands/terminal"}},

		// A folder for each word that a command line begins with, and what they share.
		"commands/agent":       {layer: 7, below: 1},
		"commands/base":        {layer: 7, below: 1},
		"commands/bootstrap":   {layer: 7, below: 1},
		"commands/doctor":      {layer: 7, below: 2},                                                // bootstrap runs its checks
		"commands/image":       {layer: 7, below: 1, machine: []use{useFiles}},                      // images lie where the operator stands
		"commands/instance":    {layer: 7, below: 1, machine: []use{useFiles, useSignals, useExec}}, // an editor
		"commands/ledger":      {layer: 7, below: 1},
		"commands/probe":       {layer: 7, below: 1, machine: []use{useFiles}}, // archives
		"commands/propolis":    {layer: 7, below: 1},
		"commands/reap":        {layer: 7, below: 1},
		"commands/sled":        {layer: 7, below: 1},
		"commands/sim":         {layer: 7, below: 1, machine: []use{useExec}}, // a shell
		"commands/storage":     {layer: 7, below: 1},
		"commands/top":         {layer: 7, below: 1, machine: []use{useFiles, useSignals, useExec}}, // what it runs is a process
		"commands/trace":       {layer: 7, below: 1},
		"commands/vnic":        {layer: 7, below: 1},
		"commands/volume":      {layer: 7, below: 1},
		"commands/zone":        {layer: 7, below: 1, machine: []use{useFiles}},
		"commands/events":      {layer: 7, below: 2},
		"commands/logread":     {layer: 7, below: 2}, // the agent answers what instance logs prints
		"commands/status":      {layer: 7, below: 2}, // the agent answers what status prints
		"commands/history":     {layer: 7, below: 2}, // instance history is one, too
		"commands/nics":        {layer: 7, below: 2}, // the agent syncs as nics sync does
		"commands/step":        {layer: 7, below: 2},
		"commands/description": {layer: 7, below: 3},
		"commands/cli":         {layer: 7, below: 4, machine: []use{useFiles, useExec, useSignals}},

		"agent":              {layer: 6, machine: []use{useFiles}},
		"agent/client":       {layer: 6, below: 1, machine: []use{useDial}}, // from another machine: no sled is in between
		"agent/figures":      {layer: 6, below: 1},                          // for Prometheus
		"agent/inventory":    {layer: 6, below: 1},
		"agent/capacity":     {layer: 6, below: 1},
		"agent/registration": {layer: 6, below: 1},
		"agent/reconciler":   {layer: 6, below: 1},
		"agent/vpcs":         {layer: 6, below: 1},
		"agent/api":          {layer: 6, below: 2},
		"sled/bootstrap":     {layer: 5},
		"sled/events":        {layer: 5}, // what was done on a sled
		"sled/status":        {layer: 5}, // what is wrong with a sled, and what to type
		"sled/failure":       {layer: 5}, // what commands print of an error, and an agent answers
		"sled/reap":          {layer: 4},
		"sled/copies":        {layer: 4},
		"sled/transfer":      {layer: 4},
		"sled/lost":          {layer: 4},
		"sled/moves":         {layer: 4},
		"sled/doctor":        {layer: 4}, // status shows its last result

		"sled/storage": {layer: 3}, "sled/network": {layer: 3}, "sled/base": {layer: 3}, "sled/bundles": {layer: 3}, "sled/image": {layer: 3}, "sled/image/checksum": {layer: 3, below: 1}, "sled/image/download": {layer: 3, below: 1}, "sled/localdisk": {layer: 3}, "sled/vpc": {layer: 3}, "sled/instance": {layer: 3}, "sled/nicsync": {layer: 3}, "sled/memory": {layer: 3}, "sled/volume": {layer: 3}, "sled/snapshot": {layer: 3}, "sled/rights": {layer: 3}, "sled/probe": {layer: 3},

		// Above their parent: what asks for an instance, and who follows one.
		"sled/instance/documents": {layer: 3, below: -1}, "sled/instance/watch": {layer: 3, below: -1}, "sled/instance/comparison": {layer: 3, below: -1}, "sled/instance/logs": {layer: 3, below: -1}, "sled/instance/keeper": {layer: 3, below: -1},

		"sled/instance/record":    {layer: 3, below: 6},
		"sled/instance/layout":    {layer: 3, below: 5},
		"sled/instance/secrets":   {layer: 3, below: 4},
		"sled/instance/firstboot": {layer: 3, below: 5},
		"sled/instance/ports":     {layer: 3, below: 4},
		// What the operations of instances decide by: two sleds, and zones without a record.
		"sled/instance/migration": {layer: 3, below: 3}, "sled/instance/adoption": {layer: 3, below: 3},

		"engine/operation":               {layer: 2},
		"engine/operation/operationtest": {imports: []string{"host", "engine/ledger", "engine/operation", "test/hosttest"}, by: []string{}}, // for tests

		"engine/plan": {layer: 1}, "engine/inventory": {layer: 1}, "engine/ledger": {layer: 1}, "engine/bundle": {layer: 1}, "engine/ledger/format": {layer: 1, below: 1},

		"image": {}, "image/qcow2": {below: 1}, // disks in files: pure
		"zone": {}, "vnic": {}, "zfs": {}, "illumos/smf": {}, "illumos/ipadm": {}, "illumos/system": {}, "illumos/reservoir": {}, "illumos/processor": {}, "illumos/kstat": {}, "illumos/disk": {}, "peer/nexus": {}, "peer/napi": {}, "peer/web": {}, "illumos/naming": {}, "illumos/key": {}, "illumos/ips": {}, "illumos/opte": {},
		"illumos/ofmt":    {layer: -1}, // how dladm and ipadm print for programs
		"sled/hardware":   {layer: 3},
		"illumos/devtree": {layer: -1}, // what a machine is and where its disks are, for the packages of layer 0
		"propolis":        {}, "propolis/spec": {below: 1}, "propolis/cidata": {below: 1}, "propolis/packaging": {below: 1}, "propolis/console": {below: 1}, "propolis/forward": {below: 1, machine: []use{useDial}},

		"peer/dropshot":              {layer: -1},                                                                                 // what the servers of Propolis and of the control plane are made with
		"peer/dropshot/dropshottest": {imports: []string{"test/refdata"}, by: []string{"sim/simtest/contract"}},                   // for tests
		"test/refdata":               {imports: []string{}, by: []string{"peer/dropshot/dropshottest"}, machine: []use{useFiles}}, // for tests
		"peer/exchange":              {layer: -2},                                                                                 // one HTTP request over the boundary, for the packages of layer 0
		"peer/exchange/exchangetest": {imports: []string{"host"}, by: []string{"test/steptest"}},                                  // for tests

		// The one boundary, and the sled that is simulated behind it.
		"host": {layer: -3, machine: all}, "host/fault": {layer: -3, below: 1}, "host/lock": {layer: -3, below: 1}, "host/privilege": {layer: -3, below: 1}, "host/device": {layer: -3, below: 1, machine: []use{useFiles}},
		"sim": sim, "sim/world": sim, "sim/layout": sim, "sim/world/scf": sim, "sim/world/zfs": sim, "sim/world/network": sim, "sim/world/crucible": sim, "sim/world/smf": sim, "sim/world/zones": sim, "sim/world/boot": sim, "sim/world/packages": sim, "sim/tools": sim, "sim/tools/cli": sim, "sim/tools/net": sim, "sim/tools/opte": sim, "sim/tools/services": sim, "sim/tools/shell": sim, "sim/tools/storage": sim, "sim/tools/system": sim, "sim/tools/zoneadm": sim, "sim/tools/zonecfg": sim, "sim/propolis": sim, "sim/propolis/fat": sim, "sim/serve": sim, "sim/napi": sim, "sim/nexus": sim, "sim/web": sim,
		"sim/simtest/contract": {imports: []string{"peer/dropshot/dropshottest", "sim"}, by: []string{"test/sledtest"}, machine: []use{useFiles}},                   // for tests
		"test/hosttest":        {imports: []string{"host", "host/"}, by: []string{"engine/operation/operationtest", "test/bench", "test/lattice", "test/sledtest"}}, // for tests
		"test/hosttest/expect": {imports: []string{"host"}, by: []string{}},                                                                                         // for tests
		"test/lattice":         {imports: []string{"host", "sim", "sim/world", "test/hosttest"}, by: []string{"test/sledtest"}},                                     // for tests
		"test/peers":           {imports: []string{"host"}, by: []string{}},                                                                                         // for tests
		"test/structure":       {layer: 9, machine: []use{useExec, useFiles}},                                                                                       // measures the code
		"test/mutants":         {imports: []string{}, by: []string{}},                                                                                               // for tests
		"test/steptest":        {imports: []string{"host", "peer/exchange/exchangetest"}, by: []string{}},                                                           // for tests: what every step promises
		"test/sledtest":        {layer: 9, machine: all},                                                                                                            // for tests: command lines on a simulated sled
		"sim/simtest":          {imports: []string{"sim/world"}, by: []string{"test/sledtest"}, machine: []use{useDial}},                                            // for tests
	}
}

// commandLine are the packages that make up the command line, apart from those of
// the configuration and of the terminal.
func commandLine() []string {
	all := []string{"commands"}
	for _, folder := range []string{
		"agent", "base", "bootstrap", "cli", "description", "doctor", "events", "history", "image", "instance", "ledger", "logread", "nics", "probe", "propolis", "reap", "sim", "sled", "status", "step", "storage", "top", "trace", "vnic", "volume", "zone",
	} {
		all = append(all, "commands/"+folder)
	}
	return all
}

// libraries are those that one package keeps to itself, so that it can be
// changed in one place and costs nobody else its start-up time.
func libraries() map[string][]string {
	return map[string][]string{
		"github.com/spf13/viper":            {"commands/config"},
		"github.com/spf13/cobra":            append(commandLine(), "docs/generate"),
		"github.com/charmbracelet/lipgloss": {"commands/terminal"},
		"github.com/olekukonko/tablewriter": {"commands/terminal"},
		"mvdan.cc/sh/v3":                    {"sim", "sim/"},
		"github.com/coder/websocket":        {"propolis", "sim", "sim/"},
		"github.com/diskfs/go-diskfs":       {"propolis/cidata"},
		"golang.org/x/term":                 {"commands/terminal"},
		"golang.org/x/net":                  {"peer/web"},
		"github.com/klauspost/compress":     {"image", "image/qcow2"},
		"github.com/therootcompany/xz":      {"image"},
		"github.com/creack/pty":             {"docs/pictures"},
		"github.com/getkin/kin-openapi":     {"peer/dropshot/dropshottest"},
		"github.com/rogpeppe/go-internal":   {"test/sledtest"},
		"github.com/google/go-cmp":          {"test/sledtest", "test/steptest"},
		"pgregory.net/rapid":                {},
		"go.uber.org/goleak":                {},
		"testing":                           {"test/hosttest/expect", "test/sledtest", "test/steptest"},
		"github.com/stretchr/testify":       {},
		"golang.org/x/sys/unix":             {"commands/terminal", "commands/top", "host", "host/device", "sim", "sim/"},
		"github.com/pelletier/go-toml":      {"commands/config", "commands/sleds", "sled/instance/documents", "propolis/spec"},
	}
}

// source is one package as far as the plan is concerned: its files that are no
// tests.
type source struct {
	name    string           // without the module: "zone"
	imports []string         // all import paths
	uses    map[use][]string // where it goes past the boundary
}

// TestFloors holds every package to the plan.
func TestFloors(t *testing.T) {
	sources, err := readSources("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) < 5 {
		t.Fatalf("only %d packages found", len(sources))
	}
	for _, s := range sources {
		for _, fault := range faults(s, layers()) {
			t.Error(fault)
		}
	}
}

// faults says where a package leaves the plan.
func faults(s source, plan map[string]place) []string {
	here, ok := plan[s.name]
	if !ok {
		return []string{fmt.Sprintf("%s is not in the table of layers: say where it stands", s.name)}
	}
	var out []string
	for _, path := range s.imports {
		other, ours := strings.CutPrefix(path, module+"/")
		if ours {
			if why := importFault(s.name, here, other, plan); why != "" {
				out = append(out, fmt.Sprintf("%s imports %s: %s", s.name, other, why))
			}
		}
		for library, owners := range libraries() {
			if (path == library || strings.HasPrefix(path, library+"/")) && !matches(owners, s.name) {
				out = append(out, fmt.Sprintf("%s imports %s, which belongs to %v", s.name, path, owners))
			}
		}
	}
	for _, u := range slices.Sorted(maps.Keys(s.uses)) {
		if !slices.Contains(here.machine, u) {
			out = append(out, fmt.Sprintf("%s touches the machine (%s) past package host: %s", s.name, u, strings.Join(s.uses[u], ", ")))
		}
	}
	return out
}

func importFault(name string, here place, other string, plan map[string]place) string {
	there, known := plan[other]
	switch {
	case !known:
		return "it is not in the table of layers"
	case there.by != nil && !matches(there.by, name):
		return fmt.Sprintf("only %v may", there.by)
	case here.imports != nil:
		if !matches(here.imports, other) {
			return fmt.Sprintf("it may import %v only", here.imports)
		}
	case there.by != nil || there.layer < here.layer:
	case there.layer > here.layer:
		return fmt.Sprintf("that goes up, from layer %d to %d", here.layer, there.layer)
	case family(name) != family(other):
		return fmt.Sprintf("that goes sideways, on layer %d", here.layer)
	case there.below <= here.below:
		return "a subpackage lies below its parent"
	}
	return ""
}

// family is the package with those below it: the first part of its name, and the
// second where the first only holds neighbours.
func family(name string) string {
	parts := strings.SplitN(name, "/", 3)
	if len(parts) > 1 && slices.Contains([]string{"sled", "engine", "illumos", "peer"}, parts[0]) {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// matches says whether the list holds the name; an entry that ends in a slash
// stands for everything below.
func matches(list []string, name string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		return entry == name || strings.HasSuffix(entry, "/") && strings.HasPrefix(name, entry)
	})
}

// TestFloorsWouldFail gives the rules what they must not let through, and what
// they must.
func TestFloorsWouldFail(t *testing.T) {
	imports := func(name string, paths ...string) source {
		for i, p := range paths {
			if !strings.Contains(p, ".") {
				paths[i] = module + "/" + p
			}
		}
		return source{name: name, imports: paths}
	}
	uses := func(name string, u use) source {
		return source{name: name, uses: map[use][]string{u: {"os.Open"}}}
	}
	for _, c := range []struct {
		source source
		want   string // part of the fault; empty: none
	}{
		{imports("zone", "host"), ""},
		{imports("zone", "engine/plan"), "goes up"},
		{imports("zone", "zfs"), "goes sideways"},
		{imports("engine/plan", "zone"), ""},
		{imports("engine/plan", "engine/ledger"), "goes sideways"},
		{imports("sled/instance", "sled/base"), "goes sideways"},
		{imports("sled/reap", "sled/instance", "engine/operation", "zone"), ""},
		{imports("sled/instance", "sled/reap"), "goes up"},
		{imports("propolis", "propolis/spec"), ""},
		{imports("propolis/spec", "propolis"), "below its parent"},
		{imports("agent", "agent/client", "agent/api"), ""},
		{imports("agent/client", "agent/api"), ""},
		{imports("agent/api", "agent/client"), "below its parent"},
		{imports("propolis/spec", "zone"), "goes sideways"},
		{imports("host", "zone"), "goes up"},
		{imports("sled/instance", "commands/config"), "only [commands commands/agent"},
		{imports("sled/instance", "sim"), "may"},
		{imports("commands", "commands/config", "commands/terminal", "sim", "agent", "zone"), ""},
		{imports("commands/instance", "commands/cli", "commands/history", "commands/step", "sled/instance", "agent/api"), ""},
		{imports("commands/instance", "commands/zone"), "below its parent"},
		{imports("commands/cli", "commands/instance"), "below its parent"},
		{imports("commands/terminal", "github.com/spf13/cobra"), "which belongs to [commands"},
		{imports("sim/tools", "sim/world", "host"), ""},
		{imports("sim/world", "zone"), "it may import"},
		{imports("commands/config", "engine/operation"), "it may import"},
		{imports("zone", "helpers"), "not in the table"},
		{imports("helpers", "zone"), "not in the table"},
		{imports("zone", "github.com/spf13/viper"), "belongs to [commands/config]"},
		{imports("zone", "github.com/google/go-cmp/cmp"), "belongs to [test/sledtest test/steptest]"},
		{uses("zone", useFiles), "touches the machine (files)"},
		{uses("sled/instance", useExec), "touches the machine (exec)"},
		{uses("agent", useDial), "touches the machine (dial)"},
		{uses("commands", useDial), "touches the machine (dial)"},
		{uses("host", useExec), ""},
		{uses("sim/world", useFiles), ""},
	} {
		got := strings.Join(faults(c.source, layers()), "; ")
		if c.want == "" && got != "" || c.want != "" && !strings.Contains(got, c.want) {
			t.Errorf("%s importing %v, using %v: %q, want %q", c.source.name, c.source.imports, c.source.uses, got, c.want)
		}
	}
}
