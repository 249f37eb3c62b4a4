package commands_test

import (
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/test/sledtest"
)

// manifest is what the tests read of a manifest in docs/smf.
type manifest struct {
	Service struct {
		Name         string `xml:"name,attr"`
		Dependencies []struct {
			Restart string `xml:"restart_on,attr"`
			FMRIs   []struct {
				Value string `xml:"value,attr"`
			} `xml:"service_fmri"`
		} `xml:"dependency"`
		Methods []struct {
			Name    string `xml:"name,attr"`
			Exec    string `xml:"exec,attr"`
			Timeout int    `xml:"timeout_seconds,attr"`
		} `xml:"exec_method"`
		Groups []struct {
			Name   string `xml:"name,attr"`
			Values []struct {
				Name  string `xml:"name,attr"`
				Value string `xml:"value,attr"`
			} `xml:"propval"`
		} `xml:"property_group"`
	} `xml:"service"`
}

// instancesManifest is that of the service which brings instances up.
const instancesManifest = "sledctl.xml"

func readManifest(t *testing.T, name string) (data []byte, m manifest) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "docs", "smf", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return data, m
}

func (m manifest) method(t *testing.T, name string) string {
	t.Helper()
	for _, method := range m.Service.Methods {
		if method.Name == name {
			return method.Exec
		}
	}
	t.Fatalf("no method %s", name)
	return ""
}

// needs are the services that it depends on. None of them may restart it.
func (m manifest) needs(t *testing.T) (fmris []string) {
	t.Helper()
	for _, d := range m.Service.Dependencies {
		if d.Restart != "none" {
			t.Errorf("%v restarts it", d.FMRIs)
		}
		for _, f := range d.FMRIs {
			fmris = append(fmris, f.Value)
		}
	}
	return fmris
}

// startd is what svc.startd is told about it.
func (m manifest) startd(t *testing.T) map[string]string {
	t.Helper()
	told := map[string]string{}
	for _, g := range m.Service.Groups {
		if g.Name != "startd" {
			t.Errorf("a property group %s", g.Name)
		}
		for _, v := range g.Values {
			told[v.Name] = v.Value
		}
	}
	return told
}

// wellFormed sees that a manifest is of the form that its DTD wants (usr/src/cmd/
// svc/dtd/service_bundle.dtd.1: the order of a service's elements is fixed).
func wellFormed(t *testing.T, data []byte) {
	t.Helper()
	order := []string{
		"create_default_instance", "single_instance", "restarter", "dependency", "dependent", "method_context", "exec_method",
		"property_group", "instance", "stability", "template",
	}
	var stack []string
	last := 0
	for d := xml.NewDecoder(strings.NewReader(string(data))); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			if len(stack) == 2 {
				at := slices.Index(order, e.Name.Local)
				if at < last {
					t.Errorf("%s stands behind %s, or in no service", e.Name.Local, order[last])
				}
				last = max(last, at)
			}
			stack = append(stack, e.Name.Local)
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		}
	}
	if !strings.HasPrefix(string(data), "<?xml version=\"1.0\"?>\n<!DOCTYPE service_bundle SYSTEM \"/usr/share/lib/xml/dtd/service_bundle.dtd.1\">\n") {
		t.Error("it names another DTD")
	}
}

// The manifest is well-formed, and says what it must.
func TestTheManifestIsWellFormed(t *testing.T) {
	data, m := readManifest(t, instancesManifest)
	wellFormed(t, data)
	needs := m.needs(t)
	for _, want := range []string{"svc:/system/filesystem/local:default", "svc:/network/datalink-management:default", "svc:/system/zones:default"} {
		if !slices.Contains(needs, want) {
			t.Errorf("it does not depend on %s", want)
		}
	}
	if got, want := m.startd(t), map[string]string{"duration": "transient"}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// The commands that the manifest runs are sledctl's own, with its own flags.
func TestTheManifestRunsCommandsThatThereAre(t *testing.T) {
	_, m := readManifest(t, instancesManifest)
	s := sledtest.New(t, sledtest.Small(), "")
	command := regexp.MustCompile(`sledctl ([a-z0-9 -]+[a-z0-9])`)
	var lines []string
	for _, name := range []string{"start", "stop"} {
		for _, found := range command.FindAllStringSubmatch(m.method(t, name), -1) {
			lines = append(lines, found[1])
		}
	}
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "bootstrap") || !strings.HasPrefix(lines[1], "instance ensure --all") || !strings.HasPrefix(lines[2], "instance stop --all") {
		t.Fatalf("%q", lines)
	}
	for _, line := range lines {
		if a := s.Try(line + " --help"); a.Exit != 0 || !strings.Contains(a.Out, "sledctl "+strings.Split(line, " --")[0]) {
			t.Errorf("sledctl %s: exit %d, %s", line, a.Exit, a.Errs)
		}
	}
}

