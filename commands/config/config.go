// Package config reads sledctl's settings: SLEDCTL_SECTION_KEY in the environment,
// else the configuration file, else the default. Flags are the commands' own.
// Only this package imports viper. It does no I/O: the caller of Load reads the file.
package config

import (
	"fmt"
	"net/netip"
	"path"
	"time"

	"github.com/sledctl/sledctl/illumos/naming"
)

// Config are all settings. The tags of its sections are the one list of keys,
// with their defaults and what they mean; see Keys.
type Config struct {
	Host     Host     `toml:"host"`
	Paths    Paths    `toml:"paths"`
	Network  Network  `toml:"network"`
	Storage  Storage  `toml:"storage"`
	Propolis Propolis `toml:"propolis"`
	Names    Names    `toml:"names"`
	Instance Instance `toml:"instance"`
	Bundle   Bundle   `toml:"bundle"`
	Image    Image    `toml:"image"`
	Agent    Agent    `toml:"agent"`
	Nexus    Nexus    `toml:"nexus"`
	NICs     NICs     `toml:"nics"`
}

// Host is the machine that sledctl runs on.
type Host struct {
	CommandPath []string `toml:"command_path" default:"/usr/sbin,/usr/bin,/sbin,/usr/lib,/usr/lib/zones" doc:"directories in which sledctl looks for host commands, in this order"`
	Root        string   `toml:"root" default:"/" doc:"directory that stands for the sled's / in all file names"`
}

// Paths are where sledctl keeps its own files.
type Paths struct {
	Run    string `toml:"run" default:"/var/run/sledctl" doc:"locks, traces, and the output of running commands; it must be empty after a boot"`
	Ledger string `toml:"ledger" default:"" doc:"the ledger; empty: the config datasets of the M.2s, or else /var/opt/ooce/sledctl or /opt/custom/sledctl, if it exists"`
}

// Trace is the directory of traces.
func (p Paths) Trace() string { return path.Join(p.Run, "trace") }

// Network is how zones are connected.
type Network struct {
	ControlLink  string       `toml:"control_link" default:"" doc:"link that control VNICs are made over; empty: the etherstub, else the link of the default route"`
	Etherstub    string       `toml:"etherstub" default:"" doc:"etherstub that bootstrap makes; empty: none"`
	GZVNIC       string       `toml:"gz_vnic" default:"" doc:"VNIC of the global zone that bootstrap makes over the control link; empty: none"`
	GZAddress    netip.Prefix `toml:"gz_address" default:"" doc:"address of network.gz_vnic; empty: none"`
	Underlay     netip.Prefix `toml:"underlay" default:"" doc:"network from which control addresses are chosen; empty: DHCP"`
	Gateway      netip.Addr   `toml:"gateway" default:"" doc:"default router of control addresses; empty: none"`
	MTU          int          `toml:"mtu" default:"0" doc:"MTU of control VNICs; 0: that of the link"`
	GuestLink    string       `toml:"guest_link" default:"" doc:"link that guest VNICs are made over if the instance names none; empty: the control link"`
	OPTELinks    []string     `toml:"opte_links" default:"" doc:"the two links by which guests in VPCs reach other sleds; empty: another program sets them (opteadm set-xde-underlay)"`
	OPTEBoundary []string     `toml:"opte_boundary" default:"" doc:"IPv6 addresses of the switches that carry what leaves a VPC out of the rack; empty: another program sets them (opteadm set-v2b)"`
	OPTEAddress  netip.Addr   `toml:"opte_address" default:"" doc:"IPv6 address of the sled on these links; empty: no guest can be in a VPC"`
}

// Storage is which disks the sled has, and what lies on them.
type Storage struct {
	Slots     string   `toml:"slots" default:"auto" doc:"board whose slots hold the disks; auto: the board that the sled reports; none: no slots"`
	Devices   []string `toml:"devices" default:"" doc:"disks in addition to those in slots"`
	VdevDir   string   `toml:"vdev_dir" default:"/var/tmp" doc:"directory of the files in storage.vdevs"`
	Vdevs     []string `toml:"vdevs" default:"" doc:"files that stand for disks"`
	Key       string   `toml:"key" default:"" doc:"source of the secrets for encrypted disks; empty: none, so these stay locked. development is public and protects nothing"`
	Salt      string   `toml:"salt" default:"" doc:"salt of the keys from a command's secrets; empty: zeros. Disks that a sled agent encrypted need SHA3-256 of the rack's id. A key file has its own salt"`
	Datasets  []string `toml:"datasets" default:"" doc:"additional datasets on each disk of a kind"`
	ZonePools []string `toml:"zone_pools" default:"" doc:"pools for zones, best first; empty: every U.2 pool, else rpool"`
}

