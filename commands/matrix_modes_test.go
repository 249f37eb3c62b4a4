package commands_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// mode is a way in which a verb is disturbed: at the n-th point of a kind.
type mode struct {
	name    string
	of      point
	every   int                              // of its points, one in so many is taken where time matters; 0: one of each verb
	brief   int                              // the same with -short
	disturb func(s *scene, n int) (exit int) // the whole case, up to the laws
}

// modes are the columns of the matrix.
func modes() []mode {
	return append([]mode{
		{"killed before", change, 4, 80, killed(host.CrashBefore)},
		{"killed after", change, 4, 80, killed(host.CrashAfter)},
		{"killed, and the command lives on, or the write is torn", change, 3, 80, killed(host.CrashDuring)},
		{"power cut", change, 8, 160, powerCut},
		{string(refuses), command, 3, 80, fails(refuses)},
		{string(broken), command, 4, 80, fails(broken)},
		{string(doubles), command, 3, 80, fails(doubles)},
		{string(halves), command, 4, 80, fails(halves)},
		{string(dies), command, 4, 80, fails(dies)},
		{string(hangs), command, 4, 80, hung},
		{string(full), file, 4, 80, fails(full)},
		{string(silent), call, 3, 80, fails(silent)},
		{string(loses), either, 8, 160, copyMissing},
	}, stops()...)
}

// takes says whether the n-th of a verb's points is, of so many. Dealt is the verb's
// own number.
func (m mode) takes(n, points, dealt int) bool {
	share := m.every
	switch {
	case soak():
		return true
	case m.every == 0:
		return n == 1+dealt%points && (!testing.Short() || dealt%20 == 0)
	case testing.Short():
		share = m.brief
	}
	return (n+dealt)%share == 0
}

// killed is sledctl killed; the sled goes on.
func killed(how host.CrashMode) func(*scene, int) int {
	return func(s *scene, n int) int {
		at, exit := s.kill(n, how)
		s.laws(at)
		return exit
	}
}

// kill runs the verb until it is killed, and tells where that was.
func (s *scene) kill(n int, how host.CrashMode) (at string, exit int) {
	s.t.Helper()
	witness := s.witness(s.Host())
	dying := host.Crash(witness, n, how)
	a := s.on(s.t.Context(), dying, s.line)
	dying.Wait()
	at = fmt.Sprintf("sledctl %s killed %s", s.line, dying.Where())
	if !dying.Crashed() {
		s.t.Fatalf("%s: it was not", at)
	}
	witness.law(s.t, at)
	return at, a.exit
}

// powerCut is the end of sledctl and of the sled: of the ledger only what was
// flushed is left, and the sled comes up again, as its boot service does.
func powerCut(s *scene, n int) int {
	witness := s.witness(s.Host())
	dying := host.Crash(witness, n, host.CrashAfter)
	a := s.on(s.t.Context(), dying, s.line)
	dying.Wait()
	at := fmt.Sprintf("the power cut %s of sledctl %s", dying.Where(), s.line)
	s.cut(witness.files.flushed())
	s.reboot()
	for _, line := range s.restart {
		if b := s.try(line); b.exit != 0 && b.exit != 3 { // 3: a disk of the case is away
			s.t.Fatalf("%s: sledctl %s: exit %d: %s", at, line, b.exit, b.errs)
		}
	}
	if !s.mortal {
		s.laws(at)
		return a.exit
	}
	s.foreign(at)
	s.over(at)
	return a.exit
}