// SMF takes the manifests, and the services are there and not enabled.
func TestTheManifestsAreImported(t *testing.T) {
	s := sledtest.New(t, sledtest.Small(), "")
	for _, name := range []string{instancesManifest, agentManifest} {
		data, m := readManifest(t, name)
		s.WriteFile("/var/svc/manifest/site/"+name, string(data))
		s.Command("svccfg import /var/svc/manifest/site/" + name)
		s.Command("svcs svc:/" + m.Service.Name + ":default")
	}
}

// A sled goes down and comes up: what was wanted running runs again, as the
// same, and what was stopped does not.
func TestTheServiceTakesASledDownAndBringsItUp(t *testing.T) {
	if testing.Short() {
		t.Skip("programs that run one after another")
	}
	_, m := readManifest(t, instancesManifest)
	start, stop := m.method(t, "start"), m.method(t, "stop")
	dir := t.TempDir()
	p := sledtest.Programs{T: t, Dir: dir}
	p.Run("sim", "init", "--m2", "1", "--u2", "2")
	if exit, log := p.Method(start); exit != 0 {
		t.Fatalf("on an untouched sled: exit %d: %s", exit, log)
	}
	for _, name := range []string{"web1", "web2", "web3"} {
		p.Run("instance", "ensure", name, "--nic", "over=net0")
	}
	p.Run("instance", "stop", "web3")
	const about = "name,address,pool,id"
	before := p.Run("instance", "list", "-H", "--columns", about)

	if exit, log := p.Method(stop); exit != 0 {
		t.Fatalf("stop: exit %d: %s", exit, log)
	}
	if zones := p.Run("zone", "list", "-H", "-o", "name"); strings.Contains(zones, "propolis_instance_") {
		t.Errorf("stopped, and there is %s", zones)
	}
	p.Run("sim", "reboot")
	for range 2 { // also when all is up already
		if exit, log := p.Method(start); exit != 0 {
			t.Fatalf("start: exit %d: %s", exit, log)
		}
		if got := p.Run("instance", "list", "-H", "--columns", "name,state"); got != "web1\trunning\nweb2\trunning\nweb3\tstopped\n" {
			t.Fatalf("started:\n%s", got)
		}
		if got := p.Run("instance", "list", "-H", "--columns", about); got != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, got)
		}
	}

	// A disk is missing, and the sled was not shut down but lost its power.
	pool := strings.TrimSpace(p.Run("instance", "get", "web1", "-H", "--columns", "pool"))
	disk := p.DiskOf(pool)
	p.Run("sim", "disk", "remove", disk)
	p.Run("sim", "reboot")
	exit, log := p.Method(start)
	if exit != 0 || !strings.Contains(log, "web1: pool") || strings.Contains(log, "web2: ") {
		t.Errorf("without a pool: exit %d: %s", exit, log)
	}
	if got := p.Run("instance", "list", "-H", "--columns", "name,state"); got != "web1\tabsent\nweb2\trunning\nweb3\tstopped\n" {
		t.Errorf("without a pool:\n%s", got)
	}
	if exit, log := p.Shell("sledctl instance ensure --all"); exit != 8 { // there is no other to do, and running it again would not help
		t.Errorf("without a pool: exit %d: %s", exit, log)
	}
	if exit, log := p.Method(start); exit != 0 {
		t.Errorf("without a pool, again: exit %d: %s", exit, log)
	}
	p.Run("sim", "disk", "insert", disk)
	p.Run("sim", "shell", "--", "zpool", "clear", pool)
	p.Run("bootstrap")
	p.Run("instance", "ensure", "--all")
}
