package tools

import (
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/smf"
)

func TestSvccfgImportsIntoTheRunningZone(t *testing.T) {
	s := newSMFSled(t).boot()
	s.write("/zones/z1/root/tmp/other.xml", strings.ReplaceAll(webManifest, "site/web", "site/other"))
	s.expect("@z1 svccfg import /tmp/other.xml", "", "", 0)
	s.expect("svcs -z z1 -H -o state svc:/site/other", "disabled       \n", "", 0)
	s.write("/zones/z1/root/tmp/bad.xml", "<")
	s.expect("@z1 svccfg import /tmp/bad.xml", "", "svccfg: couldn't parse document\n", 1)
}

// A profile that is applied to a running zone counts for the next method, each time.
func TestSvccfgAppliesAProfileToTheRunningZone(t *testing.T) {
	s := newSMFSled(t).boot()
	profile := func(level string) string {
		return `<?xml version="1.0"?><!DOCTYPE service_bundle SYSTEM "/usr/share/lib/xml/dtd/service_bundle.dtd.1"><service_bundle type="profile" name="x"><service name="site/web" type="service" version="1"><instance name="default" enabled="false">` +
			`<property_group name="config" type="application"><propval name="level" type="astring" value="` + level + `"/></property_group></instance></service></service_bundle>`
	}
	for _, level := range []string{"one", "two"} {
		s.write("/zones/z1/root/var/svc/profile/site.xml", profile(level))
		s.expect("@z1 svccfg apply /var/svc/profile/site.xml", "", "", 0)
		s.expect("@z1 svcprop -c -p config/level svc:/site/web:default", level+"\n", "", 0)
	}
	s.write("/zones/z1/root/tmp/bad.xml", "<")
	s.expect("@z1 svccfg apply /tmp/bad.xml", "", "svccfg: couldn't parse document\n", 1)
	s.expect("svcprop -z z1 -p config/level svc:/site/web:default", "two\n", "", 0)
}

// omicron at cf9a9ee9be seeds the repository of its base zone this way, after
// seed_smf of illumos image-builder: the first boot then imports nothing.
func TestSeedingARepositoryFile(t *testing.T) {
	s := newSMFSled(t)
	const root = "/zones/z1/root"
	s.write("/tmp/repo.db", string(smf.SeedRepository()))
	const env = "SVCCFG_DTD=/usr/share/lib/xml/dtd/service_bundle.dtd.1 SVCCFG_REPOSITORY=/tmp/repo.db SVCCFG_CHECKHASH=1 PKG_INSTALL_ROOT=" + root + " "
	s.expect(env+"svccfg import "+root+"/lib/svc/manifest", "", "svccfg: Loaded 6 smf(7) service descriptions\n", 0)
	s.expect(env+"svccfg import "+root+"/var/svc/manifest", "", "svccfg: Loaded 1 smf(7) service descriptions\n", 0)
	s.expect(env+"svccfg import "+root+"/lib/svc/manifest", "", "", 0) // nothing has changed
	s.expect("SVCCFG_REPOSITORY=/tmp/repo.db svccfg import "+root+webPath, "", "", 0)
	s.expect("SVCCFG_REPOSITORY=/etc/release svccfg import /", "", "svccfg: Repository server failed (exit 102).\n", 1)
	data, err := host.ReadFile(s.Files, "/tmp/repo.db")
	if err != nil {
		t.Fatal(err)
	}
	s.write(root+"/etc/svc/repository.db", string(data))
	start := s.Now
	smf.BootServices(s.Tx, "z1")
	if !s.pass(func(tx *world.Tx) bool {
		state, _ := smf.State(smf.Service(tx, "z1", mainFMRI), tx.Now)
		return state == smf.Online
	}) {
		t.Fatal("not online")
	}
	if took := s.Now.Sub(start).Round(time.Millisecond); took != 1310*time.Millisecond {
		t.Errorf("the boot of a seeded zone took %v", took)
	}
}
