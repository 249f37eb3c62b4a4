package propolis

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/sim/propolis/fat"
)

// cloud-init in the simulated guest, as far as it shows on the console: what its data source
// NoCloud reads from a disk of the VM with the label cidata
// (cloudinit/sources/DataSourceNoCloud.py of canonical/cloud-init).

// told is what a guest has read.
type told struct {
	id, hostname string
	keys         int
	userData     bool
	network      bool
}

// readTold looks for a disk with the label; false: there is none that NoCloud takes.
func readTold(spec instanceSpec) (told, bool) {
	for _, key := range sortedKeys(spec.Components) {
		backend := spec.Components[key]
		if backend.Type != "blob_storage_backend" {
			continue
		}
		disk, err := base64.StdEncoding.DecodeString(backend.contents().Base64)
		if err != nil {
			continue
		}
		volume, err := fat.Read(disk)
		if err != nil || volume.Label != "cidata" && volume.Label != "CIDATA" {
			continue
		}
		meta, isMeta := volume.Files["meta-data"]
		user, isUser := volume.Files["user-data"]
		if isMeta && isUser { // it wants both
			return tell(meta, user, volume.Files["network-config"]), true
		}
	}
	return told{}, false
}

// tell reads what the files say. Of YAML, it reads JSON, and lines of a key and a value.
func tell(meta, user, network []byte) told {
	var m struct {
		ID       string   `json:"instance-id"`
		Hostname string   `json:"local-hostname"`
		Keys     []string `json:"public-keys"`
	}
	if json.Unmarshal(meta, &m) != nil {
		m.ID, m.Hostname = line(meta, "instance-id"), line(meta, "local-hostname")
	}
	t := told{id: m.ID, hostname: m.Hostname, keys: len(m.Keys), network: len(network) > 0}
	if first, rest, _ := strings.Cut(string(user), "\n"); strings.TrimSpace(rest) != "" {
		t.userData = true
		if name := line([]byte(rest), "hostname"); strings.TrimSpace(first) == "#cloud-config" && name != "" {
			t.hostname = name // cc_set_hostname: the user's goes before the platform's
		}
	}
	t.hostname, _, _ = strings.Cut(t.hostname, ".") // the rest is the domain
	return t
}

// line is the value of a key at the beginning of a line.
func line(yaml []byte, key string) string {
	for l := range strings.Lines(string(yaml)) {
		if value, is := strings.CutPrefix(l, key+":"); is {
			return strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return ""
}

// log is what cloud-init prints of it.
func (t told) log() []string {
	lines := []string{
		"[    1.100000] cloud-init: DataSourceNoCloud [seed=/dev/vda][dsmode=net], instance-id " + t.id,
		"[    1.200000] cloud-init: hostname " + t.hostname,
	}
	if t.network {
		lines = append(lines, "[    1.300000] cloud-init: network-config applied")
	}
	if t.keys > 0 {
		lines = append(lines, fmt.Sprintf("[    1.400000] cloud-init: %d SSH keys authorized", t.keys))
	}
	if t.userData {
		lines = append(lines, "[    1.500000] cloud-init: user-data applied")
	}
	return lines
}
