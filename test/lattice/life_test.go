package lattice_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sim/simtest/contract"
	"github.com/sledctl/sledctl/test/lattice"
	"github.com/sledctl/sledctl/test/sledtest"
	"github.com/sledctl/sledctl/zone"
)

func TestLattice(t *testing.T) {
	table := lattice.Sleds()
	rows := table.Cover(sledtest.Strength())
	switch {
	case sledtest.Quick():
		rows = rows[:len(rows)/12]
	case testing.Short():
		rows = rows[:len(rows)/8]
	}
	var mu sync.Mutex
	var walked []lattice.Row
	t.Run("rows", func(t *testing.T) {
		for n, r := range rows {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { tellLife(t, r) })
				if !t.Failed() {
					mu.Lock()
					defer mu.Unlock()
					walked = append(walked, r)
				}
			})
		}
	})
	found, all := table.Explored(walked, sledtest.Strength())
	line := fmt.Sprintf("lattice: %d of %d %s, on %d sleds, 0 leaks\n", found, all, map[int]string{2: "pairs", 3: "triples"}[sledtest.Strength()], len(walked))
	if t.Failed() {
		t.Log(line)
		return
	}
	fmt.Print(line)
	if name := os.Getenv("SLEDCTL_LATTICE"); name != "" { // go test hides what a package prints that passes
		if err := os.WriteFile(name, []byte(line), 0o666); err != nil {
			t.Error(err)
		}
	}
}

// laid is the sled of a row.
type laid struct {
	*sledtest.Operator
	row    lattice.Row
	others string // what is not sledctl's
	agents *sledtest.Agent
}

func layRow(t *testing.T, r lattice.Row) *laid {
	t.Helper()
	inner, err := lattice.Lay(t.Context(), r)
	if err != nil {
		t.Fatalf("%v: %v", r, err)
	}
	s := &laid{Operator: &sledtest.Operator{Sled: inner, T: t, Lobby: &sledtest.Lobby{}}, row: r}
	contract.Watch(t, inner)
	t.Cleanup(s.Close)
	s.regard()
	return s
}

// regard remembers what others have.
func (s *laid) regard() {
	s.T.Helper()
	var err error
	if s.others, err = s.row.Foreign(s.T.Context(), s.Sled); err != nil {
		s.T.Fatal(err)
	}
}

// foreign is the law that what others have is as it was.
func (s *laid) foreign(when string) {
	s.T.Helper()
	now, err := s.row.Foreign(s.T.Context(), s.Sled)
	if err != nil {
		s.T.Fatal(err)
	}
	if now != s.others {
		s.T.Fatalf("%v: %s: what is not sledctl's (-before +now):\n%s", s.row, when, cmp.Diff(strings.Split(s.others, "\n"), strings.Split(now, "\n")))
	}
}

// ensure is instance ensure with the row's document.
func (s *laid) ensure(name, flags string) sledtest.Answer {
	s.T.Helper()
	input, err := s.row.Input(s.T.Context(), s.Sled, name)
	if err != nil {
		s.T.Fatal(err)
	}
	env, out, errs := commands.On(s.Host(), nil)
	sledtest.Feed(env, []byte(input))
	exit := commands.Run(s.T.Context(), env, strings.Fields("instance ensure -f - "+flags))
	return sledtest.Answer{Exit: exit, Out: out.String(), Errs: errs.String()}
}

// imports makes the image that the machines need.
func (s *laid) imports() {
	s.T.Helper()
	if line, input := s.row.Import(); line != "" {
		env, out, errs := commands.On(s.Host(), nil)
		sledtest.Feed(env, []byte(input))
		exit := commands.Run(s.T.Context(), env, strings.Fields(line))
		s.must("sledctl "+line, sledtest.Answer{Exit: exit, Out: out.String(), Errs: errs.String()})
	}
}

// must fails the test if a command has failed.
func (s *laid) must(what string, a sledtest.Answer) {
	s.T.Helper()
	if a.Exit != 0 {
		s.T.Fatalf("%v: %s: exit %d: %s%s", s.row, what, a.Exit, a.Out, a.Errs)
	}
}

