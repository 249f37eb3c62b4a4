package matrix

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
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
	"github.com/sledctl/sledctl/test/sledtest"
)

// mode is a way in which a verb is disturbed: at the n-th point of a kind.
type mode struct {
	name    string
	of      sledtest.Point
	every   int                              // of its points, one in so many is taken where time matters; 0: one of each verb
	brief   int                              // the same with -short
	disturb func(s *scene, n int) (exit int) // the whole case, up to the laws
}

// modes are the columns of the matrix.
func modes() []mode {
	return append([]mode{
		{"killed before", sledtest.AtChange, 6, 80, killed(host.CrashBefore)},
		{"killed after", sledtest.AtChange, 6, 80, killed(host.CrashAfter)},
		{"killed, and the command lives on, or the write is torn", sledtest.AtChange, 5, 80, killed(host.CrashDuring)},
		{"power cut", sledtest.AtChange, 10, 160, powerCut},
		{string(sledtest.Refuses), sledtest.AtCommand, 4, 80, fails(sledtest.Refuses)},
		{string(sledtest.Broken), sledtest.AtCommand, 5, 80, fails(sledtest.Broken)},
		{string(sledtest.Doubles), sledtest.AtCommand, 4, 80, fails(sledtest.Doubles)},
		{string(sledtest.Halves), sledtest.AtCommand, 5, 80, fails(sledtest.Halves)},
		{string(sledtest.Dies), sledtest.AtCommand, 5, 80, fails(sledtest.Dies)},
		{string(sledtest.Hangs), sledtest.AtCommand, 5, 80, hung},
		{string(sledtest.Full), sledtest.AtFile, 6, 80, fails(sledtest.Full)},
		{string(sledtest.Silent), sledtest.AtCall, 4, 80, fails(sledtest.Silent)},
		{string(sledtest.Loses), sledtest.AtEither, 10, 160, copyMissing},
	}, stops()...)
}

