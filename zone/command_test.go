package zone

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/refdata"
)

func shell(t *testing.T) func(host.Command, error) string {
	return func(c host.Command, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return c.Shell()
	}
}

// instance is the configuration of an instance's zone with everything in it.
func instance() Config {
	return Config{
		Brand: "sparse", Zonepath: "/zone/web1", IPType: "exclusive", Limitpriv: "default,sys_time",
		Attrs:    []Attr{{Name: "sledctl-instance", Type: "string", Value: "54f1cc77 (web 1)"}},
		FS:       []FS{{Dir: "/opt/oxide/propolis-server", Special: "/opt/oxide/propolis-server", Type: "lofs", Options: []string{"ro", "nodevices"}}},
		Nets:     []Net{{Physical: "vnic_propolis_guest0"}, {Physical: "vnic_propolis0", AllowedAddress: "10.0.0.2/24", Defrouter: "10.0.0.1"}},
		Devices:  []string{"/dev/vmm/*", "/dev/vmmctl"},
		Datasets: []string{"rpool/data"},
	}
}

// A zone that is configured as one is and becomes another loses what it had and is given
// what is wanted, of each resource.
func TestReconfigureCommand(t *testing.T) {
	plain := Config{Brand: "sparse", Zonepath: "/zone/web1", IPType: "exclusive", Limitpriv: "default,sys_time"}
	plain.Attrs = []Attr{{Name: "sledctl-spare", Type: "string", Value: "8dca5b39"}}
	const (
		added = `add fs ';' set 'type="lofs"' ';' set 'dir="/opt/oxide/propolis-server"' ';' set 'special="/opt/oxide/propolis-server"' ';' ` +
			`set 'options=["ro","nodevices"]' ';' end ';' ` +
			`add net ';' set 'physical="vnic_propolis_guest0"' ';' end ';' ` +
			`add net ';' set 'physical="vnic_propolis0"' ';' set 'allowed-address="10.0.0.2/24"' ';' set 'defrouter="10.0.0.1"' ';' end ';' ` +
			`add device ';' set 'match="/dev/vmm/*"' ';' end ';' add device ';' set 'match="/dev/vmmctl"' ';' end ';' ` +
			`add dataset ';' set 'name="rpool/data"' ';' end`
		removed = `remove fs 'dir="/opt/oxide/propolis-server"' ';' ` +
			`remove net 'physical="vnic_propolis_guest0"' ';' remove net 'physical="vnic_propolis0"' ';' ` +
			`remove device 'match="/dev/vmm/*"' ';' remove device 'match="/dev/vmmctl"' ';' remove dataset 'name="rpool/data"'`
		instanceMark = `add attr ';' set 'name="sledctl-instance"' ';' set 'type="string"' ';' set 'value="54f1cc77 (web 1)"' ';' end ';' ` +
			`remove attr 'name="sledctl-spare"' ';' `
		spareMark = `add attr ';' set 'name="sledctl-spare"' ';' set 'type="string"' ';' set 'value="8dca5b39"' ';' end ';' ` +
			`remove attr 'name="sledctl-instance"' ';' `
	)
	for name, c := range map[string]struct {
		old, wanted Config
		want        string
	}{
		"all is new":        {plain, instance(), instanceMark + added},
		"all goes":          {instance(), plain, spareMark + removed},
		"all is as it was":  {instance(), instance(), removed + ` ';' ` + added},
		"there are no more": {plain, plain, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := shell(t)(reconfigureCommand("web1", c.old, c.wanted))
			if diff := cmp.Diff(strings.TrimSpace("zonecfg -z web1 "+c.want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
	other := instance()
	other.Attrs = []Attr{{Name: "sledctl-instance", Type: "string", Value: "another"}}
	var refused *ValueError
	if _, err := reconfigureCommand("web1", instance(), other); !errors.As(err, &refused) {
		t.Errorf("an attr of the same name with another value: %v", err)
	}
}

func TestCommandLines(t *testing.T) {
	line := shell(t)
	for _, c := range []struct{ got, want string }{
		{line(listCommand(), nil), "zoneadm list -cp"},
		{line(cloneCommand("web1", "propolis_base"), nil), "zoneadm -z web1 clone propolis_base"},
		{line(installCommand("base", nil)), "zoneadm -z base install"},
		{line(installCommand("web1", []string{"/opt/oxide/propolis-server.tar.gz", "/opt/oxide/overlay.tar.gz"})),
			"zoneadm -z web1 install /opt/oxide/propolis-server.tar.gz /opt/oxide/overlay.tar.gz"},
		{line(bootCommand("web1"), nil), "zoneadm -z web1 boot"},
		{line(haltCommand("web1"), nil), "zoneadm -z web1 halt"},
		{line(unmountCommand("web1"), nil), "zoneadm -z web1 unmount"},
		{line(uninstallCommand("web1"), nil), "zoneadm -z web1 uninstall -F"},
		{line(deleteCommand("web1"), nil), "zonecfg -z web1 delete -F"},
		{line(configureCommand("web1", Config{Brand: "omicron1", Zonepath: "/zone/web1", IPType: "exclusive"})),
			`zonecfg -z web1 create -b ';' set 'brand="omicron1"' ';' set 'zonepath="/zone/web1"' ` +
				`';' set 'autoboot="false"' ';' set 'ip-type="exclusive"'`},
		{line(configureCommand("web1", instance())),
			`zonecfg -z web1 create -b ';' ` +
				`add attr ';' set 'name="sledctl-instance"' ';' set 'type="string"' ';' set 'value="54f1cc77 (web 1)"' ';' end ';' ` +
				`set 'brand="sparse"' ';' set 'zonepath="/zone/web1"' ';' set 'autoboot="false"' ';' set 'ip-type="exclusive"' ';' ` +
				`set 'limitpriv="default,sys_time"' ';' ` +
				`add fs ';' set 'type="lofs"' ';' set 'dir="/opt/oxide/propolis-server"' ';' set 'special="/opt/oxide/propolis-server"' ';' ` +
				`set 'options=["ro","nodevices"]' ';' end ';' ` +
				`add net ';' set 'physical="vnic_propolis_guest0"' ';' end ';' ` +
				`add net ';' set 'physical="vnic_propolis0"' ';' set 'allowed-address="10.0.0.2/24"' ';' set 'defrouter="10.0.0.1"' ';' end ';' ` +
				`add device ';' set 'match="/dev/vmm/*"' ';' end ';' add device ';' set 'match="/dev/vmmctl"' ';' end ';' ` +
				`add dataset ';' set 'name="rpool/data"' ';' end`},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestOnlyTheListingIsReadOnly(t *testing.T) {
	if !listCommand().ReadOnly {
		t.Error("the listing is refused in a dry run")
	}
	for _, c := range []host.Command{
		cloneCommand("a", "b"), bootCommand("a"), haltCommand("a"), unmountCommand("a"), uninstallCommand("a"), deleteCommand("a"),
	} {
		if c.ReadOnly {
			t.Errorf("%s may run in a dry run", c.Shell())
		}
	}
}

// sledAgent turns a command line that the sled agent's tests assert into one of
// ours, where we differ on purpose: no pfexec and bare names, since sledctl
// itself has the privileges; no -F, which overwrites; values quoted.
func sledAgent(line string) string {
	for _, cut := range []string{"/usr/bin/pfexec ", "/usr/sbin/", "-F -b"} {
		with := ""
		if cut == "-F -b" {
			with = "-b"
		}
		line = strings.ReplaceAll(line, cut, with)
	}
	words := strings.Fields(line)
	for i, w := range words {
		if key, value, found := strings.Cut(w, "="); found && words[i-1] == "set" {
			words[i] = host.Quote(key + "=" + quote(value))
		}
	}
	return strings.Join(words, " ")
}

func TestCommandLinesAgreeWithTheSledAgent(t *testing.T) {
	ours := map[string]bool{}
	line := shell(t)
	net := []Net{{Physical: "oxControlService0"}}
	for _, c := range []string{
		line(configureCommand("oxz_myzone", Config{Brand: "omicron1", Zonepath: "/root/oxz_myzone", IPType: "exclusive"})),
		line(configureCommand("ZONE", Config{Brand: "omicron1", Zonepath: "/ZONEPATH", IPType: "exclusive", Nets: net})),
		line(installCommand("oxz_myzone", []string{"/image.tar.gz", "/opt/oxide/overlay.tar.gz"})),
		line(installCommand("ZONE", []string{"IMAGE.tar.gz", "/opt/oxide/overlay.tar.gz"})),
		line(bootCommand("ZONE"), nil),
		line(deleteCommand("myzone"), nil),
		strings.Replace(line(listCommand(), nil), "-cp", "-cip", 1), // -c holds all that -i would
	} {
		ours[c] = true
	}
	compared := 0
	for _, sample := range refdata.Files(t, "samples/omicron/CMDLINE_*") {
		for theirs := range strings.Lines(string(sample)) {
			if !strings.Contains(theirs, "/zoneadm ") && !strings.Contains(theirs, "/zonecfg ") {
				continue
			}
			theirs = strings.Replace(theirs, "=ZONEPATH", "=/ZONEPATH", 1)
			if want := sledAgent(theirs); !ours[want] {
				t.Errorf("the sled agent runs %s\nwhich would be\n%s", theirs, want)
			}
			compared++
		}
	}
	if compared < 8 {
		t.Errorf("%d command lines compared, there were 8", compared)
	}
}

func TestConfigureRefusesValuesThatZonecfgWouldMisread(t *testing.T) {
	with := func(change func(*Config)) Config {
		c := instance()
		change(&c)
		return c
	}
	for _, c := range []struct {
		property string
		config   Config
	}{
		{"brand", with(func(c *Config) { c.Brand = "" })},
		{"brand", with(func(c *Config) { c.Brand = `spa"rse` })},
		{"zonepath", with(func(c *Config) { c.Zonepath = "zone/web1" })},
		{"zonepath", with(func(c *Config) { c.Zonepath = "/zone//web1" })},
		{"zonepath", with(func(c *Config) { c.Zonepath = "/zone/web1/" })},
		{"zonepath", with(func(c *Config) { c.Zonepath = "/" })},
		{"zonepath", with(func(c *Config) { c.Zonepath = "/zone/a\nset brand=x" })},
		{"ip-type", with(func(c *Config) { c.IPType = "excl" })},
		{"limitpriv", with(func(c *Config) { c.Limitpriv = "a\nb" })},
		{"attr name", with(func(c *Config) { c.Attrs[0].Name = "sledctl:instance" })},
		{"attr name", with(func(c *Config) { c.Attrs[0].Name = "-a" })},
		{"attr name", with(func(c *Config) { c.Attrs[0].Name = "" })},
		{"attr type", with(func(c *Config) { c.Attrs[0].Type = "uuid" })},
		{"attr value", with(func(c *Config) { c.Attrs[0].Value = "" })},
		{"attr value", with(func(c *Config) { c.Attrs[0].Value = "a\tb" })},
		{"attr value", with(func(c *Config) { c.Attrs[0].Value = "\xff" })},
		{"fs dir", with(func(c *Config) { c.FS[0].Dir = "opt" })},
		{"fs special", with(func(c *Config) { c.FS[0].Special = "" })},
		{"fs type", with(func(c *Config) { c.FS[0].Type = "" })},
		{"fs options", with(func(c *Config) { c.FS[0].Options = []string{""} })},
		{"net physical", with(func(c *Config) { c.Nets[0].Physical = "" })},
		{"net allowed-address", with(func(c *Config) { c.Nets[0].AllowedAddress = `"` })},
		{"net defrouter", with(func(c *Config) { c.Nets[1].AllowedAddress = "" })},
		{"device match", with(func(c *Config) { c.Devices[0] = "" })},
		{"dataset name", with(func(c *Config) { c.Datasets[0] = "a\nb" })},
	} {
		_, err := configureCommand("web1", c.config)
		if e, ok := errors.AsType[*ValueError](err); !ok || e.Property != c.property {
			t.Errorf("%s: got %v", c.property, err)
		}
	}
}

func TestInstallRefusesArgumentsThatAShellWouldRead(t *testing.T) {
	for _, arg := range []string{"", "a b", "a;b", "$HOME", "a'b", `a"b`, "a&b", "*", strings.Repeat("a", 600)} {
		_, err := installCommand("web1", []string{arg})
		if _, ok := errors.AsType[*ValueError](err); !ok {
			t.Errorf("%q: got %v", arg, err)
		}
	}
}

func TestValidateName(t *testing.T) {
	for _, good := range []string{"a", "7a", "A.b_c-d", "oxz_propolis-server_54f1cc77-68f1-42ab-acac-5c4f64f5d6e0", strings.Repeat("z", 63), "sunw"} {
		if err := ValidateName(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", strings.Repeat("z", 64), "-a", ".a", "_a", "a b", "a/b", "a:b", "ä", "aä", "global", "SUNWblank", "7", "0042", "a\n"} {
		err := ValidateName(bad)
		if _, ok := errors.AsType[*NameError](err); !ok {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

func TestCompareIgnoresOrder(t *testing.T) {
	a, b := instance(), instance()
	slices.Reverse(b.Nets)
	slices.Reverse(b.Devices)
	slices.Reverse(b.FS[0].Options)
	if d := Compare(a, b); len(d) > 0 {
		t.Errorf("differ in %v", d)
	}
}

func TestCompareFindsEveryDifference(t *testing.T) {
	for property, change := range map[string]func(*Config){
		"brand":     func(c *Config) { c.Brand = "ipkg" },
		"zonepath":  func(c *Config) { c.Zonepath = "/zone/web2" },
		"ip-type":   func(c *Config) { c.IPType = "shared" },
		"autoboot":  func(c *Config) { c.Autoboot = true },
		"limitpriv": func(c *Config) { c.Limitpriv = "" },
		"attr":      func(c *Config) { c.Attrs[0].Value = "x" },
		"fs":        func(c *Config) { c.FS[0].Options = nil },
		"net":       func(c *Config) { c.Nets = append(c.Nets, c.Nets[0]) },
		"device":    func(c *Config) { c.Devices = []string{"/dev/vmm/* /dev/vmmctl"} },
		"dataset":   func(c *Config) { c.Datasets = nil },
	} {
		changed := instance()
		change(&changed)
		d := Compare(instance(), changed)
		if len(d) != 1 || d[0].Property != property || d[0].Wanted == d[0].Found {
			t.Errorf("%s: %v", property, d)
		}
	}
}