// does runs a command line that has to succeed, and looks at what others have.
func (s *laid) does(line string) {
	s.T.Helper()
	s.must("sledctl "+line, s.Try(line))
	s.foreign(line)
}

// started has an agent at work where the row has one.
func (s *laid) started() {
	if s.row.Is(lattice.Agent) == lattice.Running {
		s.agents = s.StartAgent(s.T.(*testing.T), s.Host())
	}
}

func (s *laid) stopped() {
	if s.agents != nil {
		s.agents.Stop()
	}
}

// reboot is a power cycle, and what then comes up by itself.
func (s *laid) reboot() {
	s.T.Helper()
	s.stopped()
	err := s.Reboot(s.T.Context())
	if err == nil {
		err = s.row.Booted(s.T.Context(), s.Sled)
	}
	if err != nil {
		s.T.Fatalf("%v: reboot: %v", s.row, err)
	}
	time.Sleep(time.Minute) // zones of others come up
	s.regard()
	s.does("bootstrap")
}

// are fails the test unless all machines are said to be in a state.
func (s *laid) are(state string) {
	s.T.Helper()
	var list struct{ Items []sledtest.Instance }
	if err := json.Unmarshal([]byte(s.Run("instance list -o json")), &list); err != nil {
		s.T.Fatal(err)
	}
	if len(list.Items) != len(s.row.Machines()) {
		s.T.Fatalf("%v: %d machines are listed", s.row, len(list.Items))
	}
	for _, i := range list.Items {
		if i.State != state {
			s.T.Fatalf("%v: %s is %s, want %s: %+v", s.row, i.Name, i.State, state, i)
		}
	}
}

// capped is the law that the zones of the machines have the row's cap, and they themselves its
// place among those that start.
func (s *laid) capped() {
	s.T.Helper()
	order := "-"
	if at := s.row.StartOrder(); at != nil {
		order = fmt.Sprint(*at)
	}
	for got := range strings.FieldsSeq(s.Run("instance list -H --columns start_order")) {
		if got != order {
			s.T.Fatalf("%v: the start order is %s, want %s", s.row, got, order)
		}
	}
	for name, in := range s.zones() {
		c, err := zone.ReadConfig(s.Host().Files(), in)
		if got := zone.Hundredths(c.CPUCap); err != nil || got != fmt.Sprint(s.row.CPUCap()) {
			s.T.Fatalf("%v: the cap of %s in zone %s is %s, want %v: %v", s.row, name, in, got, s.row.CPUCap(), err)
		}
	}
}

// short tries machines for which the reservoir is too small: nothing
// is left of them, and once it is enlarged they can be made.
func (s *laid) short() {
	s.T.Helper()
	if s.row.Is(lattice.Spares) == lattice.Booted { // their systems come up by themselves
		time.Sleep(time.Minute)
	}
	before := s.Comparable()
	a := s.ensure(s.row.Machines()[0], s.row.Flags())
	if a.Exit == 0 {
		s.T.Fatalf("%v: a machine was made that the reservoir has no memory for", s.row)
	}
	s.Same(before, fmt.Sprintf("%v: a machine for which the reservoir is too small", s.row))
	s.foreign("a machine for which the reservoir is too small")
	s.WriteFile("/etc/sledctl/config.toml", s.row.Enlarged().Config())
	s.does("bootstrap")
}

