package boot

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/packages"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// layBrands makes the files that the brands of a distribution bring along: the
// templates that zonecfg create -t finds, init, and on Helios the baseline that
// zones of the omicron1 brand begin with. It comes after all other files.
func layBrands(files host.Files, mode world.Mode) error {
	if err := world.Put(files, "/sbin/init", nil, 0o755); err != nil {
		return err
	}
	switch mode {
	case world.OmniOS:
		for _, brand := range []string{"bhyve", "kvm", "emu"} {
			if err := world.Put(files, "/usr/lib/brand/"+brand+"/init", nil, 0o755); err != nil {
				return err
			}
		}
		return errors.Join(layTemplates(files), layPackages(files))
	case world.Helios:
		return layBaseline(files)
	}
	return nil
}

// layPackages makes what the sparse brand needs of pkg(7): a publisher, whose repository
// is on the sled, and the incorporation entire.
func layPackages(files host.Files) error {
	return errors.Join(
		world.Put(files, packages.Mirror+"/pkg5.repository", nil, 0o644),
		packages.LayPublishers(files, []packages.Publisher{{Name: "omnios", Origins: []string{"file://" + packages.Mirror}}}),
		packages.LayInstalled(files, "omnios", map[string]string{"entire": "11-0.151058"}))
}

// layTemplates writes OmniOS's (omniosorg/pkg5 src/brand/etc).
func layTemplates(files host.Files) error {
	for template, brand := range map[string]string{"OMNIsparse": "sparse", "OMNIlipkg": "lipkg", "OMNIpkgsrc": "pkgsrc",
		"OMNIlx": "lx", "OMNIbhyve": "bhyve", "OMNIkvm": "kvm", "OMNIemu": "emu", "OMNIillumos": "illumos"} {
		data := zones.ZoneXML("default", world.Config{Brand: brand, IPType: "exclusive"})
		if err := world.Put(files, zones.ZoneFile(template), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// layBaseline packs the archive that svc:/system/omicron/baseline makes at boot
// (oxidecomputer/helios-omicron-brand, utils/src/bin/baseline.rs): /etc, /var and
// /root as a zone has them at first, and what it needs of /lib/svc.
func layBaseline(files host.Files) error {
	content := map[string][]byte{}
	for _, dir := range []string{"etc/svc/volatile", "etc/dladm", "etc/ipadm", "root", "var/svc/log", "var/svc/manifest/site",
		"var/svc/profile", "var/run", "var/tmp", "var/log", "tmp"} {
		content[dir+"/"] = nil
	}
	err := eachOf(files, "/lib/svc", func(name string, data []byte) {
		if !strings.HasSuffix(name, "/global.db") {
			content[strings.TrimPrefix(name, "/")] = data
		}
	})
	if err != nil {
		return err
	}
	content["etc/svc/repository.db"] = content["lib/svc/seed/nonglobal.db"]
	content["etc/release"] = []byte(release(world.Helios))
	data, err := packZoneImage(`{"v":"1","t":"baseline"}`, content)
	if err != nil {
		return err
	}
	const dir = "/var/run/brand/omicron1/baseline/"
	return errors.Join(world.Put(files, dir+"files.tar.gz", data, 0o644), world.Put(files, dir+"gzonly.txt", []byte("lib/svc/seed/global.db\n"), 0o644))
}

// eachOf visits the files below a directory.
func eachOf(files host.Files, dir string, visit func(name string, data []byte)) error {
	entries, err := files.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		if e.Mode.IsDir() {
			if err := eachOf(files, name, visit); err != nil {
				return err
			}
			continue
		}
		data, err := host.ReadFile(files, name)
		if err != nil {
			return err
		}
		visit(name, data)
	}
	return nil
}
