package config

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/sledctl/sledctl/propolis/spec"
)

// resolve makes the names of Propolis' files absolute.
func (p *Propolis) resolve() {
	for _, file := range []*string{&p.Binary, &p.Bootrom} {
		if *file != "" && !path.IsAbs(*file) {
			*file = path.Join(p.Directory, *file)
		}
	}
}

// validate checks what a type alone does not: where tells from where a value
// comes, and partial in which sections a setting is not known.
func (c Config) validate(where map[string]string, partial func(section string) bool) []error {
	v := &validator{where: where, partial: partial}
	c.Host.validate(v)
	c.Paths.validate(v)
	c.Network.validate(v)
	c.Storage.validate(v)
	c.Propolis.validate(v)
	c.Names.validate(v)
	c.Instance.validate(v)
	c.Bundle.validate(v)
	c.Image.validate(v)
	c.Nexus.validate(v)
	c.NICs.validate(v)
	return v.problems
}

type validator struct {
	where    map[string]string
	partial  func(section string) bool
	problems []error
}

// fits notes a problem of a key with other settings of its section, if all those are known.
func (v *validator) fits(ok bool, key, format string, args ...any) {
	if section, _, _ := strings.Cut(key, "."); !v.partial(section) {
		v.want(ok, key, format, args...)
	}
}

// want notes a problem with a key unless it is as it should be.
func (v *validator) want(ok bool, key, format string, args ...any) {
	if !ok {
		v.problems = append(v.problems, &Error{Key: key, Where: v.where[key], Problem: fmt.Sprintf(format, args...)})
	}
}

func (v *validator) absolute(key, name string) {
	v.want(path.IsAbs(name) && path.Clean(name) == name, key, "%q is not an absolute name: /a/b", name)
}

// link checks a link's name as dladm does: letters, digits, "_" and ".", a
// letter or "_" first, a number without leading zeros last, at most 31 bytes
// (dladm_valid_linkname in usr/src/lib/libdladm/common/libdladm.c).
func (v *validator) link(key, name string) {
	if name == "" {
		return
	}
	stem := strings.TrimRight(name, "0123456789")
	number := name[len(stem):]
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	ok := stem != "" && number != "" && (number == "0" || number[0] != '0') && len(name) <= 31 &&
		strings.Contains(letters, stem[:1]) && strings.Trim(stem, letters+"0123456789.") == ""
	v.want(ok, key, "%q is not the name of a link: letters, digits, _ and ., a number last, as in net0", name)
}

func (h Host) validate(v *validator) {
	v.want(len(h.CommandPath) > 0, "host.command_path", "is empty: want at least one directory")
	for _, dir := range h.CommandPath {
		v.absolute("host.command_path", dir)
	}
	v.absolute("host.root", h.Root)
}

func (p Paths) validate(v *validator) {
	v.absolute("paths.run", p.Run)
	v.want(p.Run != "/", "paths.run", "must be a directory of its own")
	if p.Ledger != "" {
		v.absolute("paths.ledger", p.Ledger)
	}
}

func (n Network) validate(v *validator) {
	v.link("network.control_link", n.ControlLink)
	v.link("network.etherstub", n.Etherstub)
	v.link("network.gz_vnic", n.GZVNIC)
	v.link("network.guest_link", n.GuestLink)
	for _, link := range n.OPTELinks {
		v.link("network.opte_links", link)
	}
	for _, text := range n.OPTEBoundary {
		at, err := netip.ParseAddr(text)
		v.want(err == nil && at.Is6() && !at.Is4In6() && at.Zone() == "", "network.opte_boundary", "%q is no IPv6 address", text)
	}
	v.fits(len(n.OPTEBoundary) == 0 || n.OPTEAddress.IsValid(), "network.opte_boundary", "needs network.opte_address, the sled's own")
	two := len(n.OPTELinks) == 2 && n.OPTELinks[0] != n.OPTELinks[1]
	v.want(len(n.OPTELinks) == 0 || two, "network.opte_links", "are %d, not two different links", len(n.OPTELinks))
	v.want(!n.OPTEAddress.IsValid() || n.OPTEAddress.Is6() && !n.OPTEAddress.Is4In6() && n.OPTEAddress.Zone() == "", "network.opte_address", "%v is no IPv6 address", n.OPTEAddress)
	v.fits(len(n.OPTELinks) == 0 || n.OPTEAddress.IsValid(), "network.opte_links", "need network.opte_address, the sled's own on them")
	v.fits(!n.GZAddress.IsValid() || n.GZVNIC != "", "network.gz_address", "needs network.gz_vnic, which would carry it")
	if n.Underlay.IsValid() {
		v.want(n.Underlay == n.Underlay.Masked(), "network.underlay", "%v is an address: the network is %v", n.Underlay, n.Underlay.Masked())
		v.want(n.Underlay.Addr().BitLen()-n.Underlay.Bits() >= 2, "network.underlay", "%v has no room for addresses", n.Underlay)
	}
	if n.Gateway.IsValid() {
		v.fits(n.Underlay.IsValid(), "network.gateway", "needs network.underlay: with DHCP the router comes with the address")
		v.fits(!n.Underlay.IsValid() || n.Underlay.Contains(n.Gateway), "network.gateway", "%v is not in network.underlay, %v", n.Gateway, n.Underlay)
	}
	// IPv6 needs 1280 bytes (RFC 8200, section 5); how much a link can do is
	// for dladm to say.
	v.want(n.MTU == 0 || n.MTU >= 1280 && n.MTU <= 65535, "network.mtu", "%d is not between 1280 and 65535, nor 0", n.MTU)
}

