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
	Agent    Agent    `toml:"agent"`
	Nexus    Nexus    `toml:"nexus"`
	NICs     NICs     `toml:"nics"`
}

// Host is the machine that sledctl runs on.
type Host struct {
	CommandPath []string `toml:"command_path" default:"/usr/sbin,/usr/bin,/sbin,/usr/lib,/usr/lib/zones" doc:"directories of host commands, in order"`
	Root        string   `toml:"root" default:"/" doc:"directory that stands for the sled's / in all file names"`
}

// Paths are where sledctl keeps its own files.
type Paths struct {
	Run    string `toml:"run" default:"/var/run/sledctl" doc:"locks, traces, and output of running commands; must be empty after a boot"`
	Ledger string `toml:"ledger" default:"" doc:"directory of the ledger; empty: the config datasets of the M.2s"`
}

// Trace is the directory of traces.
func (p Paths) Trace() string { return path.Join(p.Run, "trace") }

// Network is how zones are connected.
type Network struct {
	ControlLink string       `toml:"control_link" default:"" doc:"link under control VNICs; empty: the etherstub, else the link of the default route"`
	Etherstub   string       `toml:"etherstub" default:"" doc:"etherstub to make; empty: none"`
	GZVNIC      string       `toml:"gz_vnic" default:"" doc:"VNIC of the global zone over the control link; empty: none"`
	GZAddress   netip.Prefix `toml:"gz_address" default:"" doc:"its address with the length of its prefix; empty: none"`
	Underlay    netip.Prefix `toml:"underlay" default:"" doc:"network that control addresses are taken from; empty: DHCP"`
	Gateway     netip.Addr   `toml:"gateway" default:"" doc:"default router of control addresses; empty: none"`
	MTU         int          `toml:"mtu" default:"0" doc:"of control VNICs, in bytes; 0: what the link gives"`
	GuestLink   string       `toml:"guest_link" default:"" doc:"link under guest VNICs that name none; empty: the control link"`
}

// Storage is which disks the sled has, and what lies on them.
type Storage struct {
	Slots     string   `toml:"slots" default:"auto" doc:"whose slots the disks are in: gimlet, cosmo, auto (what the machine says it is), or none"`
	Devices   []string `toml:"devices" default:"" doc:"disks in addition to those in slots: u2:/dev/dsk/c3t0d0, m2:/dev/dsk/c4t0d0"`
	VdevDir   string   `toml:"vdev_dir" default:"/var/tmp" doc:"directory of files that stand for disks"`
	Vdevs     []string `toml:"vdevs" default:"" doc:"these files: m2_NAME.vdev, u2_NAME.vdev"`
	Key       string   `toml:"key" default:"" doc:"where the secrets of encrypted disks are: file:/NAME, command:WORDS, or development (known to everybody); empty: nowhere"`
	Salt      string   `toml:"salt" default:"" doc:"what the keys of a command's secrets are salted with, 64 hexadecimal digits: of a sled agent's disks SHA3-256 of the rack's id; empty: zeros. A key file has its own"`
	Datasets  []string `toml:"datasets" default:"" doc:"datasets of your own on each disk: u2:NAME or m2:NAME, then quota=, reservation=, compression=, canmount=, mountpoint=, uuid= as needed"`
	ZonePools []string `toml:"zone_pools" default:"" doc:"pools that zones may be put on, best first; empty: every U.2 pool, else rpool"`
}

// Propolis is how Propolis is run in a zone.
type Propolis struct {
	Packaging   string   `toml:"packaging" default:"auto" doc:"how it comes into zones: lofs (a directory of the host), image (a zone image, on Helios), or auto: image where all that it needs is there, else lofs"`
	Directory   string   `toml:"directory" default:"/opt/oxide/propolis-server" doc:"lofs: mounted into zones under the same name, read-only"`
	Binary      string   `toml:"binary" default:"bin/propolis-server" doc:"lofs: the server, below the directory or absolute"`
	Bootrom     string   `toml:"bootrom" default:"blob/OVMF_CODE.fd" doc:"lofs: the guests' firmware, below the directory or absolute"`
	LibraryPath string   `toml:"library_path" default:"" doc:"lofs: LD_LIBRARY_PATH of the server; empty: none"`
	Images      []string `toml:"images" default:"/opt/oxide/propolis-server.tar.gz,/opt/oxide/overlay.tar.gz" doc:"image: what zones are installed from, in this order"`
	Port        uint16   `toml:"port" default:"12400" doc:"TCP port of its HTTP server"`
}

