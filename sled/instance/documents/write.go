package documents

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// Of is the document of an instance that the ledger has, and its record.
func Of(s instance.Settings, view ledger.View, ref string) (string, record.Record, error) {
	r, err := s.Find(view, ref)
	if err != nil {
		return "", r, err
	}
	text, err := Text(r, r.ID == s.ID(r.Name))
	return text, r, err
}

// Text is the document, in TOML, by which instance ensure makes an instance as its record
// has it, with nothing left open. Own says that its id is the one that its name stands for. What is nothing to
// describe is in comments. In the places of secrets stand their digests, which ensure takes
// for the secrets that the instance has.
func Text(r record.Record, own bool) (string, error) {
	var b strings.Builder
	line := func(key, value string) { fmt.Fprintf(&b, "%s = %s\n", key, value) }
	if r.Protected {
		b.WriteString("# protected: instance ensure --protect\n")
	}
	if r.Wanted == record.WantedStopped {
		b.WriteString("# stopped: instance ensure starts it\n")
	}
	if hasSecrets(r.Spec) {
		b.WriteString("# secret:...: a secret that stays as it is; no other instance has it\n")
	}
	if !own {
		line("id", quoted(r.ID))
	}
	line("name", quoted(r.Name))
	line("cpus", fmt.Sprint(r.Spec.CPUs))
	if r.Spec.CPUCap != 0 {
		line("cpu_cap", r.Spec.CPUCap.String())
	}
	line("memory", quoted(record.SizeText(r.Spec.Memory)))
	line("address", quoted(r.Spec.Address.String()))
	line("pool", quoted(r.Spec.Pool))
	if r.Spec.StartOrder != 0 {
		line("start_order", r.Spec.StartOrder.String())
	}
	if r.Spec.Machine != nil {
		text, err := json.Marshal(r.Spec.Machine)
		if err != nil {
			return "", err
		}
		line("spec", quoted(string(text)))
	} else if len(r.Spec.Disks) == 0 {
		line("disks", "[]")
	}
	if len(r.Spec.NICs) == 0 {
		line("nics", "[]")
	}
	writeCloudInit(&b, r.Spec.CloudInit)
	if r.Spec.Machine == nil { // else its disks are the spec's
		writeDisks(&b, r.Spec.Disks)
	}
	writeCrucible(&b, r.Spec.Crucible)
	for _, n := range r.Spec.NICs {
		b.WriteString("\n[[nics]]\n")
		if n.OPTE {
			writePort(line, n.Port)
		} else {
			line("over", quoted(n.Over))
		}
		line("mac", quoted(n.MAC))
		if n.VLAN != 0 {
			line("vlan", fmt.Sprint(n.VLAN))
		}
		if n.MaxBW != 0 {
			line("max_bw", fmt.Sprint(n.MaxBW))
		}
		if len(n.AllowIP) > 0 {
			line("allow_ip", `["`+strings.Join(n.AllowIP, `", "`)+`"]`)
		}
	}
	return b.String(), nil
}

// hasSecrets reports whether a digest is written in the place of a secret.
func hasSecrets(s record.Spec) bool {
	c := s.CloudInit
	return hasKeys(s.Crucible) || s.Machine != nil && len(s.Machine.Sealed()) > 0 || c != nil && c.UserData+c.NetworkConfig != ""
}

// writePort writes what a NIC in a VPC has instead of a link.
func writePort(line func(key, value string), p record.Port) {
	line("opte", "true")
	line("vni", fmt.Sprint(p.VNI))
	line("ip", quoted(p.IP))
	line("subnet", quoted(p.Subnet))
	line("gateway", quoted(p.Gateway))
	for _, one := range []struct{ key, value string }{{"snat", p.SNAT}, {"ephemeral_ip", p.Ephemeral}} {
		if one.value != "" {
			line(one.key, quoted(one.value))
		}
	}
	for _, list := range []struct {
		key   string
		texts []string
	}{{"floating_ips", p.Floating}, {"rules", p.Rules}, {"routes", p.Routes}} {
		if len(list.texts) > 0 {
			line(list.key, `["`+strings.Join(list.texts, `", "`)+`"]`)
		}
	}
}

func writeDisks(b *strings.Builder, disks []record.Disk) {
	for _, d := range disks {
		path := d.Path
		if volume, is := d.Volume(); is {
			path = volume
		}
		fmt.Fprintf(b, "\n[[disks]]\npath = %s\n", quoted(path))
		if d.ReadOnly {
			b.WriteString("readonly = true\n")
		}
	}
}

// quoted is a basic string of TOML: those of JSON are, but for what JSON does not have to
// escape.
func quoted(s string) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // a string can always be encoded
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007f`)
}
