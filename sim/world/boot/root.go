package boot

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"

	"maps"

	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/smf"
)

// LayRoot makes the files of the global zone of a fresh sled: those that its
// commands and zones need, programs as empty files, and no more.
func LayRoot(files host.Files, o Options) error {
	for _, dir := range rootDirectories(o.Mode) {
		if err := host.MkdirAll(files, dir, 0o755); err != nil {
			return err
		}
	}
	for name, data := range rootPrograms(o.Mode, o.Build) {
		if err := world.Put(files, name, []byte(data), 0o755); err != nil {
			return err
		}
	}
	if err := world.Put(files, "/opt/oxide/propolis-server/blob/OVMF_CODE.fd", bootrom(), 0o644); err != nil {
		return err
	}
	if err := world.Put(files, "/etc/release", []byte(release(o.Mode)), 0o644); err != nil {
		return err
	}
	if err := smf.LayRepositories(files); err != nil {
		return err
	}
	if o.Mode == world.Helios {
		if err := layImages(files); err != nil {
			return err
		}
	}
	err := world.EachFile("root/common", func(name string, data []byte) error {
		return world.Put(files, name, data, world.ModeOf(name))
	})
	if err != nil {
		return err
	}
	return layBrands(files, cmp.Or(o.Mode, world.OmniOS))
}

// layMountpoints makes the directories that a fresh sled's datasets are mounted on.
func layMountpoints(files host.Files, s *world.State) error {
	for _, d := range s.Datasets {
		if d.Mounted == "" {
			continue
		}
		if err := host.MkdirAll(files, d.Mounted, 0o755); err != nil {
			return err
		}
	}
	return nil
}

func rootDirectories(mode world.Mode) []string {
	dirs := []string{
		"/dev/dsk", "/dev/rdsk", "/dev/vmm", "/dev/zvol/rdsk", "/dev/zvol/dsk", "/etc/dladm", "/etc/ipadm", "/etc/svc/volatile", "/etc/zones",
		"/lib/svc/method", "/lib/svc/seed", "/tmp", "/usr/share/lib/xml/dtd", "/usr/share/lib/zoneinfo",
		"/var/run/zones", "/var/svc/log", "/var/svc/manifest/site", "/var/svc/profile", "/var/tmp", "/rpool",
	}
	brands := []string{"sparse", "ipkg", "lipkg", "pkgsrc", "lx", "bhyve", "kvm", "emu", "illumos"}
	switch mode {
	case world.Helios:
		brands = []string{"omicron1", "ipkg"}
	case world.SmartOS:
		brands = []string{"joyent", "joyent-minimal", "lx", "bhyve", "kvm"}
	}
	for _, b := range brands {
		dirs = append(dirs, "/usr/lib/brand/"+b)
	}
	return dirs
}

// rootPrograms are the programs and device nodes that others look for.
func rootPrograms(mode world.Mode, build string) map[string]string {
	all := map[string]string{
		"/opt/oxide/propolis-server/bin/propolis-server": propolisServer(build),
	}
	for _, d := range []host.Device{host.VMM, host.Viona} { // a process outside of the simulator reads the version
		all[string(d)] = fmt.Sprintln(DeviceVersion(mode, d, false))
	}
	sbin := []string{"zoneadm", "zonecfg", "zlogin", "dladm", "ipadm", "route", "zfs", "zpool", "svcadm", "svccfg", "fstyp", "prtconf", "psrinfo"}
	bin := []string{"kstat", "svcs", "svcprop", "zonename", "pfexec", "ctrun", "sh", "bash", "ksh93"}
	if mode != world.SmartOS {
		bin = append(bin, "pkg")
	}
	for _, p := range sbin {
		all["/usr/sbin/"+p] = ""
	}
	for _, p := range bin {
		all["/usr/bin/"+p] = ""
	}
	return all
}

// propolisServer is the program as far as others read it: some of the texts that its
// build logs (bin/propolis-server/src/{main.rs,lib/config.rs} of oxidecomputer/propolis).
func propolisServer(build string) string {
	if build == world.OmicronBuild {
		return "Starting server...\n"
	}
	return "Starting server...\nreservoir too small (\n"
}

// bootrom is a firmware as far as Propolis looks at it: a multiple of 4 KiB.
func bootrom() []byte { return bytes.Repeat([]byte{0xff}, 4096) }

func release(mode world.Mode) string {
	switch mode {
	case world.Helios:
		return "  Oxide Helios Version helios-3.0.1\n"
	case world.SmartOS:
		return "                       SmartOS x86_64\n"
	}
	return "  OmniOS v11 r151058\n"
}

// layImages makes the two images that the sled agent gives to zoneadm install
// (omicron sled-agent/src/instance.rs; the brand's README for their form).
func layImages(files host.Files) error {
	image := map[string][]byte{
		"opt/oxide/propolis-server/bin/propolis-server": nil,
		"opt/oxide/propolis-server/blob/OVMF_CODE.fd":   bootrom(),
	}
	err := world.EachFile("root/propolis", func(name string, data []byte) error {
		image[strings.TrimPrefix(name, "/")] = data
		return nil
	})
	if err != nil {
		return err
	}
	overlay := map[string][]byte{"etc/logadm.conf": []byte("# rotated by the host\n")}
	for name, content := range map[string]map[string][]byte{"propolis-server": image, "overlay": overlay} {
		data, err := zoneImage(name, content)
		if err != nil {
			return err
		}
		if err := world.Put(files, "/opt/oxide/"+name+".tar.gz", data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// zoneImage packs an image for the omicron1 brand: a gzipped tar that opens
// with oxide.json and has its contents under root/ (oxidecomputer/helios-omicron-brand).
func zoneImage(pkg string, content map[string][]byte) ([]byte, error) {
	return packZoneImage(fmt.Sprintf(`{"v":"1","t":"layer","pkg":%q,"version":"0.0.0"}`, pkg), content)
}

// packZoneImage packs an image with this label. A name that ends in a slash is a
// directory.
func packZoneImage(label string, content map[string][]byte) ([]byte, error) {
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf)
	out := tar.NewWriter(zip)
	add := func(name string, data []byte) error {
		h := &tar.Header{Name: name, Mode: int64(world.ModeOf(name)), Size: int64(len(data)), Typeflag: tar.TypeReg}
		if strings.HasSuffix(name, "/") {
			h.Typeflag, h.Mode = tar.TypeDir, 0o755
		}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		_, err := out.Write(data)
		return err
	}
	if err := add("oxide.json", []byte(label)); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(content)) {
		if err := add("root/"+name, content[name]); err != nil {
			return nil, err
		}
	}
	if err := out.Close(); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}