// cut takes from the copies of the ledger what was not flushed.
func (s *scene) cut(flushed map[string]int64) {
	s.t.Helper()
	files := s.Host().Files()
	for _, name := range s.copies() {
		data, err := host.ReadFile(files, name)
		if err != nil {
			continue
		}
		if err := host.WriteFile(files, name, data[:min(int(flushed[name]), len(data))], 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
}

// fails is a host that fails at a point: the verb says what is left, and nothing
// else is.
func fails(how howFails) func(*scene, int) int {
	return func(s *scene, n int) int {
		at := fmt.Sprintf("sledctl %s at a host that %s %d", s.line, how, n)
		witness := s.witness(s.Host())
		h := &failing{Host: witness, at: n, how: how, half: s.half, end: s.killCommand}
		a := s.on(s.t.Context(), h, s.told())
		witness.law(s.t, at)
		s.truth(at, a, how)
		s.laws(at)
		return a.exit
	}
}

// half has the next command do its first half.
func (s *scene) half(c host.Command) {
	s.arm(world.Fault{Name: world.FaultHalf, Match: strings.Join(append([]string{c.Program}, c.Args...), " "), Times: 1, Exit: 1, Text: c.Program + ": the injected failure"})
}

// killCommand has the next command be killed.
func (s *scene) killCommand(c host.Command) {
	s.arm(world.Fault{Name: world.FaultKilled, Match: strings.Join(append([]string{c.Program}, c.Args...), " "), Times: 1})
}

// hung is a command that does not end as long as anybody waits. Its lock is held
// as long as it is there; the same again comes after it.
func hung(s *scene, n int) int {
	at := fmt.Sprintf("sledctl %s at a host that %s %d", s.line, hangs, n)
	witness := s.witness(s.Host())
	h := &failing{Host: witness, at: n, how: hangs, let: make(chan struct{})}
	a := s.on(s.t.Context(), h, s.told())
	witness.law(s.t, at)
	if a.exit == 0 && !s.bare {
		s.t.Logf("%s: it succeeded", at)
	}
	s.foreign(at)
	close(h.let)
	h.hung.Wait()
	s.laws(at)
	return a.exit
}

// copyMissing is an M.2 disk that goes, with its copy of the ledger. Whether it
// comes back before the same is run again, or the sled goes on without it first:
// all is as if it had been there.
func copyMissing(s *scene, n int) int {
	at := fmt.Sprintf("sledctl %s at a host that %s %d", s.line, loses, n)
	const m2 = "c2t0d0"
	witness := s.witness(s.Host())
	h := &failing{Host: witness, at: n, how: loses, lose: func() { s.disk(zfs.LoseDisk, m2) }}
	a := s.on(s.t.Context(), h, s.told())
	witness.law(s.t, at)
	s.foreign(at)
	recover := append([]string{s.line}, s.then...)
	if n%2 == 0 && !s.bare && !s.stays && !s.alters {
		at += ", and goes on without it"
		if b := s.try(s.line + " --degraded"); b.exit != 0 && b.exit != s.may {
			s.t.Fatalf("%s: exit %d: %s", at, b.exit, b.errs)
		}
		recover = append([]string{"ledger heal", s.line}, s.then...)
	}
	s.disk(zfs.InsertDisk, m2)
	s.command("zpool clear " + s.poolOf(m2))
	s.laws(at, recover...)
	if b := s.try("ledger check"); b.exit != 0 {
		s.t.Fatalf("%s: ledger check: exit %d: %s%s", at, b.exit, b.out, b.errs)
	}
	return a.exit
}

func (s *sled) poolOf(disk string) (name string) {
	s.t.Helper()
	err := s.World().View(s.t.Context(), func(tx *world.Tx) error {
		name = zfs.FindDisk(tx, disk).Pool
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return name
}

// told is the verb with its errors for a program.
func (s *scene) told() string {
	if s.plain {
		return s.line
	}
	return s.line + " -o json"
}

// truth sees that a verb that failed tells the truth about what is left.
func (s *scene) truth(at string, a answer, how howFails) {
	s.t.Helper()
	if s.plain {
		return
	}
	told := leftOf(s.t, a)
	switch {
	case slices.Contains([]int{4, 5, 8}, a.exit) && len(told) == 0: // it was refused before it began
		s.undone(at, a)
	case a.exit == 1 && s.alters && len(told) == 0: // what was set stays so, what was made does not
		if diff := cmp.Diff(things(s.t, s.before), things(s.t, s.world())); diff != "" {
			s.t.Errorf("%s: exit 1, but (-before +after):\n%s", at, diff)
		}
	case a.exit == 9 && how == full: // what became of it could not be written down
	case a.exit == 7 && how == silent && len(told) == 0: // the deadline of a wait
		s.undone(at, a)
	case a.exit == 0 && len(told) == 0: // the step has found another way
	case a.exit == 1 && len(told) == 0:
		s.undone(at, a)
	case a.exit == 3 && strings.HasPrefix(s.line, "bootstrap") && strings.Contains(a.errs, `"message":"storage: `):
		// It went on with the others, and what those made is to stay.
	case a.exit == 3 && len(told) == 0 && s.alters: // some are done, some are not
	case a.exit == 3 && (len(told) > 0 || strings.Contains(s.line, "--all")):
		s.exactly(at, told, how == doubles || how == halves || how == dies)
	default:
		s.t.Fatalf("%s: exit %d, left %q: %s", at, a.exit, told, a.errs)
	}
}

// undone sees that a verb that left nothing left nothing, also in the ledger.
// One that had to take the old away first leaves neither.
func (s *scene) undone(at string, a answer) {
	s.t.Helper()
	if world := s.world(); world != s.before && world != s.first {
		s.settle() // a service that was disabled may not have ended yet
	}
	world := s.world()
	if world != s.before && world != s.first && world != s.rested {
		s.t.Fatalf("%s: %s, but (-before +after):\n%s", at, a.errs, cmp.Diff(strings.Split(s.before, "\n"), strings.Split(world, "\n")))
	}
	if s.bare {
		return
	}
	s.closed(at + ": exit 1")
	if world == s.before {
		// What a reboot has taken may be forgotten meanwhile.
		had := things(s.t, s.before)
		gone := func(key string) bool {
			name, ok := strings.CutPrefix(key, "vnic/")
			_, there := had["vnic "+name]
			return ok && !there
		}
		kept := func(keys map[string]string) []string {
			return slices.DeleteFunc(slices.Sorted(maps.Keys(keys)), gone)
		}
		if diff := cmp.Diff(kept(s.recorded), kept(s.ledger())); diff != "" {
			s.t.Errorf("%s: exit 1, but the ledger (-before +after):\n%s", at, diff)
		}
	}
}

// leftOf reads what the error says that is left.
func leftOf(t testing.TB, a answer) []string {
	t.Helper()
	if a.exit == 0 {
		return nil
	}
	var failure struct{ Left []string }
	lines := strings.Split(strings.TrimSpace(a.errs), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &failure); err != nil {
		t.Fatalf("%v: %s", err, a.errs)
	}
	return failure.Left
}

// exactly sees that what is told to be left is there and was not at first, and
// that nothing else is.
func (s *scene) exactly(at string, told []string, denied bool) {
	s.t.Helper()
	t := s.t
	all := things(t, s.world())
	there := maps.Clone(all)
	for thing := range things(t, s.first) {
		delete(there, thing)
	}
	had := map[string][]string{}
	if s.adds {
		had = things(t, s.before)
	}
	explained := slices.Concat(told, s.up())
	for _, thing := range told {
		kind, _, _ := strings.Cut(thing, " ")
		if _, ok := all[thing]; !ok && !denied && slices.Contains([]string{"zone", "vnic", "etherstub", "dataset"}, kind) {
			t.Errorf("%s: %s is told to be left, and is not there", at, thing)
		}
	}
	for thing, within := range there {
		if _, ok := had[thing]; !ok && !slices.Contains(explained, thing) && !slices.ContainsFunc(within, func(w string) bool { return slices.Contains(explained, w) }) {
			t.Errorf("%s: %s is there, and is not told to be left: %q", at, thing, told)
		}
	}
}

// nothingNew sees that all that is there was there when the verb began.
func (s *scene) nothingNew(at string) {
	s.t.Helper()
	had := things(s.t, s.before)
	for thing := range things(s.t, s.world()) {
		if _, ok := had[thing]; !ok {
			s.t.Errorf("%s: %s is there, and was not", at, thing)
		}
	}
}

// up are the zones and VNICs of those of many instances that a verb has brought
// up, which is what was asked for, or has not begun to put down when it was stopped:
// they are not left.
func (s *scene) up() (names []string) {
	s.t.Helper()
	if !strings.HasPrefix(s.line, "instance ensure --all") && !strings.HasPrefix(s.line, "instance stop --all") {
		return nil
	}
	var list struct{ Items []shown }
	if err := json.Unmarshal([]byte(s.run("instance list -o json")), &list); err != nil {
		s.t.Fatal(err)
	}
	for _, i := range list.Items {
		if i.State != "running" {
			continue
		}
		names = append(names, "zone propolis_instance_"+i.PropolisID)
		for _, v := range i.VNICs {
			names = append(names, "vnic "+v.Name)
		}
	}
	return names
}

// things lists what is on a sled as an error names it, each with what it lies
// in or goes with.
func things(t testing.TB, comparable string) map[string][]string {
	t.Helper()
	var world sim.Snapshot
	if err := json.Unmarshal([]byte(comparable), &world); err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, z := range world.Zones {
		all["zone "+z.Name] = nil
	}
	for _, l := range world.Links {
		all[l.Class+" "+l.Name] = nil
	}
	for _, stack := range world.Stacks {
		for _, a := range stack.Addresses {
			link, _, _ := strings.Cut(a.Object, "/")
			all["address "+a.Object] = []string{"zone " + stack.Zone, "vnic " + link}
		}
	}
	for _, d := range world.Datasets {
		d.Name = regexp.MustCompile(`^\d+:`).ReplaceAllString(d.Name, "") // of a pool that is not imported
		pool, _, _ := strings.Cut(d.Name, "/")
		all["dataset "+d.Name] = []string{"pool " + pool}
		for name := d.Name; name != ""; name = name[:max(0, strings.LastIndexAny(name, "/@"))] {
			base := name[strings.LastIndexByte(name, '/')+1:]
			all["dataset "+d.Name] = append(all["dataset "+d.Name], "dataset "+name, "zone "+base)
		}
		if _, snapshot, ok := strings.Cut(d.Name, "@"); ok {
			all["dataset "+d.Name] = append(all["dataset "+d.Name], "snapshots "+snapshot, "zone "+strings.TrimSuffix(snapshot, "_snap"))
		}
	}
	return all
}