// Propolis is how Propolis is run in a zone.
type Propolis struct {
	Packaging   string   `toml:"packaging" default:"auto" doc:"how Propolis gets into zones: lofs mounts a directory of the host, image installs a zone image (on Helios), auto uses image if all that it needs exists, else lofs"`
	Directory   string   `toml:"directory" default:"/opt/oxide/propolis-server" doc:"lofs: directory that is mounted into zones under the same name, read-only"`
	Binary      string   `toml:"binary" default:"bin/propolis-server" doc:"lofs: the server, relative to propolis.directory or absolute"`
	Bootrom     string   `toml:"bootrom" default:"blob/OVMF_CODE.fd" doc:"lofs: the guests' firmware, relative to propolis.directory or absolute"`
	LibraryPath string   `toml:"library_path" default:"" doc:"lofs: LD_LIBRARY_PATH of the server; empty: none"`
	Images      []string `toml:"images" default:"/opt/oxide/propolis-server.tar.gz,/opt/oxide/overlay.tar.gz" doc:"image: files that zones are installed from, in this order; overlay.tar.gz may be absent"`
	Port        uint16   `toml:"port" default:"12400" doc:"TCP port of Propolis' HTTP server"`
}

// Names are what sledctl calls things, and by what it knows them.
type Names struct {
	Sled        string `toml:"sled" default:"" doc:"name of the sled, from which the ids of its instances are derived; empty: the node's name"`
	ZonePrefix  string `toml:"zone_prefix" default:"propolis_instance_" doc:"start of the names of instances' zones; the Propolis id follows"`
	BasePrefix  string `toml:"base_prefix" default:"propolis_base" doc:"start of the names of base zones; _POOL_GENERATION follows"`
	VNICPrefix  string `toml:"vnic_prefix" default:"vnic_propolis" doc:"start of the names of control VNICs; a number follows"`
	GuestPrefix string `toml:"guest_prefix" default:"vnic_propolis_guest" doc:"start of the names of guest VNICs; a number follows"`

	OtherZonePrefix string `toml:"other_zone_prefix" default:"" doc:"start of the names of another tool's zones that sledctl may adopt and remove; the Propolis id follows; empty: none"`
	OtherVNICPrefix string `toml:"other_vnic_prefix" default:"" doc:"start of the names of another tool's VNICs that sledctl may remove; a number follows; empty: none"`
}

// Prefixes are the names as the rest of the program knows them.
func (n Names) Prefixes() naming.Prefixes {
	return naming.Prefixes{Zone: n.ZonePrefix, Base: n.BasePrefix, VNIC: n.VNICPrefix, Guest: n.GuestPrefix, OtherZone: n.OtherZonePrefix, OtherVNIC: n.OtherVNICPrefix}
}

// Instance is what an instance gets that does not ask.
type Instance struct {
	CPUs   int  `toml:"cpus" default:"2" doc:"virtual CPUs of an instance whose description has none"`
	Memory Size `toml:"memory" default:"2G" doc:"memory of an instance whose description has none"`
	// Reservoir is of all instances together.
	Reservoir Reservoir `toml:"reservoir" default:"0" doc:"size that bootstrap gives the VMM reservoir, for all instances together: a size, a part of the sled's memory, or auto: what the host can spare; 0: unchanged"`
	Spares    int       `toml:"spares" default:"0" doc:"zones kept cloned ahead on each pool for new VMs, by bootstrap and the agent; 0: none"`
	// SparesBooted is at most Spares.
	SparesBooted int `toml:"spares_booted" default:"0" doc:"how many of these are kept booted, for VMs without disks that start within a second; unverified on a real sled"`
}

