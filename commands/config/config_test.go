package config_test

import (
	"errors"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/commands/config"
	"github.com/sledctl/sledctl/illumos/naming"
)

// parseSize reads "2G" and plain numbers.
func parseSize(s string) (uint64, error) {
	number, giga := strings.CutSuffix(s, "G")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return 0, errors.New("size " + s + ": want 2G")
	}
	if giga {
		n <<= 30
	}
	return n, nil
}

// nearest knows one way to be wrong: the last letter.
func nearest(word string, known []string) string {
	for _, k := range known {
		if len(word) > 3 && strings.HasPrefix(k, word[:len(word)-1]) {
			return k
		}
	}
	return ""
}

func source(file string, env ...string) config.Source {
	return config.Source{Files: []config.File{{Name: "sled.toml", Data: []byte(file)}}, Env: env, ParseSize: parseSize, Nearest: nearest}
}

func compareIP(a, b netip.Prefix) bool { return a == b }
func compareAddr(a, b netip.Addr) bool { return a == b }
func diff(want, got config.Config) string {
	return cmp.Diff(want, got, cmp.Comparer(compareIP), cmp.Comparer(compareAddr))
}

// usual is the configuration of a sled that configures nothing.
func usual() config.Config {
	return config.Config{
		Host:    config.Host{CommandPath: []string{"/usr/sbin", "/usr/bin", "/sbin", "/usr/lib", "/usr/lib/zones"}, Root: "/"},
		Paths:   config.Paths{Run: "/var/run/sledctl"},
		Storage: config.Storage{Slots: "auto", VdevDir: "/var/tmp"},
		Propolis: config.Propolis{
			Packaging: "auto", Directory: "/opt/oxide/propolis-server", Binary: "/opt/oxide/propolis-server/bin/propolis-server",
			Bootrom: "/opt/oxide/propolis-server/blob/OVMF_CODE.fd", Port: 12400,
			Images: []string{"/opt/oxide/propolis-server.tar.gz", "/opt/oxide/overlay.tar.gz"},
		},
		Names: config.Names{
			ZonePrefix: "propolis_instance_", BasePrefix: "propolis_base", VNICPrefix: "vnic_propolis", GuestPrefix: "vnic_propolis_guest",
		},
		Instance: config.Instance{CPUs: 2, Memory: 2 << 30},
		Bundle:   config.Bundle{MaxSize: 1 << 30},
		Agent:    config.Agent{TombstoneTTL: config.Duration(24 * time.Hour)},
		Nexus:    config.Nexus{Mode: "auto"},
		NICs:     config.NICs{LockFile: "/etc/sledctl/nics.lock", Agent: true, FirstLook: config.Duration(10 * time.Minute)},
	}
}