// tellLife is the story: ensure, stop, start, reboot of the sled, delete, reap.
func tellLife(t *testing.T, r lattice.Row) {
	s := layRow(t, r)
	s.does("bootstrap")
	s.imports()
	s.started()
	if r.Memory() {
		s.short()
	}
	twin := s.twin()
	taken := s.meddleWithSpares()
	for _, name := range r.Machines() {
		s.must("instance ensure "+name, s.ensure(name, r.Flags()))
		s.foreign("instance ensure " + name)
	}
	s.are("running")
	s.capped()
	taken()
	is := s.Comparable()
	for _, name := range r.Machines() {
		s.must("instance ensure again "+name, s.ensure(name, r.Flags()))
	}
	s.Same(is, fmt.Sprintf("%v: instance ensure once more", r))
	for _, name := range r.Machines() {
		s.does("instance stop " + name)
	}
	s.are("stopped")
	for _, name := range r.Machines() {
		s.does("instance start " + name)
	}
	s.are("running")
	s.reboot()
	meddled := s.meddle()
	s.started()
	s.does("instance ensure --all")
	s.are("running")
	s.capped()
	meddled()
	if r.Is(lattice.Protected) == lattice.Yes {
		if a := s.Try("instance delete " + r.Machines()[0]); a.Exit != 8 {
			t.Fatalf("%v: a protected machine is deleted: exit %d: %s", r, a.Exit, a.Errs)
		}
	}
	s.does("instance delete --yes " + strings.Join(r.Machines(), " "))
	s.does("reap")
	s.stopped()
	s.left(twin)
}

// meddle does to the zones of the machines what somebody else does between a reboot and
// the next ensure. What it returns looks at the zones that run then: none is one that was
// configured by somebody, nor has what somebody wrote to it; and one that was left alone is
// booted again where it was cloned, and not made once more.
func (s *laid) meddle() (look func()) {
	s.T.Helper()
	was, kept := s.zones(), map[string]string{}
	var list struct {
		Items []struct{ Name, Zonepath string }
	}
	if err := json.Unmarshal([]byte(s.Run("zone list -o json")), &list); err != nil {
		s.T.Fatal(err)
	}
	for _, z := range list.Items {
		kept[z.Name] = z.Zonepath
	}
	how := s.row.Is(lattice.Rebooted)
	for name, zone := range was {
		path, there := kept[zone]
		switch {
		case !there:
			delete(was, name)
		case how == lattice.Configured:
			s.Command("zonecfg -z " + zone + " set bootargs=-v")
		case how == lattice.Written:
			s.WriteFile(path+"/root/var/written", "by somebody\n")
		}
	}
	if clones := s.row.Has(lattice.Mode, lattice.OmniOS); clones && len(was) != len(s.row.Machines()) {
		s.T.Fatalf("%v: bootstrap has kept the zones %v of %v", s.row, was, s.row.Machines())
	}
	return func() {
		s.T.Helper()
		is := s.zones()
		for name, zone := range was {
			if again := is[name] == zone; again == (how == lattice.Configured) {
				s.T.Fatalf("%v: %s ran in zone %s, and runs in %s", s.row, name, zone, is[name])
			}
			if _, err := s.Host().Files().Stat(kept[zone] + "/root/var/written"); err == nil {
				s.T.Fatalf("%v: zone %s has what somebody wrote to it before it was booted", s.row, zone)
			}
		}
	}
}

// meddleWithSpares does to the spares what somebody else does between bootstrap and the
// next ensure. What it returns looks at the zone of the first machine: it is a spare's, but
// for one that was configured by somebody, and has nothing that somebody wrote to it.
func (s *laid) meddleWithSpares() (look func()) {
	s.T.Helper()
	how, spares := s.row.Is(lattice.Spares), map[string]string{}
	var list struct {
		Items []struct{ Name, Zonepath string }
	}
	if err := json.Unmarshal([]byte(s.Run("zone list -o json")), &list); err != nil {
		s.T.Fatal(err)
	}
	for _, key := range s.keys() {
		for _, z := range list.Items {
			if id, ok := strings.CutPrefix(key, "spare/"); ok && strings.HasSuffix(z.Name, id) {
				spares[z.Name] = z.Zonepath
			}
		}
	}
	if wanted := how != lattice.None && s.row.Has(lattice.Mode, lattice.OmniOS); wanted != (len(spares) > 0) {
		s.T.Fatalf("%v: bootstrap has made the spares %v", s.row, spares)
	}
	for name, zonepath := range spares {
		switch how {
		case lattice.Configured:
			s.Command("zonecfg -z " + name + " set bootargs=-v")
		case lattice.Written:
			s.WriteFile(zonepath+"/root/var/written", "by somebody\n")
		}
	}
	return func() {
		s.T.Helper()
		zone := s.zones()[s.row.Machines()[0]]
		not := how == lattice.Configured || len(spares) == 0 || how == lattice.Booted && s.row.BootsWithMore()
		if zonepath, took := spares[zone]; took == not {
			s.T.Fatalf("%v: its zone is %s, the spares were %v", s.row, zone, spares)
		} else if _, err := s.Host().Files().Stat(zonepath + "/root/var/written"); took && err == nil {
			s.T.Fatalf("%v: zone %s has what somebody wrote to it before it was taken", s.row, zone)
		}
	}
}