// Bundle is what is kept of zones that go.
type Bundle struct {
	Directory string `toml:"directory" default:"" doc:"bundles of zones; empty: the debug datasets of the U.2s, else of the M.2s, else the directory of the package"`
	MaxSize   Size   `toml:"max_size" default:"1G" doc:"space for all bundles of one place, where the oldest are removed; 0: sledctl takes none by itself"`
}

// Image is where images come from.
type Image struct {
	Directory string `toml:"directory" default:"" doc:"downloads until they have become images; empty: the debug datasets of the U.2s, else of the M.2s, else the directory of the package"`
}

// Agent is how sledctl agent answers.
type Agent struct {
	Listen       []string `toml:"listen" default:"" doc:"addresses that the agent listens on; empty: unix: and agent.sock in paths.run"`
	TokenFile    string   `toml:"token_file" default:"" doc:"on TCP: file with a line for each token: reader TOKEN or operator TOKEN"`
	Operators    []string `toml:"operators" default:"" doc:"on TCP with TLS: names of the certificates whose owners may change VMs; owners of others only read"`
	HostNames    []string `toml:"host_names" default:"" doc:"on TCP: names by which clients may address the agent, in addition to its addresses, localhost and the names of its certificate"`
	FlatNetwork  bool     `toml:"flat_network" default:"false" doc:"accept VMs that have NICs in VPCs: the NICs are put on the guest link without addresses, firewall and separation"`
	TombstoneTTL Duration `toml:"tombstone_ttl" default:"24h" doc:"how long the state of an ended VM can be read, if the control plane does not read it before"`
}

// Nexus is the control plane that the agent notifies of changes.
type Nexus struct {
	URL    string `toml:"url" default:"" doc:"the control plane's internal API; empty: the agent notifies none"`
	Mode   string `toml:"mode" default:"auto" doc:"how the agent notifies: doorbell (the control plane then asks for the state), upcall (the state itself, for older ones), auto (the doorbell, else the upcall), off"`
	RackID string `toml:"rack_id" default:"" doc:"the rack's UUID in the control plane, for GET /sled-identifiers of the agent"`
	SledID string `toml:"sled_id" default:"" doc:"the sled's UUID in the control plane, where the agent registers it by that; empty: it does not. Wants agent.listen to have tcp:[IPV6-ADDRESS]:PORT"`
}

// Duration is a time, written as 90s, 5m or 24h.
type Duration time.Duration

// UnmarshalText is part of encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil || parsed <= 0 {
		return fmt.Errorf("%q is not a time above 0", text)
	}
	*d = Duration(parsed)
	return nil
}

// String is the time as it is written.
func (d Duration) String() string { return time.Duration(d).String() }

// NICs are the NIC records of the sled in Triton's networking API.
type NICs struct {
	URL               string `toml:"url" default:"" doc:"Triton's NAPI; empty: none"`
	CNUUID            string `toml:"cn_uuid" default:"" doc:"the sled's UUID in Triton, as sysinfo prints it; needed with nics.url"`
	AdminUUID         string `toml:"admin_uuid" default:"" doc:"UUID of Triton's administrator, for whom the boot server makes records of the sled's links; empty: those are left alone"`
	AllowNICsEndpoint bool   `toml:"allow_nics_endpoint" default:"false" doc:"ask GET /nics?cn_uuid= if NAPI has no /search/nics"`
	WithoutEtag       bool   `toml:"without_etag" default:"false" doc:"remove leaked records even if NAPI has no conditional requests"`
	LockFile          string `toml:"lock_file" default:"/etc/sledctl/nics.lock" doc:"no record is changed while this file exists; its first line says why; empty: none"`
	// DisableDuringMigration is as nics sync's option, for it and for the agent.
	DisableDuringMigration bool     `toml:"disable_during_migration" default:"false" doc:"change no record while a VM of the sled is migrating"`
	Agent                  bool     `toml:"agent" default:"true" doc:"the agent does what nics sync does, if nics.url is set"`
	FirstLook              Duration `toml:"first_look" default:"10m" doc:"latest time after the agent's start at which it first does so; the earliest is a fifth of it, chosen at random, so that sleds do not ask at once"`
}

// Reservoir is the memory that is set aside for VMs: one of the three, or none.
type Reservoir struct {
	Auto    bool
	Percent int // of the sled's memory, 1 to 99
	Size    Size
}

// Size is a number of bytes, written with zfs(8)'s units: 2G.
type Size uint64
