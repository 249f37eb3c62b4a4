package config

import (
	"fmt"

	"github.com/sledctl/sledctl/propolis/spec"
)

// entry is what the manual has about a key in addition to its default and its meaning.
type entry struct {
	values  string // which values the key takes, with their unit and bounds
	example string // one of them, as it is written in the environment
}

// Values that several keys take.
const (
	aDirectory = "absolute directory"
	aLink      = "name of a link"
	aSwitch    = "true or false"
	aTime      = "time above 0, with a unit: 90s, 5m, 24h"
	aUUID      = "UUID in lower case"
	aZoneStart = "letters, digits, and . _ - after the first"
	aVNICStart = "letters, digits and _, a letter first, no digit last, at most 22 bytes"
)

// manual is an entry for each key.
func manual() map[string]entry {
	return map[string]entry{
		"host.command_path": {"list of absolute directories, at least one", "/usr/sbin,/usr/bin,/sbin,/usr/lib,/usr/lib/zones,/opt/site/bin"},
		"host.root":         {aDirectory, "/a"},

		"paths.run":    {aDirectory + " other than /", "/system/volatile/sledctl"},
		"paths.ledger": {aDirectory, "/var/lib/sledctl"},

		"network.control_link":  {aLink, "net1"},
		"network.etherstub":     {aLink, "propolis_stub0"},
		"network.gz_vnic":       {aLink, "propolis_gz0"},
		"network.gz_address":    {"address with the length of its prefix; needs network.gz_vnic", "fd00:1122:3344:101::1/64"},
		"network.underlay":      {"network with the length of its prefix, of at least 4 addresses", "fd00:1122:3344:101::/64"},
		"network.gateway":       {"address in network.underlay", "fd00:1122:3344:101::fe"},
		"network.mtu":           {"0, or 1280 to 65535 bytes", "9000"},
		"network.guest_link":    {aLink, "net0"},
		"network.opte_links":    {"list of two links", "net0,net1"},
		"network.opte_boundary": {"list of IPv6 addresses", "fd00:99::1,fd00:99::2"},
		"network.opte_address":  {"IPv6 address", "fd00:1122:3344:101::1"},

		"storage.slots":      {"auto, gimlet, cosmo or none", "gimlet"},
		"storage.devices":    {"list of u2:DEVICE and m2:DEVICE", "u2:/dev/dsk/c3t0d0,m2:/dev/dsk/c4t0d0"},
		"storage.vdev_dir":   {aDirectory, "/rpool/vdevs"},
		"storage.vdevs":      {"list of m2_NAME.vdev and u2_NAME.vdev", "m2_0.vdev,u2_0.vdev"},
		"storage.key":        {"file:/NAME, command:WORDS or development", "command:/opt/site/bin/rack-secret"},
		"storage.salt":       {"64 hexadecimal digits; only if storage.key is a command", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
		"storage.datasets":   {"list of u2:NAME and m2:NAME, each followed by any of quota=SIZE, reservation=SIZE, compression=WORD, canmount=on|off|noauto, mountpoint=/NAME, uuid=UUID", "u2:images quota=100G mountpoint=/images"},
		"storage.zone_pools": {"list of pools, each once", "tank"},

		"propolis.packaging":    {"auto, lofs or image", "image"},
		"propolis.directory":    {aDirectory, "/opt/site/propolis"},
		"propolis.binary":       {"file", "bin/propolis-server"},
		"propolis.bootrom":      {"file", "/usr/share/bhyve/firmware/BHYVE.fd"},
		"propolis.library_path": {"absolute directories, with colons between them", "/usr/lib/amd64:/opt/ooce/lib/amd64"},
		"propolis.images":       {"list of absolute names, at least one, of letters, digits and @%_+=:,./-", "/opt/oxide/propolis-server.tar.gz,/opt/oxide/overlay.tar.gz"},
		"propolis.port":         {"1 to 65535", "12400"},

		"names.sled":              {"text", "sled7"},
		"names.zone_prefix":       {aZoneStart + ", at most 27 bytes", "vm_"},
		"names.base_prefix":       {aZoneStart + ", at most 44 bytes", "vm_base"},
		"names.vnic_prefix":       {aVNICStart, "vmcontrol"},
		"names.guest_prefix":      {aVNICStart + ", other than those of control VNICs", "vmguest"},
		"names.other_zone_prefix": {"as names.zone_prefix, or empty", "oxz_propolis-server_"},
		"names.other_vnic_prefix": {"as names.vnic_prefix, or empty", "oxControlInstance"},

		"instance.cpus":          {fmt.Sprintf("1 to %d", spec.MaxCPUs), "4"},
		"instance.memory":        {"size in whole MiB, at least 1M", "8G"},
		"instance.spares":        {"0 to 64", "4"},
		"instance.spares_booted": {"0 to `instance.spares`", "1"},
		"instance.reservoir":     {"auto, 1% to 99% of the sled's memory, or a size in whole MiB, at most what the kernel allows", "auto"},

		"bundle.directory": {aDirectory + " that exists", "/var/crash/zones"},
		"bundle.max_size":  {"size", "4G"},
		"image.directory":  {aDirectory + " that exists", "/data/downloads"},

		"agent.listen":        {"list of unix:/NAME and tcp:ADDRESS:PORT", "unix:/var/run/sledctl/agent.sock,tcp:127.0.0.1:12345"},
		"agent.token_file":    {"file that only its owner may read, at most 64 KiB; tokens of at least 32 characters", "/etc/sledctl/tokens"},
		"agent.operators":     {"list of common names, DNS names, URIs and email addresses", "ops.example.com"},
		"agent.host_names":    {"list of names", "sled7.example.com"},
		"agent.flat_network":  {aSwitch, "true"},
		"agent.tombstone_ttl": {aTime, "48h"},

		"nexus.url":  {"http://ADDRESS:PORT", "http://[fd00:1122:3344:102::5]:12221"},
		"nexus.mode": {"doorbell, upcall, auto or off", "doorbell"},

		"nics.url":                      {"http://ADDRESS or http://ADDRESS:PORT", "http://10.99.99.12"},
		"nexus.rack_id":                 {aUUID, "c19a698f-c6f9-4a17-ae30-20d711b8f7dc"},
		"nexus.sled_id":                 {aUUID, "5b6f33bb-9c0c-4a3c-8e5f-2d6b1c0b7a11"},
		"nics.cn_uuid":                  {aUUID, "564d2cec-64ee-4aca-9e27-d71c02af3b6a"},
		"nics.admin_uuid":               {aUUID, "930896af-bf8c-48d4-885c-6573a94b1853"},
		"nics.allow_nics_endpoint":      {aSwitch, "true"},
		"nics.without_etag":             {aSwitch, "true"},
		"nics.lock_file":                {"absolute name of a file", "/var/run/moving"},
		"nics.disable_during_migration": {aSwitch, "true"},
		"nics.agent":                    {aSwitch, "false"},
		"nics.first_look":               {aTime, "5m"},
	}
}