// givesUpSpares has bootstrap remove the spares.
func (s *laid) givesUpSpares() {
	s.T.Helper()
	if s.row.Is(lattice.Spares) == lattice.None {
		return
	}
	row := s.row.Spareless()
	if row.Memory() || s.row.Memory() {
		row = row.Enlarged()
	}
	s.WriteFile("/etc/sledctl/config.toml", row.Config())
	s.does("bootstrap")
}

// zones are those of the machines, by their names.
func (s *laid) zones() map[string]string {
	s.T.Helper()
	var list struct{ Items []sledtest.Instance }
	if err := json.Unmarshal([]byte(s.Run("instance list -o json")), &list); err != nil {
		s.T.Fatal(err)
	}
	zones := map[string]string{}
	for _, i := range list.Items {
		zones[i.Name] = i.Zone
	}
	return zones
}

// left sees that nothing is left of the machines: the sled is as its twin, on which
// there were none and which was rebooted as well.
func (s *laid) left(twin *laid) {
	s.T.Helper()
	twin.reboot()
	twin.givesUpSpares()
	s.givesUpSpares()
	if diff := cmp.Diff(strings.Split(lattice.Undrawn(twin.Comparable()), "\n"), strings.Split(lattice.Undrawn(s.Comparable()), "\n")); diff != "" {
		s.T.Fatalf("%v: after delete and reap (-where nothing was +here):\n%s", s.row, diff)
	}
	was, is := twin.keys(), s.keys()
	isCount := func(key string) bool { return strings.HasPrefix(key, naming.KeyGeneration) }
	if n, opened := len(is), s.row.Is(lattice.VMDisks) == lattice.Remote; opened { // the count of generations outlives its instance
		was = slices.DeleteFunc(was, isCount) // of a try for which the reservoir was too small
		if is = slices.DeleteFunc(is, isCount); n-len(is) != len(s.row.Machines()) {
			s.T.Fatalf("%v: after delete and reap, the ledger has the generations of %d instances", s.row, n-len(is))
		}
	}
	if diff := cmp.Diff(was, is); diff != "" {
		s.T.Fatalf("%v: after delete and reap, the ledger (-where nothing was +here):\n%s", s.row, diff)
	}
	if out := s.Run("reap --dry-run -H --columns kind,name,verdict"); strings.Contains(out, "orphan") || strings.Contains(out, "stale") {
		s.T.Fatalf("%v: after delete and reap there is %s", s.row, out)
	}
}

// twin is a sled like this one.
func (s *laid) twin() *laid {
	other := &laid{Operator: &sledtest.Operator{Sled: s.Clone(), T: s.T}, row: s.row, others: s.others}
	s.T.Cleanup(other.Close)
	return other
}

// keys are those of the ledger, wherever it lies.
func (s *laid) keys() []string {
	s.T.Helper()
	var export struct{ Facts map[string]json.RawMessage }
	if err := json.Unmarshal([]byte(s.Run("ledger export")), &export); err != nil {
		s.T.Fatal(err)
	}
	for key := range export.Facts {
		last := strings.HasPrefix(key, naming.KeyLast) && !strings.HasPrefix(key, naming.KeyLast+naming.KeyInstance)
		if last || strings.HasPrefix(key, "tombstone/") {
			delete(export.Facts, key) // the agent keeps them for a day; what was done last is once for each subject
		}
	}
	return slices.Sorted(maps.Keys(export.Facts))
}
