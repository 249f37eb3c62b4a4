package zonecfg

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// export prints commands that make this configuration (export_func in
// zonecfg.c), in the order in which it has them.
func (s *cfgSession) export(st cfgStatement) {
	s.options(st, "")
	if s.initialize(true) {
		s.out.WriteString(s.exported())
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
	for _, kind := range []string{"fs", "net", "device", "capped-memory", "rctl", "attr", "dataset", "dedicated-cpu"} {
		for _, r := range s.config.All(kind) {
			s.exportResource(&b, r)
		}
	}
	return b.String()
}

func (s *cfgSession) exportResource(b *strings.Builder, r *world.Resource) {
	fmt.Fprintf(b, "add %s\n", r.Type)
	names := s.words.Properties[r.Type]
	if r.Type == "net" {
		names = []string{"address", "allowed-address", "physical", "defrouter", "mac-addr", "vlan-id", "global-nic"}
	}
	for _, name := range names {
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
		case r.Type == "dedicated-cpu" && value != "":
			fmt.Fprintf(b, "set %s=%s\n", name, value)
		case value != "": // quoted, for it might be a word of zonecfg's own (export_prop)
			fmt.Fprintf(b, "set %s=\"%s\"\n", name, value)
		}
	}
	b.WriteString("end\n")
}
