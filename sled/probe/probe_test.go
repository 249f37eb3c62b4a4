package probe

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/hosttest"
)

// named is a sled on which an operator gave names.
func named(t *testing.T, mode world.Mode) *sim.Sled {
	t.Helper()
	return sledOf(t, sim.Options{Seed: 4711, Mode: mode, Links: 1})
}

func sledOf(t *testing.T, options sim.Options) *sim.Sled {
	t.Helper()
	sled := sim.New(options, hosttest.Files)
	t.Cleanup(sled.Close)
	if err := host.WriteFile(sled.Host().Files(), "/etc/nodename", []byte("galactica\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	brand := map[world.Mode]string{world.OmniOS: "sparse", world.Helios: "omicron1", world.SmartOS: "joyent"}[options.Mode]
	for _, line := range []string{
		"zfs create rpool/payroll",
		"zfs create -o mountpoint=/export/secretariat -o quota=1073741824 rpool/payroll/acme-ledger",
		"zfs set corp:owner=adama rpool/payroll",
		"zfs snapshot rpool/payroll@before-audit",
		"dladm create-etherstub -t backplane0",
		"dladm create-vnic -t -l net0 -m 02:08:20:aa:bb:01 pegasus7",
		"dladm create-vnic -t -l backplane0 -m 02:08:20:aa:bb:02 vm3",
		"ipadm create-addr -t -T static -a 172.20.33.44/24 pegasus7/office",
		"ipadm create-addr -t -T addrconf pegasus7/local",
		"ipadm create-addr -t -T static -a fd00:1122:3344:101::1/64 pegasus7/core6",
		"zonecfg -z caprica.example create -b ; set brand=" + brand + " ; set zonepath=/rpool/payroll/caprica ; set ip-type=exclusive" +
			" ; add net ; set physical=vm3 ; end ; add attr ; set name=ssh-key ; set type=string ; set value=AAAAB3NzaC1yc2EAAAADAQABAAABAQDmagrathea ; end",
	} {
		do(t, sled, line)
	}
	return sled
}

// do runs a command on a sled.
func do(t *testing.T, sled *sim.Sled, line string) {
	t.Helper()
	argv := strings.Fields(line)
	r, err := sled.Host().Run(t.Context(), host.Command{Program: argv[0], Args: argv[1:]})
	if err != nil || r.Exit != 0 || len(r.Stderr) > 0 {
		t.Fatalf("%s: %v: %+v\n%s", line, err, r.Exit, r.Stderr)
	}
}

func recorded(t *testing.T, h host.Host, salt string) Archive {
	t.Helper()
	a, err := Settings{Program: "test", Now: time.Now, Salt: []byte(salt)}.Record(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// owned are the names, addresses, numbers and words of a sled that no recording may hold.
func owned(t *testing.T, sled *sim.Sled) []string {
	all := []string{
		"galactica", "payroll", "acme", "ledger", "secretariat", "adama", "corp", "audit", "backplane", "pegasus", "office", "caprica", "example",
		"magrathea", "AAAAB3", "BTDV733206LX240B", "BRM42220014",
	}
	err := sled.World().View(context.Background(), func(tx *world.Tx) error {
		for _, l := range tx.State.Links {
			if l.MAC != "" {
				all = append(all, l.MAC, short(l.MAC), strings.ReplaceAll(short(l.MAC), ":", `\:`))
			}
		}
		for _, d := range tx.State.Disks {
			all = append(all, d.Serial)
		}
		for _, p := range tx.State.Pools {
			all = append(all, fmt.Sprint(p.GUID))
			if _, id, found := strings.Cut(p.Name, "_"); found {
				all = append(all, id)
			}
		}
		for _, d := range tx.State.Datasets {
			all = append(all, fmt.Sprint(d.GUID))
		}
		for _, a := range tx.State.Stacks[world.GlobalZone].Addresses {
			if p := netip.MustParsePrefix(a.Address); !p.Addr().IsLoopback() {
				all = append(all, p.Addr().String(), strings.ReplaceAll(p.Addr().String(), ":", `\:`))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// short is a MAC address as dladm prints it.
func short(mac string) string {
	groups := strings.Split(mac, ":")
	for i, g := range groups {
		if g[0] == '0' {
			groups[i] = g[1:]
		}
	}
	return strings.Join(groups, ":")
}

func modes() []world.Mode { return []world.Mode{world.OmniOS, world.Helios, world.SmartOS} }

// A recording holds no name, MAC, serial number, address or key of the sled.
func TestRecordingHoldsNoNames(t *testing.T) {
	for _, mode := range modes() {
		t.Run(string(mode), func(t *testing.T) {
			sled := named(t, mode)
			a := recorded(t, sled.Host(), "salt")
			var file bytes.Buffer
			if err := a.Write(&file); err != nil {
				t.Fatal(err)
			}
			names := owned(t, sled)
			if len(names) < 40 {
				t.Fatalf("only %d names", len(names))
			}
			for _, name := range names {
				if strings.Contains(file.String(), name) || strings.Contains(file.String(), strings.ReplaceAll(name, `\`, `\\`)) {
					t.Errorf("the recording holds %s", name)
				}
			}
			back, err := Read(bytes.NewReader(file.Bytes()))
			if err != nil || len(back.Answers) != len(a.Answers) {
				t.Fatal(err)
			}
			for i := range a.Answers {
				if !bytes.Equal(a.Answers[i].Stdout, back.Answers[i].Stdout) {
					t.Errorf("%v comes back otherwise", a.Answers[i].Argv)
				}
			}
		})
	}
}

// One name has one pseudonym, whatever command prints it, and another salt gives another one.
func TestOneNameHasOnePseudonym(t *testing.T) {
	sled := named(t, world.OmniOS)
	zoneOf := func(a Archive) string {
		for line := range strings.Lines(string(outputOf(a.Answers, "zoneadm list -cp"))) {
			if fields := strings.Split(line, ":"); fields[1] != world.GlobalZone {
				return fields[1]
			}
		}
		return ""
	}
	a, b, again := recorded(t, sled.Host(), "a"), recorded(t, sled.Host(), "b"), recorded(t, sled.Host(), "a")
	name := zoneOf(a)
	if len(name) != len("caprica.example") || name[7] != '.' || name == zoneOf(b) || name != zoneOf(again) {
		t.Errorf("%s %s %s", name, zoneOf(b), zoneOf(again))
	}
	if out := outputOf(a.Answers, "zonecfg -z "+name+" info"); !bytes.Contains(out, []byte("zonename: "+name+"\n")) {
		t.Errorf("no configuration of %s: %s", name, out)
	}
}

// The first letters of a zone's name are no group of an address, in whatever column it stands.
func TestNamesBehindColonsAreReplaced(t *testing.T) {
	outputs := map[string]string{
		"zoneadm list -cp":      "3:caprica.example:running:/zones/caprica.example::sparse:excl:1\n4:ab:down:/zones/ab::sparse:excl:2\n5:be-ef:installed:/zones/be-ef::sparse:excl:0\n",
		vnicList + ",zone":      "web3:net0:2\\:8\\:20\\:25\\:a8\\:c:0:caprica.example\nweb4:net0:2\\:8\\:20\\:25\\:a8\\:d:0:be-ef\n",
		"dladm show-phys -m -p": "said caprica.example:0:0:deadline, at fd00::17.\n",
	}
	a := Archive{}
	for _, line := range slices.Sorted(maps.Keys(outputs)) {
		a.Answers = append(a.Answers, Answer{Argv: strings.Fields(line), Stdout: []byte(outputs[line])})
	}
	replaced, err := pseudonymous(a, []byte("salt"))
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := replaced.Write(&file); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"caprica", "example", ":ab:", "be-ef", "fd00::17", "a8\\\\:c:"} {
		if strings.Contains(file.String(), name) {
			t.Errorf("%s is left in %s", name, file.String())
		}
	}
	for line := range strings.Lines(string(replaced.Answers[2].Stdout)) {
		if f := strings.Split(line, ":"); f[3] != "/zones/"+f[1] {
			t.Errorf("one name has two pseudonyms: %s", line)
		}
	}
	p := newPseudonyms()
	p.collect(a, nil)
	if p.check(Archive{Answers: []Answer{{Argv: []string{"x"}, Stdout: []byte("0:caprica.example\n")}}}) == nil {
		t.Error("a name that is left is not found")
	}
}

// Listings that the tools sort stay sorted, but for names that begin as a word that stays.
func TestPseudonymsKeepTheOrder(t *testing.T) {
	p := newPseudonyms()
	words := []string{"Zeta", "alpha", "alpha1", "alpha10", "alpha2", "beta-1", "beta.x", "beta_y", "crypt", "drama", "omega"}
	for _, w := range words {
		p.addName(w)
	}
	p.collect(Archive{}, nil)
	for _, salt := range []string{"1", "2", "3"} {
		for _, trie := range p.tries() {
			trie.salted([]byte(salt))
		}
		last := ""
		for _, w := range words {
			now := p.name(w)
			if len(now) != len(w) || last != "" && now <= last {
				t.Errorf("%s is %s, behind %s", w, now, last)
			}
			last = now
		}
	}
}

// Of what dladm prints for programs only the columns of names are names, whatever columns
// were asked for.
func TestColumnsOfNames(t *testing.T) {
	p := newPseudonyms()
	p.collect(Archive{Answers: []Answer{
		{Argv: strings.Fields("dladm show-vnic -p -o over,macaddress web7"), Stdout: []byte("lower0:2\\:8\\:20\\:d\\:4a\\:9\n")},
		{Argv: strings.Fields("ipadm show-addr -p -o addrobj,type,state,addr"), Stdout: []byte("web7/front:static:ok:10.0.0.7/24\n")},
	}}, nil)
	if len(p.names) != 3 || !p.names["lower0"] || !p.names["web7"] || !p.names["front"] {
		t.Errorf("%v", p.names)
	}
}

// A name of one letter has a pseudonym, too, whatever words stay.
func TestShortNamesHavePseudonyms(t *testing.T) {
	p := newPseudonyms()
	for _, w := range []string{"a", "b", "c", "addrconf", "backing", "crypt", "control-x", "data-7", "sledctl-abc", "bin-a"} {
		p.addName(w)
	}
	p.collect(Archive{}, nil)
	apart := 0
	for salt := range 100 {
		for _, trie := range p.tries() {
			trie.salted([]byte{byte(salt)})
		}
		if p.apart() {
			apart++
		}
	}
	if apart < 20 {
		t.Errorf("only %d of 100 salts do", apart)
	}
}

// What is refused of a file that is no archive, or half of one.
func TestReadRefuses(t *testing.T) {
	for _, text := range []string{
		"", "x\n", "{}\n", `{"kind":"sledctl/probe","format":2}` + "\n", `{"kind":"sledctl/probe","format":1}` + "\n{\"argv\":",
		`{"kind":"sledctl/probe","format":1}` + "\n{\"argv\":[]}\n",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("%q is an archive", text)
		}
	}
}

// An output that is not text comes back as it was.
func TestArchiveKeepsBytes(t *testing.T) {
	var file bytes.Buffer
	out := []byte("\xff\x00<&>\n\t\"")
	if err := (Archive{Answers: []Answer{{Argv: []string{"x"}, Stdout: out, Stderr: []byte("<&>\t")}}}).Write(&file); err != nil {
		t.Fatal(err)
	}
	a, err := Read(&file)
	if err != nil || !bytes.Equal(a.Answers[0].Stdout, out) || string(a.Answers[0].Stderr) != "<&>\t" {
		t.Errorf("%v: %+v", err, a.Answers)
	}
}

// dev is a word of the system's, and dev-1 to dev-6 are six VMs of somebody's.
func TestNamesThatBeginWithAWordOfTheSystemAreToldApart(t *testing.T) {
	var list bytes.Buffer
	for n := range 6 {
		fmt.Fprintf(&list, "%d:dev-%d:running:/zones/dev-%d::sparse:excl\n", n+1, n+1, n+1)
	}
	a := Archive{Answers: []Answer{{Argv: []string{"zoneadm", "list", "-cp"}, Stdout: list.Bytes()}}}
	replaced, err := pseudonymous(a, []byte("salt"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for line := range strings.Lines(string(replaced.Answers[0].Stdout)) {
		names[strings.Split(line, ":")[1]] = true
	}
	if len(names) != 6 || strings.Contains(string(replaced.Answers[0].Stdout), "dev-") {
		t.Errorf("%s", replaced.Answers[0].Stdout)
	}
}

// sledctl's own attributes and snapshots keep their names: a sled that is laid out from a
// recording knows by them whose a zone is.
func TestNamesOfSledctlStay(t *testing.T) {
	p := newPseudonyms()
	for _, w := range []string{"sledctl-instance", "sledctl-base", "sledctl-name", "sledctl-address", "sledctl-clean", "sledctl-ready"} {
		if p.addName(w); !p.stays(w) {
			t.Errorf("%s does not stay", w)
		}
	}
}

// A recording has the names of counters and no figure, and zones by their complete names; what
// kstat does not print it keeps as it is.
func TestCountersHaveNamesOnly(t *testing.T) {
	got := string(reduced(command([]string{"kstat", "-p", "x"}), []byte(
		"link:0:net0:obytes64\t4711\nzones:3:propolis_instance_e8c7352f-4ca:nsec_sys\t17\n"+
			"zones:3:propolis_instance_e8c7352f-4ca:zonename\tpropolis_instance_e8c7352f-4cac-5818-ab08-463e586e0da1\nnot a counter\n")))
	const zone = "propolis_instance_e8c7352f-4cac-5818-ab08-463e586e0da1"
	if want := "link:0:net0:obytes64\t0\nzones:3:" + zone + ":nsec_sys\t0\nzones:3:" + zone + ":zonename\t" + zone + "\nnot a counter\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
