package zonecfg

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// export prints commands that make this configuration (export_func in
// zonecfg.c), in the order in which it has them.
func (s *cfgSession) export(st cfgStatement) {
	o := s.options(st, "?f:")
	if o == nil || !s.initialize(true) {
		return
	}
	text := s.exported()
	file, ok := o['f']
	if !ok {
		s.out.WriteString(text)
		return
	}
	if err := cli.WriteFile(s.tx.Files, path.Join("/", file), []byte(text), 0o644); err != nil {
		s.zerr("opening file %s: %s", file, cli.ErrnoText(err))
	}
}

func (s *cfgSession) exported() string {
	var b strings.Builder
	set := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "set %s=%s\n", name, value)
		}
	}
	b.WriteString("create -b\n")
	set("zonepath", s.config.Zonepath)
	if z := s.tx.FindZone(s.zone); z != nil { // the brand is the one that is saved
		set("brand", z.Config.Brand)
	}
	set("autoboot", strconv.FormatBool(s.config.Autoboot))
	for _, name := range []string{"bootargs", "pool", "limitpriv", "scheduling-class"} {
		set(name, s.config.Globals[name])
	}
	set("ip-type", s.config.IPType)
	set("hostid", s.config.Globals["hostid"])
	set("fs-allowed", s.config.Globals["fs-allowed"])
	for _, kind := range []string{"fs", "net", "device", "capped-memory", "rctl", "attr", "dataset", "dedicated-cpu", "admin",
		"security-flags"} {
		for _, r := range s.config.All(kind) {
			exportResource(&b, r)
		}
	}
	return b.String()
}

func exportResource(b *strings.Builder, r *world.Resource) {
	fmt.Fprintf(b, "add %s\n", r.Type)
	for _, name := range exportedProperties(r.Type) {
		switch value := r.Get(name); {
		case r.Type == "fs" && name == "options":
			for _, o := range quotedOptions(r.Values(name)) {
				fmt.Fprintf(b, "add options %s\n", o)
			}
		case r.Type == "rctl" && name == "value":
			for _, v := range r.Values(name) {
				fmt.Fprintf(b, "add value %s\n", v)
			}
		case r.Type == "capped-memory" && value != "":
			n, _ := strconv.ParseUint(value, 10, 64)
			fmt.Fprintf(b, "set physical=%s\n", inUnits(n))
		case value != "":
			fmt.Fprintf(b, "set %s=%s\n", name, exportedValue(r.Type, value))
		}
	}
	b.WriteString("end\n")
}

// exportedValue quotes the value of a resource's property: it might be a word
// of zonecfg's own (export_prop).
func exportedValue(kind, value string) string {
	if kind == "dedicated-cpu" {
		return value
	}
	return `"` + value + `"`
}

func exportedProperties(kind string) []string {
	if kind == "net" {
		return []string{"address", "allowed-address", "physical", "defrouter", "mac-addr", "vlan-id", "global-nic"}
	}
	return cfgPropertiesOf(kind)
}
