package tools

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
)

// The brand of Helios: brand/src/bin/brand.rs and brand/src/unpack.rs in
// oxidecomputer/helios-omicron-brand.

// tarball packs members, name and content in turn.
func tarball(t *testing.T, members ...string) []byte {
	t.Helper()
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf)
	out := tar.NewWriter(zip)
	for i := 0; i < len(members); i += 2 {
		h := &tar.Header{Name: members[i], Mode: 0o644, Size: int64(len(members[i+1])), Typeflag: tar.TypeReg}
		if err := out.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write([]byte(members[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

const omicronLayer = `{"v":"1","t":"layer"}`

// omicronSled has the configured zone testzone and what tarballs are given.
func omicronSled(t *testing.T, tarballs map[string][]byte) *zoneSled {
	t.Helper()
	s := newZoneSled(t, boot.Options{Mode: world.Helios})
	s.must("zfs create -o mountpoint=/zones rpool/zones")
	s.configure("testzone", "omicron1", "")
	s.change(func(tx *world.Tx) {
		for name, data := range tarballs {
			if err := cli.WriteFile(tx.Files, name, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	})
	return s
}

// The brand's README has what an installation prints.
func TestOmicronInstalls(t *testing.T) {
	want := illumosSample(t, "zoneadm-install-omicron1.stdout.txt")
	s := omicronSled(t, map[string][]byte{
		"/tmp/someimage.tar.gz": tarball(t, "oxide.json", omicronLayer, "root/opt/app/program", "run", "root/etc/release", "mine\n"),
	})
	r := s.run("zoneadm -z testzone install /tmp/someimage.tar.gz", "")
	r.Stdout = strings.Replace(r.Stdout, "INFO: omicron: copying /etc/default/init...\n", "", 1) // newer than the README
	if diff := cmp.Diff(cli.Reply{Stdout: want}, r); diff != "" {
		t.Error(diff)
	}
	const root = "/zones/testzone/root"
	if s.file(root+"/opt/app/program") != "run" || s.file(root+"/etc/release") != "mine\n" {
		t.Error("the image is not on top")
	}
	s.change(func(tx *world.Tx) {
		for name, want := range map[string]bool{"/sbin/init": true, "/lib/svc/manifest/milestone/single-user.xml": true,
			"/lib/svc/seed/global.db": false} {
			if isThere(tx, root+name) != want {
				t.Errorf("%s is there: %v", name, !want)
			}
		}
	})
	s.must("zoneadm -z testzone boot")
	if r := s.run("zlogin testzone 'cat /opt/app/program'", ""); r.Stdout != "run" {
		t.Errorf("in the zone: %+v", r)
	}
}

// An installation is refused what is not its image, and leaves the zone
// incomplete.
func TestOmicronRefusesImages(t *testing.T) {
	for name, data := range map[string][]byte{
		"no gzip":      []byte("plain"),
		"no label":     tarball(t, "root/x", ""),
		"a baseline":   tarball(t, "oxide.json", `{"v":"1","t":"baseline"}`),
		"another form": tarball(t, "oxide.json", `{"v":"2","t":"layer"}`),
		"outside":      tarball(t, "oxide.json", omicronLayer, "etc/passwd", ""),
		"up":           tarball(t, "oxide.json", omicronLayer, "root/../x", ""),
	} {
		s := omicronSled(t, map[string][]byte{"/tmp/x.tar.gz": data})
		r := s.run("zoneadm -z testzone install /tmp/x.tar.gz", "")
		if r.Exit != 70 || !strings.HasPrefix(r.Stderr, "not simulated: zoneadm: ") {
			t.Errorf("%s: exit %d, %q", name, r.Exit, r.Stderr)
		}
		s.state("testzone", world.ZoneIncomplete)
	}
	s := omicronSled(t, nil)
	if r := s.run("zoneadm -z testzone install /tmp/none.tar.gz", ""); r.Exit != 70 || !strings.HasPrefix(r.Stderr, "not simulated: zoneadm: ") {
		t.Errorf("no file: %+v", r)
	}
}

// Later images lie over earlier ones.
func TestOmicronLayersImages(t *testing.T) {
	s := omicronSled(t, map[string][]byte{
		"/tmp/a.tar.gz": tarball(t, "oxide.json", omicronLayer, "root/etc/a", "a", "root/etc/both", "a"),
		"/tmp/b.tar.gz": tarball(t, "oxide.json", omicronLayer, "root/etc/both", "b"),
	})
	s.must("zoneadm -z testzone install /tmp/a.tar.gz /tmp/b.tar.gz")
	if a, both := s.file("/zones/testzone/root/etc/a"), s.file("/zones/testzone/root/etc/both"); a != "a" || both != "b" {
		t.Errorf("%q, %q", a, both)
	}
}

// The uninstall hook removes the root and no more: the dataset of the zonepath
// is there for the next zone of that path.
func TestOmicronUninstallLeavesTheDataset(t *testing.T) {
	s := omicronSled(t, nil)
	s.must("zoneadm -z testzone install")
	s.replay(`$ zoneadm -z testzone uninstall -F
INFO: omicron: uninstalling zone testzone...
`)
	s.state("testzone", world.ZoneConfigured)
	s.hasDatasets("rpool/zones", "\n/testzone\n")
	if r := s.run("zoneadm -z testzone install", ""); r.Exit != 0 || strings.Contains(r.Stdout, "A ZFS file system") {
		t.Errorf("installed again: %+v", r)
	}
	s.must("zoneadm -z testzone uninstall -F", "zonecfg -z testzone delete -F", "zfs destroy rpool/zones/testzone")
}

// config.xml of the brand names commands that its program does not have.
func TestOmicronDoesNotClone(t *testing.T) {
	s := omicronSled(t, nil)
	s.must("zoneadm -z testzone install")
	s.configure("copy", "omicron1", "")
	s.replay(`$ zoneadm -z copy clone testzone
! Error: unrecognised command Some("clone")
= 1
$ zoneadm -z testzone sysboot
! Error: unrecognised command Some("sysboot")
= 40
`)
	s.state("copy", world.ZoneIncomplete)
	s.state("testzone", world.ZoneInstalled)
}

// Every call of the program is a line of its log: also that for zoneadm -z
// ZONE list, but none for zoneadm list.
func TestOmicronLogsItsCalls(t *testing.T) {
	s := omicronSled(t, nil)
	calls := func() int { return strings.Count(s.file("/var/log/omicron-brand.log"), "\n") }
	before := calls()
	s.must("zoneadm list -cp")
	if calls() != before {
		t.Error("zoneadm list calls the brand")
	}
	s.must("zoneadm -z testzone list -p")
	log := s.file("/var/log/omicron-brand.log")
	if calls() != before+1 || !strings.Contains(log, `"testzone", "-R", "/zones/testzone", "verify_adm", "list"]`) {
		t.Errorf("log:\n%s", log)
	}
}

// What Propolis zones are installed from on a rack: the image of its build.
func TestOmicronInstallsPropolis(t *testing.T) {
	s := omicronSled(t, nil)
	s.must("zoneadm -z testzone install /opt/oxide/propolis-server.tar.gz")
	s.change(func(tx *world.Tx) {
		if !isThere(tx, "/zones/testzone/root/opt/oxide/propolis-server/bin/propolis-server") {
			t.Error("there is no propolis-server")
		}
	})
}