// takes says whether the n-th of a verb's points is, of so many. Dealt is the verb's
// own number.
func (m mode) takes(n, points, dealt int) bool {
	share := m.every
	switch {
	case sledtest.Soak():
		return true
	case m.every == 0:
		return n == 1+dealt%points && (!testing.Short() || dealt%20 == 0)
	case sledtest.Quick(): // of few verbs
		share = m.brief / 4
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

// kill runs the verb until it is killed, and returns where that was.
func (s *scene) kill(n int, how host.CrashMode) (at string, exit int) {
	s.T.Helper()
	witness := s.witness(s.Host())
	dying := host.Crash(witness, n, how)
	a := s.On(s.T.Context(), dying, s.line)
	dying.Wait()
	at = fmt.Sprintf("sledctl %s killed %s", s.line, dying.Where())
	if !dying.Crashed() {
		s.T.Fatalf("%s: it was not", at)
	}
	witness.law(s.T, at)
	return at, a.Exit
}

// powerCut is the end of sledctl and of the sled: of the ledger only what was
// flushed is left, and the sled comes up again, as its boot service does.
func powerCut(s *scene, n int) int {
	witness := s.witness(s.Host())
	dying := host.Crash(witness, n, host.CrashAfter)
	a := s.On(s.T.Context(), dying, s.line)
	dying.Wait()
	at := fmt.Sprintf("the power cut %s of sledctl %s", dying.Where(), s.line)
	s.cut(witness.files.flushed())
	s.reboot()
	for _, line := range s.restart {
		if b := s.Try(line); b.Exit != 0 && b.Exit != 3 { // 3: a disk of the case is away
			s.T.Fatalf("%s: sledctl %s: exit %d: %s", at, line, b.Exit, b.Errs)
		}
	}
	if !s.mortal {
		s.laws(at)
		return a.Exit
	}
	s.foreign(at)
	s.over(at)
	return a.Exit
}

// cut takes from the copies of the ledger what was not flushed.
func (s *scene) cut(flushed map[string]int64) {
	s.T.Helper()
	files := s.Host().Files()
	for _, name := range s.Copies() {
		data, err := host.ReadFile(files, name)
		size, known := flushed[name]
		if err != nil || !known {
			continue
		}
		if err := host.WriteFile(files, name, data[:min(int(size), len(data))], 0o600); err != nil {
			s.T.Fatal(err)
		}
	}
}

// fails is a host that fails at a point: the verb says what is left, and nothing
// else is.
func fails(how sledtest.HowFails) func(*scene, int) int {
	return func(s *scene, n int) int {
		at := fmt.Sprintf("sledctl %s at a host that %s %d", s.line, how, n)
		witness := s.witness(s.Host())
		h := &sledtest.Failing{Host: witness, At: n, How: how, Half: s.half, End: s.killCommand}
		a := s.On(s.T.Context(), h, s.told())
		witness.law(s.T, at)
		s.truth(at, a, how)
		s.laws(at)
		return a.Exit
	}
}

// half has the next command do its first half.
func (s *scene) half(c host.Command) {
	s.Arm(world.Fault{Name: world.FaultHalf, Match: strings.Join(append([]string{c.Program}, c.Args...), " "), Times: 1, Exit: 1, Text: c.Program + ": the injected failure"})
}

// killCommand has the next command be killed.
func (s *scene) killCommand(c host.Command) {
	s.Arm(world.Fault{Name: world.FaultKilled, Match: strings.Join(append([]string{c.Program}, c.Args...), " "), Times: 1})
}

// hung is a command that does not end as long as anybody waits. Its lock is held
// as long as it is there; the same again comes after it.
func hung(s *scene, n int) int {
	at := fmt.Sprintf("sledctl %s at a host that %s %d", s.line, sledtest.Hangs, n)
	witness := s.witness(s.Host())
	h := &sledtest.Failing{Host: witness, At: n, How: sledtest.Hangs, Let: make(chan struct{})}
	a := s.On(s.T.Context(), h, s.told())
	witness.law(s.T, at)
	if a.Exit == 0 && !s.bare {
		s.T.Logf("%s: it succeeded", at)
	}
	s.foreign(at)
	close(h.Let)
	h.Hung.Wait()
	s.laws(at)
	return a.Exit
}

// copyMissing is an M.2 disk that goes, with its copy of the ledger. Whether it
// comes back before the same is run again, or the sled continues in its absence first:
// all is as if it had been there.
func copyMissing(s *scene, n int) int {
	at := fmt.Sprintf("sledctl %s at a host that %s %d", s.line, sledtest.Loses, n)
	const m2 = "c2t0d0"
	witness := s.witness(s.Host())
	h := &sledtest.Failing{Host: witness, At: n, How: sledtest.Loses, Lose: func() { disk(s.Operator, zfs.LoseDisk, m2) }}
	a := s.On(s.T.Context(), h, s.told())
	witness.law(s.T, at)
	s.foreign(at)
	recover := append([]string{s.line}, s.then...)
	if n%2 == 0 && !s.bare && !s.stays && !s.alters {
		at += ", and continues in its absence"
		b := s.Try(s.line + " --degraded")
		if b.Exit != 0 && b.Exit != s.may && (s.may != 4 || b.Exit != 9) { // 9: that it is absent is not confirmed
			s.T.Fatalf("%s: exit %d: %s", at, b.Exit, b.Errs)
		}
		recover = append([]string{"ledger heal", s.line}, s.then...)
	}
	disk(s.Operator, zfs.InsertDisk, m2)
	s.Command("zpool clear " + poolOf(s.Operator, m2))
	s.laws(at, recover...)
	if b := s.Try("ledger check"); b.Exit != 0 {
		s.T.Fatalf("%s: ledger check: exit %d: %s%s", at, b.Exit, b.Out, b.Errs)
	}
	return a.Exit
}

func poolOf(s *sledtest.Operator, disk string) (name string) {
	s.T.Helper()
	err := s.World().View(s.T.Context(), func(tx *world.Tx) error {
		name = zfs.FindDisk(tx, disk).Pool
		return nil
	})
	if err != nil {
		s.T.Fatal(err)
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

// truth sees that a verb that failed reports what is really left.
func (s *scene) truth(at string, a sledtest.Answer, how sledtest.HowFails) {
	s.T.Helper()
	if s.plain {
		return
	}
	told := sledtest.LeftOf(s.T, a)
	switch {
	case slices.Contains([]int{4, 5, 8}, a.Exit) && len(told) == 0: // it was refused before it began
		s.undone(at, a)
	case a.Exit == 1 && s.alters && len(told) == 0: // what was set stays so, what was made does not
		if diff := cmp.Diff(sledtest.Things(s.T, s.before), sledtest.Things(s.T, s.world())); diff != "" {
			s.T.Errorf("%s: exit 1, but (-before +after):\n%s", at, diff)
		}
	case a.Exit == 9 && how == sledtest.Full: // its outcome could not be recorded
	case a.Exit == 7 && how == sledtest.Silent && len(told) == 0: // the deadline of a wait
		s.undone(at, a)
	case a.Exit == 0 && len(told) == 0: // the step has found another way
	case a.Exit == 1 && len(told) == 0:
		s.undone(at, a)
	case a.Exit == 3 && strings.HasPrefix(s.line, "bootstrap") && strings.Contains(a.Errs, `"message":"storage: `):
		// It continued with the other parts, and keeps what those made.
	case a.Exit == 3 && len(told) == 0 && s.alters: // some are done, some are not
	case a.Exit == 3 && (len(told) > 0 || strings.Contains(s.line, "--all")):
		s.exactly(at, told, how == sledtest.Doubles || how == sledtest.Halves || how == sledtest.Dies)
	default:
		s.T.Fatalf("%s: exit %d, left %q: %s", at, a.Exit, told, a.Errs)
	}
}

// apart is a world without where the file systems in zones are mounted: a zone that is
// booted and halted again leaves them so, and one from before a reboot has them not.
func apart(world string) string {
	return regexp.MustCompile(`,\n\t+"mounted": "[^"]*/propolis_instance_[^"]*/root[^"]*"`).ReplaceAllString(world, "")
}

// imageless is a world without images: one that was made on a further pool stays there.
func imageless(world string) string {
	return regexp.MustCompile(`(?s)\t+\{\n\t+"name": "[^"]*/sledctl_image_[^"]*",\n.*?\n\t\t\},?\n`).ReplaceAllString(world, "")
}

// volumeless is a world without volumes.
func volumeless(world string) string {
	return regexp.MustCompile(`(?s)\t+\{\n\t+"name": "[^"]*/volume_[^"]*",\n.*?\n\t\t\},?\n`).ReplaceAllString(world, "")
}

// haveDisks says whether a world has all volumes that the machines had before the verb.
func (s *scene) haveDisks(world string) bool {
	there := sledtest.Things(s.T, world)
	return !slices.ContainsFunc(s.disks(), func(disk string) bool { _, ok := there[disk]; return !ok })
}

// undone sees that a verb that left nothing left nothing, also in the ledger.
// One that had to remove the old first leaves neither, but its disks.
func (s *scene) undone(at string, a sledtest.Answer) {
	s.T.Helper()
	if world := s.world(); world != s.before && world != s.first {
		s.settle() // a service that was disabled may not have ended yet
	}
	world := s.world()
	if s.boots && apart(world) == apart(s.before) {
		world = s.before
	}
	if s.copies && imageless(world) == imageless(s.before) {
		world = s.before
	}
	if len(s.disks()) > 0 && volumeless(world) == volumeless(s.first) && s.haveDisks(world) {
		world = s.first
	}
	if world != s.before && world != s.first && world != s.rested {
		s.T.Fatalf("%s: %s, but (-before +after):\n%s", at, a.Errs, cmp.Diff(strings.Split(s.before, "\n"), strings.Split(world, "\n")))
	}
	if s.bare {
		return
	}
	s.closed(at + ": exit 1")
	if world == s.before {
		// What a reboot has taken may be forgotten meanwhile.
		had := sledtest.Things(s.T, s.before)
		gone := func(key string) bool {
			name, ok := strings.CutPrefix(key, "vnic/")
			_, there := had["vnic "+name]
			return ok && !there
		}
		kept := func(keys map[string]string) []string {
			return slices.DeleteFunc(slices.Sorted(maps.Keys(keys)), gone)
		}
		if diff := cmp.Diff(kept(s.recorded), kept(s.Ledger())); diff != "" {
			s.T.Errorf("%s: exit 1, but the ledger (-before +after):\n%s", at, diff)
		}
	}
}

// disks are the volumes that the machines had before the verb, which it does not remove: they are none
// of what it leaves.
func (s *scene) disks() (all []string) {
	if strings.Contains(s.line, "delete") || strings.HasPrefix(s.line, "reap") && !strings.HasPrefix(s.line, "reap --all") { // which removes no volume that is recorded
		return nil
	}
	for thing := range sledtest.Things(s.T, s.before) {
		if strings.HasPrefix(thing, "volume ") {
			all = append(all, thing)
		}
	}
	return all
}

// exactly sees that what is told to be left is there and was not at first, and
// that nothing else is.
func (s *scene) exactly(at string, told []string, denied bool) {
	s.T.Helper()
	t := s.T
	all := sledtest.Things(t, s.world())
	there := maps.Clone(all)
	for thing := range sledtest.Things(t, s.first) {
		delete(there, thing)
	}
	had := map[string][]string{}
	if s.adds {
		had = sledtest.Things(t, s.before)
	}
	explained := slices.Concat(told, s.up(), s.disks())
	for _, thing := range told {
		kind, _, _ := strings.Cut(thing, " ")
		if _, ok := all[thing]; !ok && !denied && slices.Contains([]string{"zone", "vnic", "etherstub", "dataset", "volume"}, kind) {
			t.Errorf("%s: %s is reported as left, and does not exist", at, thing)
		}
	}
	for thing, within := range there {
		if s.copies && strings.Contains(thing, "/sledctl_image_") {
			continue
		}
		if _, ok := had[thing]; !ok && !slices.Contains(explained, thing) && !slices.ContainsFunc(within, func(w string) bool { return slices.Contains(explained, w) }) {
			t.Errorf("%s: %s is there, and is not told to be left: %q", at, thing, told)
		}
	}
}

// nothingNew sees that all that is there was there when the verb began.
func (s *scene) nothingNew(at string) {
	s.T.Helper()
	had := sledtest.Things(s.T, s.before)
	for thing := range sledtest.Things(s.T, s.world()) {
		if _, ok := had[thing]; !ok {
			s.T.Errorf("%s: %s is there, and was not", at, thing)
		}
	}
}

// up are the zones, VNICs and ports of those of many instances that a verb has brought
// up, which is what was asked for, or has not begun to put down when it was stopped:
// they are not left.
func (s *scene) up() (names []string) {
	s.T.Helper()
	if !strings.HasPrefix(s.line, "instance ensure --all") && !strings.HasPrefix(s.line, "instance stop --all") {
		return nil
	}
	var list struct{ Items []sledtest.Instance }
	if err := json.Unmarshal([]byte(s.Run("instance list -o json")), &list); err != nil {
		s.T.Fatal(err)
	}
	for _, i := range list.Items {
		if i.State != "running" {
			continue
		}
		names = append(names, "zone propolis_instance_"+i.PropolisID)
		for _, v := range i.VNICs {
			names = append(names, "vnic "+v.Name, "port "+v.Name)
		}
	}
	return names
}