func TestLoadDefaults(t *testing.T) {
	for name, s := range map[string]config.Source{
		"nothing": source(""), "empty sections": source("[network]\n[names]\n"),
		"variables that are no settings": source("", "SLEDCTL_HOST=sim", "SLEDCTL_CONFIG=/x", "HOME=/", "SLEDCTL_DEBUG_ALL=1", "NETWORK_MTU=1", "SLEDCTL_NETWORK_MTU="),
	} {
		got, err := config.Load(s)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := diff(usual(), got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	if p := usual().Names.Prefixes(); p != naming.DefaultPrefixes() {
		t.Errorf("the default prefixes are %+v", p)
	}
	if trace := usual().Paths.Trace(); trace != "/var/run/sledctl/trace" {
		t.Errorf("traces are in %s", trace)
	}
}

const everything = `
[host]
command_path = ["/opt/bin", "/usr/sbin"]
root = "/sled"
[paths]
run = "/run/s"
ledger = "/var/lib/s"
[network]
control_link = "net0"
etherstub = "stub0"
gz_vnic = "gz0"
gz_address = "fd00:1::1/64"
underlay = "fd00:1::/64"
gateway = "fd00:1::fe"
mtu = 9000
guest_link = "net1"
[storage]
slots = "none"
devices = ["u2:/dev/dsk/c3t0d0"]
vdev_dir = "/vdevs"
vdevs = ["m2_0.vdev","u2_a.vdev"]
key = "file:/k"
datasets = ["u2:images quota=1G","m2:x"]
zone_pools = ["tank"]
[propolis]
packaging = "lofs"
directory = "/opt/p"
binary = "server"
bootrom = "/blob/fw"
library_path = "/a:/b"
images = ["/img/p.tar.gz"]
port = 1
[names]
zone_prefix = "z_"
base_prefix = "b_"
vnic_prefix = "v_"
guest_prefix = "g_"
[instance]
cpus = 4
memory = "8G"
reservoir = "64G"
[bundle]
directory = "/var/crash/zones"
max_size = "3G"
[image]
directory = "/data/images"
[agent]
listen = ["unix:/a.sock", "tcp:127.0.0.1:1"]
tombstone_ttl = "90s"
[nexus]
url = "http://10.0.0.1:12221"
mode = "doorbell"
rack_id = "c19a698f-c6f9-4a17-ae30-20d711b8f7dc"
sled_id = "5b6f33bb-9c0c-4a3c-8e5f-2d6b1c0b7a11"
[nics]
url = "http://10.99.99.12:8080"
cn_uuid = "564d2cec-64ee-4aca-9e27-d71c02af3b6a"
admin_uuid = "930896af-bf8c-48d4-885c-6573a94b1853"
allow_nics_endpoint = true
without_etag = true
lock_file = "/moving"
disable_during_migration = true
agent = false
first_look = "1h"
`

func all() config.Config {
	return config.Config{
		Host:  config.Host{CommandPath: []string{"/opt/bin", "/usr/sbin"}, Root: "/sled"},
		Paths: config.Paths{Run: "/run/s", Ledger: "/var/lib/s"},
		Network: config.Network{
			ControlLink: "net0", Etherstub: "stub0", GZVNIC: "gz0", GZAddress: netip.MustParsePrefix("fd00:1::1/64"),
			Underlay: netip.MustParsePrefix("fd00:1::/64"), Gateway: netip.MustParseAddr("fd00:1::fe"), MTU: 9000, GuestLink: "net1",
		},
		Storage: config.Storage{
			Slots: "none", Devices: []string{"u2:/dev/dsk/c3t0d0"}, VdevDir: "/vdevs", Vdevs: []string{"m2_0.vdev", "u2_a.vdev"}, Key: "file:/k",
			Datasets: []string{"u2:images quota=1G", "m2:x"}, ZonePools: []string{"tank"},
		},
		Propolis: config.Propolis{
			Packaging: "lofs", Directory: "/opt/p", Binary: "/opt/p/server", Bootrom: "/blob/fw", LibraryPath: "/a:/b", Images: []string{"/img/p.tar.gz"}, Port: 1,
		},
		Names:    config.Names{ZonePrefix: "z_", BasePrefix: "b_", VNICPrefix: "v_", GuestPrefix: "g_"},
		Instance: config.Instance{CPUs: 4, Memory: 8 << 30, Reservoir: config.Reservoir{Size: 64 << 30}},
		Bundle:   config.Bundle{Directory: "/var/crash/zones", MaxSize: 3 << 30},
		Image:    config.Image{Directory: "/data/images"},
		Agent:    config.Agent{Listen: []string{"unix:/a.sock", "tcp:127.0.0.1:1"}, TombstoneTTL: config.Duration(90 * time.Second)},
		Nexus:    config.Nexus{URL: "http://10.0.0.1:12221", Mode: "doorbell", RackID: "c19a698f-c6f9-4a17-ae30-20d711b8f7dc", SledID: "5b6f33bb-9c0c-4a3c-8e5f-2d6b1c0b7a11"},
		NICs: config.NICs{
			URL: "http://10.99.99.12:8080", CNUUID: "564d2cec-64ee-4aca-9e27-d71c02af3b6a", AdminUUID: "930896af-bf8c-48d4-885c-6573a94b1853",
			AllowNICsEndpoint: true, WithoutEtag: true, LockFile: "/moving", DisableDuringMigration: true, FirstLook: config.Duration(time.Hour),
		},
	}
}

func TestLoadFile(t *testing.T) {
	got, err := config.Load(source(everything))
	if err != nil {
		t.Fatal(err)
	}
	if d := diff(all(), got); d != "" {
		t.Error(d)
	}
}

// The same settings from the environment give the same.
func TestLoadEnvironment(t *testing.T) {
	env := []string{}
	section := ""
	for line := range strings.Lines(everything) {
		line = strings.TrimSpace(line)
		if name, is := strings.CutPrefix(line, "["); is {
			section = strings.TrimSuffix(name, "]")
			continue
		}
		key, value, ok := strings.Cut(line, " = ")
		if !ok {
			continue
		}
		value = strings.NewReplacer(`"`, "", "[", "", "]", "").Replace(value)
		env = append(env, strings.ToUpper("SLEDCTL_"+section+"_"+key)+"="+value)
	}
	got, err := config.Load(source("", env...))
	if err != nil {
		t.Fatal(err)
	}
	if d := diff(all(), got); d != "" {
		t.Error(d)
	}
}

func TestLoadPrecedence(t *testing.T) {
	s := source("[instance]\ncpus = 3\nmemory = 1073741824\n[network]\nmtu = 1500\n", "SLEDCTL_INSTANCE_CPUS=4", "SLEDCTL_NETWORK_MTU=2000")
	got, err := config.Load(s)
	if err != nil {
		t.Fatal(err)
	}
	if got.Instance != (config.Instance{CPUs: 4, Memory: 1 << 30}) || got.Network.MTU != 2000 || got.Propolis.Port != 12400 {
		t.Errorf("got %+v", got)
	}
}

func TestLoadRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		file, env string
		want      string
	}{
		"a NAPI that is none":        {"[nics]\nurl = \"napi\"\ncn_uuid = \"564d2cec-64ee-4aca-9e27-d71c02af3b6a\"", "", `sled.toml:2: nics.url: "napi" is not the address of a NAPI: http://10.99.99.12`},
		"a sled of no control plane": {"[nexus]\nsled_id = \"5b6f33bb-9c0c-4a3c-8e5f-2d6b1c0b7a11\"", "", `default: nexus.url: is not set, and nexus.sled_id registers the sled there`},
		"a NAPI, and no sled":        {"[nics]\nurl = \"http://a\"", "", `default: nics.cn_uuid: is not set, and NAPI must be asked for somebody's records`},
		"a switch that is none":      {"[network]\nopte_address = \"fd00::1\"\nopte_boundary = [\"10.0.0.1\"]", "", `sled.toml:3: network.opte_boundary: "10.0.0.1" is no IPv6 address`},
		"a UUID that is none":        {"[nics]\ncn_uuid = \"564D2CEC-64EE-4ACA-9E27-D71C02AF3B6\"", "", `sled.toml:2: nics.cn_uuid: "564D2CEC-64EE-4ACA-9E27-D71C02AF3B6" is not a UUID: 564d2cec-64ee-4aca-9e27-d71c02af3b6a`},
		"a flag that is none":        {"[nics]\nwithout_etag = 1", "", `sled.toml:2: nics.without_etag: 1 is neither true nor false`},
		"an unknown key":             {"[network]\n\nmtv = 1500", "", `sled.toml:3: network.mtv: unknown key: did you mean "network.mtu"?`},
		"the wrong section":          {"[host]\nmtu = 1500", "", `sled.toml:2: host.mtu: unknown key: did you mean "network.mtu"?`},
		"no section":                 {"# top\ncpus = 1500", "", `sled.toml:2: cpus: unknown key: did you mean "instance.cpus"?`},
		"an unknown section":         {"\n[bogus]\nx = 1", "", `sled.toml:3: bogus.x: unknown key`},
		"an empty one":               {"\n[bogus]\n", "", `sled.toml:2: bogus: unknown key`},
		"a section that is none":     {"network = 3", "", `sled.toml:1: network: is a section: [network]`},
		"a key and a bound": {"[network]\nmtv = 1\nmtu = 70\n[instance]\ncpus = \"many\"\nmemory = 7", "SLEDCTL_INSTANCE_SPARES=65", `5 settings are wrong
  SLEDCTL_INSTANCE_SPARES: instance.spares: 65 is not between 0 and 64
  sled.toml:2: network.mtv: unknown key: did you mean "network.mtu"?
  sled.toml:3: network.mtu: 70 is not between 1280 and 65535, nor 0
  sled.toml:5: instance.cpus: "many" is not a whole number
  sled.toml:6: instance.memory: 7 bytes is not a whole number of MiB`},
		"what another key would make right": {"[network]\nunderlai = \"fd00:1::/64\"\ngateway = \"fd00:1::fe\"\n[nics]\nurl = \"http://a\"\ncn_uuids = \"x\"", "", `2 settings are wrong
  sled.toml:2: network.underlai: unknown key: did you mean "network.underlay"?
  sled.toml:6: nics.cn_uuids: unknown key: did you mean "nics.cn_uuid"?`},
		"a list of tables":    {"[[network]]\nmtu = 1", "", `sled.toml:1: network: is a section: [network]`},
		"an inline table":     {"a = 1\nhost = {roots = 1}", "", "2 settings are wrong\n  sled.toml:1: a: unknown key\n" + `  sled.toml:2: host.roots: unknown key: did you mean "host.root"?`},
		"a deep key":          {"[network.mtu]\nx = 1", "", `sled.toml:2: network.mtu.x: unknown key`},
		"upper case":          {"[network]\nMTU = 1500", "", `sled.toml:2: network.MTU: unknown key`},
		"an unknown variable": {"", "SLEDCTL_NETWORK_MTV=1", `SLEDCTL_NETWORK_MTV: network.mtv: unknown key: did you mean "network.mtu"?`},
		"no TOML":             {"[host]\nroot = ", "", "sled.toml:2: not TOML: "},
		"a key twice":         {"[host]\nroot = \"/\"\nroot = \"/\"", "", "sled.toml:3: not TOML: "},

		"text for a number":       {"[network]\nmtu = \"big\"", "", `sled.toml:2: network.mtu: "big" is not a whole number`},
		"a fraction":              {"[network]\nmtu = 1.5", "", `sled.toml:2: network.mtu: 1.5 is not a whole number`},
		"a number for text":       {"[host]\nroot = 3", "", `sled.toml:2: host.root: 3 is not text: put it in quotes`},
		"text in a list":          {"[storage]\nzone_pools = [1]", "", `sled.toml:2: storage.zone_pools: 1 is not text: put it in quotes`},
		"a number for a list":     {"[storage]\nzone_pools = 1", "", `sled.toml:2: storage.zone_pools: 1 is not a list of texts: ["a", "b"]`},
		"an address, no prefix":   {"[network]\nunderlay = \"fd00::1\"", "", `sled.toml:2: network.underlay: fd00::1 is not an address with the length of its prefix: "fd00:1::1/64"`},
		"a prefix, no address":    {"[network]\ngateway = \"fd00::/64\"", "", `sled.toml:2: network.gateway: fd00::/64 is not an IP address: "fd00:1::1"`},
		"a number for an address": {"[network]\ngateway = 1", "", `sled.toml:2: network.gateway: 1 is not an IP address: "fd00:1::1"`},
		"no size":                 {"", "SLEDCTL_INSTANCE_MEMORY=much", `SLEDCTL_INSTANCE_MEMORY: instance.memory: size much: want 2G`},
		"a negative size":         {"[instance]\nmemory = -1", "", `sled.toml:2: instance.memory: -1 is not a size: "2G"`},
		"a port too high":         {"", "SLEDCTL_PROPOLIS_PORT=65536", `SLEDCTL_PROPOLIS_PORT: propolis.port: 65536 is not between 0 and 65535`},

		"no port":                        {"[propolis]\nport = 0", "", `sled.toml:2: propolis.port: 0 is not a port: 1 to 65535`},
		"a relative path":                {"[paths]\nrun = \"run\"", "", `sled.toml:2: paths.run: "run" is not an absolute name: /a/b`},
		"a path with dots":               {"[paths]\nledger = \"/a/../b\"", "", `sled.toml:2: paths.ledger: "/a/../b" is not an absolute name: /a/b`},
		"run in the root":                {"[paths]\nrun = \"/\"", "", `sled.toml:2: paths.run: must be a directory of its own`},
		"no command path":                {"[host]\ncommand_path = []", "", `sled.toml:2: host.command_path: is empty: want at least one directory`},
		"a relative command":             {"", "SLEDCTL_HOST_COMMAND_PATH=/usr/bin,bin", `SLEDCTL_HOST_COMMAND_PATH: host.command_path: "bin" is not an absolute name: /a/b`},
		"a relative library":             {"[propolis]\nlibrary_path = \"/a:b\"", "", `sled.toml:2: propolis.library_path: "b" is not an absolute name: /a/b`},
		"a link":                         {"[network]\ncontrol_link = \"net-0\"", "", `sled.toml:2: network.control_link: "net-0" is not the name of a link: letters, digits, _ and ., a number last, as in net0`},
		"an address alone":               {"[network]\ngz_address = \"fd00::1/64\"", "", `sled.toml:2: network.gz_address: needs network.gz_vnic, which would carry it`},
		"an underlay address":            {"[network]\nunderlay = \"10.0.0.1/24\"", "", `sled.toml:2: network.underlay: 10.0.0.1/24 is an address: the network is 10.0.0.0/24`},
		"an underlay of one":             {"[network]\nunderlay = \"10.0.0.0/31\"", "", `sled.toml:2: network.underlay: 10.0.0.0/31 has no room for addresses`},
		"a gateway alone":                {"[network]\ngateway = \"10.0.0.1\"", "", `sled.toml:2: network.gateway: needs network.underlay: with DHCP the router comes with the address`},
		"a gateway elsewhere":            {"[network]\nunderlay = \"10.0.0.0/24\"\ngateway = \"10.0.1.1\"", "", `sled.toml:3: network.gateway: 10.0.1.1 is not in network.underlay, 10.0.0.0/24`},
		"a small MTU":                    {"[network]\nmtu = 1279", "", `sled.toml:2: network.mtu: 1279 is not between 1280 and 65535, nor 0`},
		"a pool":                         {"[storage]\nzone_pools = [\"rpool/zone\"]", "", `sled.toml:2: storage.zone_pools: "rpool/zone" is not the name of a pool`},
		"a pool twice":                   {"[storage]\nzone_pools = [\"a\", \"a\"]", "", `sled.toml:2: storage.zone_pools: "a" is there twice`},
		"slots of no board":              {"[storage]\nslots = \"gimlt\"", "", `sled.toml:2: storage.slots: "gimlt" is none of auto, gimlet, cosmo, none`},
		"no file for a disk":             {"[storage]\nvdevs = [\"disk0\"]", "", `sled.toml:2: storage.vdevs: "disk0" is not the name of such a file: m2_0.vdev or u2_0.vdev`},
		"a disk of no kind":              {"[storage]\ndevices = [\"/dev/dsk/c3t0d0\"]", "", `sled.toml:2: storage.devices: "/dev/dsk/c3t0d0" is not a disk: u2:/dev/dsk/c3t0d0`},
		"keys from nowhere":              {"[storage]\nkey = \"/k\"", "", `sled.toml:2: storage.key: "/k" is not file:/NAME, command:WORDS, or development`},
		"a short salt":                   {"[storage]\nkey = \"command:k\"\nsalt = \"00ff\"", "", `sled.toml:3: storage.salt: "00ff" is not 64 hexadecimal digits`},
		"a salt of a key file":           {"[storage]\nkey = \"file:/k\"\nsalt = \"" + strings.Repeat("0f", 32) + "\"", "", `sled.toml:3: storage.salt: is for the secrets of a command, and storage.key is "file:/k"`},
		"a key file anywhere":            {"[storage]\nkey = \"file:k\"", "", `sled.toml:2: storage.key: "k" is not an absolute name: /a/b`},
		"no image":                       {"[propolis]\nimages = []", "", `sled.toml:2: propolis.images: names no image`},
		"a relative image":               {"[propolis]\nimages = [\"p.tar.gz\"]", "", `sled.toml:2: propolis.images: "p.tar.gz" is not an absolute name: /a/b`},
		"an image with blanks":           {"[propolis]\nimages = [\"/a b\"]", "", `sled.toml:2: propolis.images: "/a b" has a character that zoneadm does not pass on as it is`},
		"a packaging":                    {"[propolis]\npackaging = \"rpm\"", "", `sled.toml:2: propolis.packaging: "rpm" is not auto, lofs or image`},
		"prefixes":                       {"[names]\nvnic_prefix = \"v1\"", "", `sled.toml:2: names: VNIC prefix "v1" ends in a digit, which would run into the number`},
		"no CPUs":                        {"[instance]\ncpus = 0", "", `sled.toml:2: instance.cpus: 0 is not between 1 and 254`},
		"more CPUs than Propolis takes":  {"[instance]\ncpus = 255", "", `sled.toml:2: instance.cpus: 255 is not between 1 and 254`},
		"a time without a unit":          {"[agent]\ntombstone_ttl = \"5\"", "", `sled.toml:2: agent.tombstone_ttl: 5 is not a time above 0: "90s", "5m", "24h"`},
		"a control plane without a port": {"[nexus]\nurl = \"http://fd00::1\"", "", `sled.toml:2: nexus.url: "http://fd00::1": want http://ADDRESS:PORT`},
		"a way that is none":             {"[nexus]\nmode = \"bell\"", "", `sled.toml:2: nexus.mode: "bell": want doorbell, upcall, auto or off`},
		"downloads in a relative place":  {"[image]\ndirectory = \"images\"", "", `sled.toml:2: image.directory: "images" is not an absolute name: /a/b`},
		"bundles in a relative place":    {"[bundle]\ndirectory = \"crash\"", "", `sled.toml:2: bundle.directory: "crash" is not an absolute name: /a/b`},
		"half a MiB":                     {"[instance]\nmemory = 524288", "", `sled.toml:2: instance.memory: 524288 bytes is not a whole number of MiB`},
		"two things":                     {"[instance]\ncpus = 0\nmemory = 1", "", "2 settings are wrong\n  sled.toml:2: instance.cpus: 0 is not between 1 and 254\n  sled.toml:3: instance.memory: 1 bytes is not a whole number of MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Load(source(c.file, c.env))
			if err == nil {
				t.Fatal("accepted")
			}
			if _, ok := errors.AsType[*config.Error](err); !ok {
				t.Errorf("%T is no *config.Error", err)
			}
			if got := err.Error(); got != c.want && !(strings.HasSuffix(c.want, "TOML: ") && strings.HasPrefix(got, c.want)) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestLoadAcceptsLinkNamesAsDladmDoes(t *testing.T) {
	for name, want := range map[string]bool{
		"net0": true, "a1.b2": true, "_x0": true, "net10": true, strings.Repeat("n", 30) + "1": true,
		"net": false, "net01": false, "0net0": false, "1": false, strings.Repeat("n", 31) + "1": false, "né0": false, "net 0": false,
	} {
		if _, err := config.Load(source("", "SLEDCTL_NETWORK_GUEST_LINK="+name)); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestLoadWithoutHelpers(t *testing.T) {
	_, err := config.Load(config.Source{Files: []config.File{{Name: "f", Data: []byte("[network]\nmtv = 1\n")}}, ParseSize: parseSize})
	if err == nil || err.Error() != "f:2: network.mtv: unknown key" {
		t.Errorf("got %v", err)
	}
	if _, err := config.Load(config.Source{}); err == nil {
		t.Error("a size was read by nobody")
	}
}

func TestKeysAreTheManual(t *testing.T) {
	keys := config.Keys()
	seen := map[string]bool{}
	for _, k := range keys {
		section, rest, _ := strings.Cut(k.Name, ".")
		if seen[k.Name] || seen[k.Variable] || k.Doc == "" || k.Values == "" || k.Example == "" || k.Name != strings.ToLower(k.Name) || rest == "" || strings.Contains(section, "_") {
			t.Errorf("%+v", k)
		}
		seen[k.Name], seen[k.Variable] = true, true
	}
	if want := (config.Key{Name: "host.root", Variable: "SLEDCTL_HOST_ROOT", Default: "/", Written: `"/"`, Doc: "directory that stands for the sled's / in all file names", Values: "absolute directory", Example: "/a"}); keys[1] != want {
		t.Errorf("got %+v", keys[1])
	}
	// Each can be set in the environment, to its default.
	var env []string
	for _, k := range keys {
		env = append(env, k.Variable+"="+k.Default)
	}
	got, err := config.Load(source("", env...))
	if err != nil {
		t.Fatal(err)
	}
	if d := diff(usual(), got); d != "" {
		t.Error(d)
	}
}

// No variable of the environment reaches a setting on its own.
func TestLoadIsPure(t *testing.T) {
	t.Setenv("SLEDCTL_NETWORK_MTU", "9000")
	t.Setenv("NETWORK_MTU", "9000")
	if _, found := os.LookupEnv("SLEDCTL_NETWORK_MTU"); !found {
		t.Fatal("not set")
	}
	got, err := config.Load(source(""))
	if err != nil || got.Network.MTU != 0 {
		t.Errorf("got %d, %v", got.Network.MTU, err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(everything), "SLEDCTL_NETWORK_MTU=1")
	f.Add([]byte("[[network]]\n[a.b]\nc.\"d.e\" = {f = [1]}\n"), "SLEDCTL_HOST_X")
	f.Fuzz(func(t *testing.T, file []byte, env string) {
		s := source(string(file), env)
		if _, err := config.Load(s); err != nil {
			if _, ok := errors.AsType[*config.Error](err); !ok {
				t.Errorf("%T: %v", err, err)
			}
		}
	})
}

func TestOfSeveralFilesTheFirstThatHasASettingCounts(t *testing.T) {
	s := source("[network]\nmtu = 1500\n")
	s.Files = append(s.Files, config.File{Name: "disk.toml", Data: []byte("[network]\nmtu = 9000\nguest_link = \"net0\"\n"), Late: true})
	c, err := config.Load(s)
	if err != nil || c.Network.MTU != 1500 || c.Network.GuestLink != "net0" {
		t.Errorf("MTU %d, guest link %q, %v", c.Network.MTU, c.Network.GuestLink, err)
	}
}

func TestWhatIsNeededBeforeTheDisksAreThereCannotStandOnThem(t *testing.T) {
	for _, key := range []string{"paths.run", "paths.ledger", "host.root", "host.command_path"} {
		section, name, _ := strings.Cut(key, ".")
		s := source("")
		s.Files = append(s.Files, config.File{Name: "disk.toml", Data: []byte("[" + section + "]\n" + name + " = \"/a\"\n"), Late: true})
		_, err := config.Load(s)
		wrong, ok := errors.AsType[*config.Error](err)
		if !ok || wrong.Key != key || wrong.Where != "disk.toml:2" || !strings.Contains(wrong.Problem, "/etc/sledctl/config.toml") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestOfACommandOnlyTheProgramIsShown(t *testing.T) {
	for given, want := range map[string]string{
		"command:/bin/key one two": "command:/bin/key ...", "command:/bin/key\tone,two": "command:/bin/key ...",
		"command:/bin/key": "command:/bin/key", "development": "development",
	} {
		all, err := config.Settings(config.Source{Env: []string{"SLEDCTL_STORAGE_KEY=" + given}, ParseSize: parseSize})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			if s.Name == "storage.key" && (s.Value != want || s.From != "SLEDCTL_STORAGE_KEY") {
				t.Errorf("%q: %+v", given, s)
			}
		}
	}
}