func (s Storage) validate(v *validator) {
	v.want(slices.Contains([]string{"auto", "gimlet", "cosmo", "none"}, s.Slots), "storage.slots", "%q is none of auto, gimlet, cosmo, none", s.Slots)
	v.absolute("storage.vdev_dir", s.VdevDir)
	for _, name := range s.Vdevs {
		ok := strings.HasSuffix(name, ".vdev") && (strings.HasPrefix(name, "m2_") || strings.HasPrefix(name, "u2_")) && !strings.Contains(name, "/")
		v.want(ok, "storage.vdevs", "%q is not the name of such a file: m2_0.vdev or u2_0.vdev", name)
	}
	for _, device := range s.Devices {
		kind, name, _ := strings.Cut(device, ":")
		v.want((kind == "m2" || kind == "u2") && path.IsAbs(name) && path.Clean(name) == name, "storage.devices", "%q is not a disk: u2:/dev/dsk/c3t0d0", device)
	}
	how, what, _ := strings.Cut(s.Key, ":")
	switch {
	case s.Key == "" || s.Key == "development":
	case how == "file":
		v.absolute("storage.key", what)
	default:
		v.want(how == "command" && strings.TrimSpace(what) != "", "storage.key", "%q is not file:/NAME, command:WORDS, or development", s.Key)
	}
	_, err := hex.DecodeString(s.Salt)
	v.want(s.Salt == "" || err == nil && len(s.Salt) == 64, "storage.salt", "%q is not 64 hexadecimal digits", s.Salt)
	v.fits(s.Salt == "" || how == "command", "storage.salt", "is for the secrets of a command, and storage.key is %q", s.Key)
	seen := map[string]bool{}
	for _, pool := range s.ZonePools {
		v.want(pool != "" && !strings.ContainsAny(pool, "/@# \t"), "storage.zone_pools", "%q is not the name of a pool", pool)
		v.want(!seen[pool], "storage.zone_pools", "%q is there twice", pool)
		seen[pool] = true
	}
}

func (p Propolis) validate(v *validator) {
	switch p.Packaging {
	case "auto", "lofs", "image":
	default:
		v.want(false, "propolis.packaging", "%q is not auto, lofs or image", p.Packaging)
	}
	v.absolute("propolis.directory", p.Directory)
	v.absolute("propolis.binary", p.Binary)
	v.absolute("propolis.bootrom", p.Bootrom)
	for dir := range strings.SplitSeq(cmp.Or(p.LibraryPath, "/"), ":") {
		v.absolute("propolis.library_path", dir)
	}
	v.want(len(p.Images) > 0, "propolis.images", "names no image")
	for _, image := range p.Images {
		v.absolute("propolis.images", image)
		v.want(!strings.ContainsFunc(image, notPlain), "propolis.images", "%q has a character that zoneadm does not pass on as it is", image)
	}
	v.want(p.Port != 0, "propolis.port", "0 is not a port: 1 to 65535")
}

// notPlain says whether a character may mean something to the shell in which
// zoneadm runs a brand's hook.
func notPlain(r rune) bool {
	return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("@%_+=:,./-", r)
}