// Names are what sledctl calls things, and by what it knows them.
type Names struct {
	Sled        string `toml:"sled" default:"" doc:"what tells this sled from others, in the namespace of its instances' names; empty: the node's name"`
	ZonePrefix  string `toml:"zone_prefix" default:"propolis_instance_" doc:"of instances' zones, before the Propolis id"`
	BasePrefix  string `toml:"base_prefix" default:"propolis_base" doc:"of base zones, before _POOL_GENERATION"`
	VNICPrefix  string `toml:"vnic_prefix" default:"vnic_propolis" doc:"of control VNICs, before their number"`
	GuestPrefix string `toml:"guest_prefix" default:"vnic_propolis_guest" doc:"of guests' VNICs, before their number"`

	OtherZonePrefix string `toml:"other_zone_prefix" default:"" doc:"of another tool's zones, before the Propolis id, that sledctl may adopt and remove: oxz_propolis-server_ are the sled agent's; empty: they are none of its business"`
	OtherVNICPrefix string `toml:"other_vnic_prefix" default:"" doc:"of another tool's VNICs, before their number, that sledctl may remove: oxControlInstance are the sled agent's; empty: they are none of its business"`
}

// Prefixes are the names as the rest of the program knows them.
func (n Names) Prefixes() naming.Prefixes {
	return naming.Prefixes{Zone: n.ZonePrefix, Base: n.BasePrefix, VNIC: n.VNICPrefix, Guest: n.GuestPrefix, OtherZone: n.OtherZonePrefix, OtherVNIC: n.OtherVNICPrefix}
}

// Instance is what an instance gets that does not ask.
type Instance struct {
	CPUs   int  `toml:"cpus" default:"2" doc:"virtual CPUs"`
	Memory Size `toml:"memory" default:"2G" doc:"memory, in whole MiB"`
	// Reservoir is of all instances together.
	Reservoir Size `toml:"reservoir" default:"0" doc:"memory that is set aside for all instances, in whole MiB; 0: left as the host has it"`
}

// Bundle is what is kept of zones that go.
type Bundle struct {
	Directory string `toml:"directory" default:"" doc:"where bundles of zones lie; empty: the debug datasets of the U.2s, else of the M.2s"`
	MaxSize   Size   `toml:"max_size" default:"1G" doc:"what all bundles of one place may take, the oldest are removed; 0: none are taken by themselves"`
}

// Agent is how sledctl agent answers.
type Agent struct {
	Listen       []string `toml:"listen" default:"" doc:"where it listens: unix:/NAME, tcp:ADDRESS:PORT; empty: unix: and agent.sock in paths.run"`
	TokenFile    string   `toml:"token_file" default:"" doc:"on TCP: a file of its owner's only, with a line for each token that lets in: reader TOKEN, operator TOKEN"`
	Operators    []string `toml:"operators" default:"" doc:"on TCP with TLS: names of the certificates whose owners may change VMs (common name, DNS name, URI or email address); owners of others read"`
	HostNames    []string `toml:"host_names" default:"" doc:"on TCP: names by which clients may ask, in addition to its addresses, localhost and the names of its certificate"`
	FlatNetwork  bool     `toml:"flat_network" default:"false" doc:"let VMs in that have NICs in VPCs: the NICs are put on the guest link as they are, without addresses, firewall and separation"`
	TombstoneTTL Duration `toml:"tombstone_ttl" default:"24h" doc:"how long a VM that is gone can be read, if the control plane does not read it before"`
}

// Nexus is the control plane that the agent notifies of changes.
type Nexus struct {
	URL  string `toml:"url" default:"" doc:"of its internal API, http://ADDRESS:PORT; empty: the agent notifies none"`
	Mode string `toml:"mode" default:"auto" doc:"how: doorbell (come and ask), upcall (the state in the body, as older ones want it), auto (the doorbell, else the upcall), off"`
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
	URL               string `toml:"url" default:"" doc:"where NAPI answers: http://10.99.99.12; empty: there is none"`
	CNUUID            string `toml:"cn_uuid" default:"" doc:"the sled's UUID in Triton, as sysinfo prints it, in lower case"`
	AdminUUID         string `toml:"admin_uuid" default:"" doc:"UUID of Triton's administrator, in whose name the boot server makes records of the sled's links; empty: those are left alone"`
	AllowNICsEndpoint bool   `toml:"allow_nics_endpoint" default:"false" doc:"where NAPI has no /search/nics, ask GET /nics?cn_uuid="`
	WithoutEtag       bool   `toml:"without_etag" default:"false" doc:"remove leaked records also where NAPI has no conditional requests"`
	LockFile          string `toml:"lock_file" default:"/etc/sledctl/nics.lock" doc:"while this file is there, no record is changed; its first line says why; empty: none"`
	// DisableDuringMigration is as nics sync's option, for it and for the agent.
	DisableDuringMigration bool     `toml:"disable_during_migration" default:"false" doc:"change no record while any VM of the sled is being moved"`
	Agent                  bool     `toml:"agent" default:"true" doc:"where url is set, sledctl agent does what nics sync does, by itself"`
	FirstLook              Duration `toml:"first_look" default:"10m" doc:"when the agent first does, at the latest: at a random time from a fifth of this on, so that the sleds of a data centre do not ask at once"`
}

// Size is a number of bytes, written with zfs(8)'s units: 2G.
type Size uint64
