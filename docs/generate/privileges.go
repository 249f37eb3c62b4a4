package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host/privilege"
	"github.com/sledctl/sledctl/sled/rights"
)

// profiles is the page without its tables.
//
//go:embed privileges.txt
var profiles string

// privilegesPage lists the commands by what they need, and the programs that they run.
func privilegesPage() []byte {
	var out bytes.Buffer
	before, after, _ := strings.Cut(profiles, "TABLES\n")
	out.WriteString(made + "\n" + before)
	out.WriteString("| needs | commands |\n|---|---|\n")
	for _, g := range rights.Groups() {
		names := append([]string{}, g.Others...)
		for _, name := range g.Asking {
			names = append(names, name+"\\*")
		}
		fmt.Fprintf(&out, "| %s | %s |\n", g.Need, strings.Join(names, ", "))
	}
	out.WriteString("\n\\* asks the Propolis of VMs. Where [`network.underlay`](config.md) is not set, control addresses come from\nDHCP, and sledctl reads them in the VMs' zones: these commands then need all privileges.\n")
	out.WriteString("\n## What programs need\n\n| program | needs | profile of illumos | says |\n|---|---|---|---|\n")
	known := privilege.Programs()
	for _, name := range slices.Sorted(maps.Keys(known)) {
		p := known[name]
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", name, p.Need, p.Profile, cell(p.Source))
	}
	out.WriteString(after)
	return out.Bytes()
}
