package sim

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/simtest"
	"github.com/sledctl/sledctl/sim/world"
)

// door is a way to run commands on a sled.
type door struct {
	host    host.Host
	sled    *Sled
	address string // of its one zone, on which nobody else listens
}

// doors are the ways that lead to the same code.
func doors(t *testing.T, o Options) map[string]func(*testing.T) door {
	return map[string]func(*testing.T) door{
		"memory": func(t *testing.T) door {
			s := newSledFor(t, o)
			return door{s.Host(), s, "127.77.1.2"}
		},
		"directory": func(t *testing.T) door {
			s, err := Init(t.TempDir(), o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			return door{s.Host(), s, "127.77.1.2"}
		},
		"stand-in": func(t *testing.T) door {
			dir := t.TempDir()
			s, err := Init(dir, o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			executable, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			bin, err := LinkTools(dir, executable)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { remove(t, dir) })
			t.Setenv(DirVariable, dir)
			// A binary with the race detector otherwise sleeps a second when it ends.
			t.Setenv("GORACE", "atexit_sleep_ms=0")
			return door{host.NewIllumos(host.IllumosOptions{
				CommandPath: []string{bin}, Root: Root(dir), Files: s.Host().Files(), Environment: []string{DirVariable, "GORACE"},
			}), s, ownAddress(t)}
		},
	}
}

// remove deletes a sled, whose keeper may write meanwhile.
func remove(t *testing.T, dir string) {
	for try := 0; os.RemoveAll(dir) != nil; try++ {
		if try == 1000 {
			t.Fatal(os.RemoveAll(dir))
		}
	}
}

// ownAddress is one on which no test listens but this one.
func ownAddress(t *testing.T) string {
	t.Helper()
	network, release, err := simtest.Underlay()
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Skip("loopback addresses are not there by themselves: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return network.Addr().Next().Next().String()
}

// run runs a command that must succeed, and returns what it printed.
func (d door) run(t *testing.T, words ...string) string {
	t.Helper()
	got := d.try(t, "", words[0], words[1:]...)
	if got.Exit != 0 || got.Unknown {
		t.Fatalf("%q: exit %d\n%s%s", words, got.Exit, got.Stdout, got.Stderr)
	}
	return string(got.Stdout)
}

// in runs a command in a zone that must succeed.
func (d door) in(t *testing.T, zone string, words ...string) string {
	t.Helper()
	got := d.try(t, zone, words[0], words[1:]...)
	if got.Exit != 0 || got.Unknown {
		t.Fatalf("%s: %q: exit %d (known: %t)\n%s%s", zone, words, got.Exit, !got.Unknown, got.Stdout, got.Stderr)
	}
	return string(got.Stdout)
}

func (d door) try(t *testing.T, zone, program string, words ...string) host.Result {
	t.Helper()
	got, err := d.host.Run(t.Context(), host.Command{Program: program, Args: words, Zone: zone})
	if err != nil {
		t.Fatalf("%s %q: %v", program, words, err)
	}
	return got
}

// await repeats a query until it prints what is wanted.
func (d door) await(t *testing.T, want string, query func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	got := ""
	for {
		if got = query(); strings.TrimSpace(got) == want {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("still %q instead of %q", got, want)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// service is a manifest of a server that listens where its property says, as
// svccfg(8) imports it; ADDRESS stands for the zone's.
const service = `<?xml version="1.0"?>
<!DOCTYPE service_bundle SYSTEM "/usr/share/lib/xml/dtd/service_bundle.dtd.1">
<service_bundle type='manifest' name='vm'>
<service name='site/vm' type='service' version='1'>
	<create_default_instance enabled='false' />
	<single_instance />
	<dependency name='milestone' grouping='require_all' restart_on='none' type='service'>
		<service_fmri value='svc:/milestone/single-user:default' />
	</dependency>
	<exec_method type='method' name='start' timeout_seconds='60'
		exec='ctrun -l child -o noorphan,regent /opt/oxide/propolis-server/bin/propolis-server run ` +
	`/opt/oxide/propolis-server/blob/OVMF_CODE.fd %{config/listen} --metric-addr disable &amp;' />
	<exec_method type='method' name='stop' exec=':kill' timeout_seconds='60' />
	<property_group name='config' type='application'>
		<propval name='listen' type='astring' value='ADDRESS:12400' />
	</property_group>
</service>
</service_bundle>
`

// The life of a Propolis zone in raw commands: the order that zones(7) and the
// manual pages of the commands ask for.
func TestALifeInRawCommands(t *testing.T) {
	for name, open := range doors(t, Options{}) {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			before := d.comparable(t)
			d.makeBase(t)
			withBase := d.comparable(t)
			d.makeZone(t)
			d.useZone(t)
			d.dropZone(t)
			if diff := cmp.Diff(withBase, d.comparable(t)); diff != "" {
				t.Errorf("the zone left something behind: %s", diff)
			}
			d.run(t, "zoneadm", "-z", "base", "uninstall", "-F")
			d.run(t, "zonecfg", "-z", "base", "delete", "-F")
			d.run(t, "zfs", "destroy", "-r", "rpool/zone")
			if diff := cmp.Diff(before, d.comparable(t)); diff != "" {
				t.Errorf("the base zone left something behind: %s", diff)
			}
		})
	}
}

func (d door) comparable(t *testing.T) string {
	t.Helper()
	data, err := Comparable(t.Context(), d.sled.World())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func (d door) makeBase(t *testing.T) {
	t.Helper()
	d.run(t, "zfs", "create", "-o", "mountpoint=/zone", "rpool/zone")
	d.run(t, "zonecfg", "-z", "base", "create -b; set brand=sparse; set zonepath=/zone/base; set autoboot=false; set ip-type=exclusive")
	d.run(t, "zoneadm", "-z", "base", "install")
	write(t, d.host.Files(), "/zone/base/root/var/svc/manifest/site/vm.xml", strings.Replace(service, "ADDRESS", d.address, 1))
	if got := d.run(t, "zoneadm", "list", "-cp"); !strings.Contains(got, "-:base:installed:/zone/base:") {
		t.Errorf("listed: %s", got)
	}
}

func (d door) makeZone(t *testing.T) {
	t.Helper()
	d.run(t, "dladm", "create-vnic", "-t", "-l", "net0", "-m", "2:8:20:1:2:3", "vnic0")
	d.run(t, "zonecfg", "-z", "vm1", `create -b; set brand=sparse; set zonepath=/zone/vm1; set autoboot=false; set ip-type=exclusive
		add fs; set dir=/opt/oxide/propolis-server; set special=/opt/oxide/propolis-server; set type=lofs; add options ro; end
		add net; set physical=vnic0; end
		add device; set match=/dev/vmm/*; end; add device; set match=/dev/vmmctl; end; add device; set match=/dev/viona; end`)
	d.run(t, "zoneadm", "-z", "vm1", "clone", "base")
	d.run(t, "zoneadm", "-z", "vm1", "boot")
	fields := strings.Split(d.run(t, "zoneadm", "-z", "vm1", "list", "-p"), ":")
	if fields[2] != "running" || fields[0] == "-" {
		t.Errorf("listed: %q", fields)
	}
	d.awaitService(t, "svc:/milestone/single-user:default", "online")
}

func (d door) awaitService(t *testing.T, fmri, want string) {
	t.Helper()
	d.await(t, want, func() string {
		query := []string{"-z", "vm1", "-p", "restarter/state", fmri}
		got := d.try(t, "", "svcprop", query...)
		if got.Exit == 0 && string(got.Stdout) != want+"\n" {
			// It waits for the next change, and may have missed it already.
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			_, _ = d.host.Run(ctx, host.Command{Program: "svcprop", Args: append([]string{"-w"}, query...), ReadOnly: true})
			return ""
		}
		return string(got.Stdout)
	})
}

func (d door) useZone(t *testing.T) {
	t.Helper()
	d.in(t, "vm1", "ipadm", "create-if", "-t", "vnic0")
	d.in(t, "vm1", "ipadm", "create-addr", "-t", "-T", "static", "-a", d.address+"/24", "vnic0/v4")
	d.await(t, "ok", func() string { return d.in(t, "vm1", "ipadm", "show-addr", "-p", "-o", "state", "vnic0/v4") })
	if got := d.run(t, "dladm", "show-linkprop", "-c", "-p", "zone", "-o", "value", "vnic0"); got != "vm1\n" {
		t.Errorf("vnic0 is on loan to %q", got)
	}
	d.awaitService(t, "svc:/site/vm:default", "disabled")
	d.run(t, "svcadm", "-z", "vm1", "enable", "-t", "svc:/site/vm:default")
	d.awaitService(t, "svc:/site/vm:default", "online")
	d.await(t, "424 Failed Dependency", func() string { return d.get(t, "http://"+d.address+":12400/instance") })
	d.run(t, "svcadm", "-z", "vm1", "disable", "-t", "svc:/site/vm:default")
	d.awaitService(t, "svc:/site/vm:default", "disabled")
	d.await(t, "no connection", func() string { return d.get(t, "http://"+d.address+":12400/instance") })
}

// get is the status of a GET request, or that nobody answered.
func (d door) get(t *testing.T, url string) string {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		return d.host.Dial(ctx, network, address)
	}, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("api-version", "5.0.0")
	reply, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return "no connection"
	}
	defer reply.Body.Close()
	if _, err := io.Copy(io.Discard, reply.Body); err != nil {
		t.Error(err)
	}
	return reply.Status
}

func (d door) dropZone(t *testing.T) {
	t.Helper()
	if got := d.try(t, "", "dladm", "delete-vnic", "vnic0"); got.Exit == 0 {
		t.Error("a link on loan was deleted")
	}
	d.run(t, "zoneadm", "-z", "vm1", "halt")
	d.run(t, "zoneadm", "-z", "vm1", "uninstall", "-F")
	d.run(t, "zonecfg", "-z", "vm1", "delete", "-F")
	d.run(t, "dladm", "delete-vnic", "vnic0")
	for snapshot := range strings.Lines(d.run(t, "zfs", "list", "-H", "-o", "name", "-t", "snapshot", "-r", "rpool/zone/base")) {
		d.run(t, "zfs", "destroy", strings.TrimSpace(snapshot))
	}
}

func write(t *testing.T, files host.Files, name, text string) {
	t.Helper()
	if err := host.MkdirAll(files, filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := files.Open(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write([]byte(text))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		t.Fatal(err)
	}
}

// profile is what the sled agent writes before the first boot
// (omicron sled-agent/src/profile.rs).
const profile = `<!DOCTYPE service_bundle SYSTEM "/usr/share/lib/xml/dtd/service_bundle.dtd.1">
<service_bundle type="profile" name="omicron">
  <service version="1" type="service" name="system/illumos/propolis-server">
    <instance name="default" enabled="true">
      <property_group type="application" name="config">
        <propval type="astring" name="datalink" value="vnic0"/>
        <propval type="astring" name="gateway" value="fd00:1122:3344:101::1"/>
        <propval type="astring" name="listen_addr" value="fd00:1122:3344:101::25"/>
        <propval type="astring" name="listen_port" value="12400"/>
        <propval type="astring" name="metric_addr" value="disable"/>
      </property_group>
    </instance>
  </service>
</service_bundle>
`

// The zone image of today: its own service makes the address and starts the
// server (packaging/smf/method_script.sh of oxidecomputer/propolis).
func TestAnImageStartsByItself(t *testing.T) {
	s := newSledFor(t, Options{Mode: world.Helios})
	d := door{host: s.Host(), sled: s}
	d.run(t, "zfs", "create", "-o", "mountpoint=/zone", "rpool/zone")
	d.run(t, "dladm", "set-linkprop", "-t", "-p", "mtu=9000", "net0")
	d.run(t, "dladm", "create-vnic", "-t", "-l", "net0", "-p", "mtu=9000", "vnic0")
	d.run(t, "zonecfg", "-z", "vm1", `create -F -b; set brand=omicron1; set zonepath=/zone/vm1; set autoboot=false; set ip-type=exclusive
		add net; set physical=vnic0; end
		add device; set match=/dev/vmm/*; end; add device; set match=/dev/vmmctl; end; add device; set match=/dev/viona; end`)
	d.run(t, "zoneadm", "-z", "vm1", "install", "/opt/oxide/propolis-server.tar.gz", "/opt/oxide/overlay.tar.gz")
	write(t, d.host.Files(), "/zone/vm1/root/var/svc/profile/site.xml", profile)
	d.run(t, "zoneadm", "-z", "vm1", "boot")
	d.awaitService(t, "svc:/system/illumos/propolis-server:default", "online")
	d.await(t, "424 Failed Dependency", func() string { return d.get(t, "http://[fd00:1122:3344:101::25]:12400/instance") })
}