func (n Names) validate(v *validator) {
	if err := n.Prefixes().Validate(); err != nil && !v.partial("names") {
		v.problems = append(v.problems, &Error{Key: "names", Where: n.where(v), Problem: err.Error()})
	}
}

// where is that of the prefixes that are not the default, which sled's own
// check does not tell apart.
func (n Names) where(v *validator) string {
	var all []string
	for _, key := range []string{"names.zone_prefix", "names.base_prefix", "names.vnic_prefix", "names.guest_prefix"} {
		if w := v.where[key]; w != "default" {
			all = append(all, w)
		}
	}
	return strings.Join(all, ", ")
}

// MaxSpares bounds the zones that are cloned ahead on a pool.
const MaxSpares = 64

func (i Instance) validate(v *validator) {
	v.want(i.CPUs >= 1 && i.CPUs <= spec.MaxCPUs, "instance.cpus", "%d is not between 1 and %d", i.CPUs, spec.MaxCPUs)
	v.want(i.Memory > 0 && i.Memory%(1<<20) == 0, "instance.memory", "%d bytes is not a whole number of MiB", i.Memory)
	v.want(i.Spares >= 0 && i.Spares <= MaxSpares, "instance.spares", "%d is not between 0 and %d", i.Spares, MaxSpares)
	v.want(i.SparesBooted >= 0 && i.SparesBooted <= i.Spares, "instance.spares_booted", "%d is not between 0 and instance.spares, which is %d", i.SparesBooted, i.Spares)
	v.want(i.Reservoir.Size%(1<<20) == 0, "instance.reservoir", "%d bytes is not a whole number of MiB", i.Reservoir.Size)
}

func (b Bundle) validate(v *validator) {
	if b.Directory != "" {
		v.absolute("bundle.directory", b.Directory)
	}
}

func (i Image) validate(v *validator) {
	if i.Directory != "" {
		v.absolute("image.directory", i.Directory)
	}
}

func (n Nexus) validate(v *validator) {
	at, err := url.Parse(n.URL)
	v.want(n.URL == "" || err == nil && at.Scheme == "http" && at.Port() != "" && at.User == nil && at.RawQuery == "", "nexus.url", "%q: want http://ADDRESS:PORT", n.URL)
	v.want(slices.Contains([]string{"doorbell", "upcall", "auto", "off"}, n.Mode), "nexus.mode", "%q: want doorbell, upcall, auto or off", n.Mode)
	v.want(n.RackID == "" || isUUID(n.RackID), "nexus.rack_id", "%q is not a UUID: 564d2cec-64ee-4aca-9e27-d71c02af3b6a", n.RackID)
	v.want(n.SledID == "" || isUUID(n.SledID), "nexus.sled_id", "%q is not a UUID: 564d2cec-64ee-4aca-9e27-d71c02af3b6a", n.SledID)
	v.fits(n.SledID == "" || n.URL != "", "nexus.url", "is not set, and nexus.sled_id registers the sled there")
}

func (n NICs) validate(v *validator) {
	u, err := url.Parse(n.URL)
	ok := n.URL == "" || err == nil && u.Scheme == "http" && u.Hostname() != "" && strings.Trim(u.Path, "/") == "" && u.RawQuery == "" && u.User == nil
	v.want(ok, "nics.url", "%q is not the address of a NAPI: http://10.99.99.12", n.URL)
	const want = "%q is not a UUID: 564d2cec-64ee-4aca-9e27-d71c02af3b6a"
	v.want(n.CNUUID == "" || isUUID(n.CNUUID), "nics.cn_uuid", want, n.CNUUID)
	v.want(n.AdminUUID == "" || isUUID(n.AdminUUID), "nics.admin_uuid", want, n.AdminUUID)
	v.fits(n.URL == "" || n.CNUUID != "", "nics.cn_uuid", "is not set, and NAPI must be asked for somebody's records")
	if n.LockFile != "" {
		v.absolute("nics.lock_file", n.LockFile)
	}
}

// isUUID takes both cases, as programs print either; NAPI is told lower case, the
// only one that it takes (sdc-napi lib/util/validate.js).
func isUUID(s string) bool {
	for i, want := range []int{8, 4, 4, 4, 12} {
		group, rest, more := strings.Cut(s, "-")
		if len(group) != want || strings.Trim(group, "0123456789abcdefABCDEF") != "" || more != (i < 4) {
			return false
		}
		s = rest
	}
	return true
}
