package histories

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/sledtest"
)

// Histories of disks, on two sleds: images, volumes, snapshots and copies, and instances that move with their volumes, by
// commands of which some are killed. There is no model of what each command does; laws hold whatever it is:
//
//   - a command changes nothing that it does not name: each other volume is the one that it was, by the id that ZFS gave it;
//   - one that was killed can be given again, or reap removes what it left, and every volume, image and snapshot is ready then;
//   - an instance is recorded on one sled, and runs on that one only;
//   - no command fails for a reason of the host's: it does it, or refuses;
//   - what is deleted leaves nothing, on the sleds and in their ledgers.

func TestHistoriesOfDisks(t *testing.T) {
	t.Parallel()
	total, kills := map[string]int{}, 0
	want := stories(t, 3, func(t *testing.T, r *rand.Rand) ([]string, error) {
		s := newDiskStory(t, r)
		err := s.play(10 + r.IntN(15))
		kills += s.kills
		for verb, n := range s.done {
			total[verb] += n
		}
		return s.log, err
	})
	fmt.Printf("histories of disks: %d, commands killed: %d, done: %v\n", want, kills, total)
	for _, verb := range diskVerbs {
		if want >= 40 && total[verb.what] == 0 {
			t.Errorf("%s was never done", verb.what)
		}
	}
}

// diskStory are two sleds and what was seen of them.
type diskStory struct {
	sleds [2]*sledtest.Operator
	empty [2]string // their worlds without any disk, and the keys of their ledgers
	keys  [2][]string
	r     *rand.Rand
	seen  map[string]string // by sled, kind and name
	users map[string]string // of each volume: the instances that have it
	done  map[string]int    // how often each verb ended well
	kills int
	log   []string
	// point is where the next command is killed, and how; 0: where chance has it, or nowhere.
	point int
	how   host.CrashMode
}

// webAddress is a web server that has the images, near both sleds.
const webAddress = "images.example:80"

func newDiskStory(t *testing.T, r *rand.Rand) *diskStory {
	web := t.TempDir()
	for _, name := range []string{"ga", "gb"} {
		if err := os.WriteFile(filepath.Join(web, name+".raw"), []byte(imageOf(name)), 0o600); err != nil {
			t.Error(err)
		}
	}
	s := &diskStory{r: r, done: map[string]int{}}
	for i, config := range []string{sledtest.TunedConfig, sledtest.OtherNetwork()} {
		s.sleds[i] = sledtest.New(t, sim.Options{Seed: uint64(i + 1), M2: 1, U2: 2}, config)
		if err := s.sleds[i].InitWeb(t.Context(), webAddress, web); err != nil {
			t.Error(err)
		}
		s.sleds[i].Run("bootstrap")
		s.empty[i] = unmarked(s.sleds[i].Comparable())
		var err error
		if s.keys[i], err = (&player{sled: s.sleds[i].Sled}).ledger(); err != nil {
			t.Error(err)
		}
	}
	s.sleds[0].Meet(s.sleds[1])
	return s
}

// diskAct is a command, on one of the sleds.
type diskAct struct {
	verb  string
	line  string
	input string // what it reads
	at    int
	names []string // of what it may change

	instance string // that it is about
}

var diskVerbs = []weight[string]{
	{"image import", 2}, {"image fetch", 2}, {"image delete", 1}, {"image prune", 1}, {"volume create", 4}, {"volume resize", 1}, {"volume rename", 2}, {"volume delete", 2},
	{"volume attach", 2}, {"volume detach", 1}, {"instance ensure", 8}, {"instance stop", 3}, {"instance start", 2}, {"instance delete", 2},
	{"instance snapshot create", 6}, {"instance snapshot rollback", 8}, {"instance snapshot delete", 2}, {"instance copy", 2}, {"instance migrate", 3}, {"reap", 1}, {"reboot", 1},
}

func (s *diskStory) pick(of ...string) string { return of[s.r.IntN(len(of))] }

// draw draws a command. Names are few, so that they meet again.
func (s *diskStory) draw() diskAct {
	a := diskAct{verb: draw(s.r, diskVerbs), at: s.r.IntN(2)}
	instance := s.pick("ia", "ib", "ic")
	if there := s.existing(-1, "instance"); len(there) > 0 && s.r.IntN(6) > 0 {
		instance = s.pick(there...)
	}
	if at, is := s.homeOf(instance); is {
		a.at = at
	}
	one := func(kind string, names ...string) string {
		if there := s.existing(a.at, kind); len(there) > 0 && s.r.IntN(4) > 0 {
			return s.pick(there...)
		}
		return s.pick(names...)
	}
	volume, image, snapshot := one("volume", "va", "vb", "vc"), one("image", "ga", "gb"), one("snapshot "+instance, "sa", "sb")
	a.instance = instance
	of := func(line string, names ...string) { a.line, a.names = a.verb+" "+line, names }
	switch a.verb {
	case "image import":
		of("- --size 128K --name "+image, image)
		a.input = imageOf(image)
	case "image fetch":
		of("http://"+webAddress+"/"+image+".raw --name "+image, image)
	case "image delete":
		of(image, image)
	case "image prune":
		of("", "ga", "gb")
	case "volume create":
		of(volume+s.pick(" --size 8M", " --size 8M --thin", " --image "+image, " --size 8M --delete-with-instance"), volume)
	case "volume resize":
		of(volume+" --size "+s.pick("16M", "32M"), volume)
	case "volume rename":
		other := s.pick("va", "vb", "vc")
		of(volume+" "+other, volume, other)
	case "volume delete":
		of(volume, volume)
	case "volume attach", "volume detach":
		of(volume+" "+instance, volume, instance)
	case "instance ensure":
		of(instance+s.pick("", "", " --disk "+volume, " --disk size=8M", " --disk image="+image+",size=1M", " --disk size=8M,delete-with-instance")+s.pick("", " --recreate"), instance, volume)
	case "instance stop", "instance start":
		of(instance, instance)
	case "instance delete":
		of(instance, instance, "va", "vb", "vc") // those that go with it
	case "instance snapshot create", "instance snapshot delete", "instance snapshot rollback":
		of(instance+" "+snapshot, instance, "va", "vb", "vc") // a rollback may be of any that it has
	case "instance copy":
		other := s.pick("ia", "ib", "ic")
		if at, is := s.homeOf(other); is && at != a.at {
			other = instance // a sled does not know the names on the other one
		}
		of(instance+" "+other+s.pick("", " --snapshot "+snapshot), other)
	case "instance migrate":
		of(instance+" --offline --to-command there", instance, "va", "vb", "vc", "ga", "gb")
	default:
		a.line = a.verb
	}
	return a
}

// imageOf is the content of an image, whose name has two letters.
func imageOf(name string) string {
	return strings.Repeat(name+"what a disk begins with, a sector of 512 bytes................", 8*256)
}

// existing are the names of what a sled has of a kind, or any sled.
func (s *diskStory) existing(at int, kind string) (names []string) {
	for _, key := range slices.Sorted(maps.Keys(s.seen)) {
		for i := range s.sleds {
			if name, is := strings.CutPrefix(key, fmt.Sprint(i, " ", kind, " ")); is && (at < 0 || at == i) {
				names = append(names, name)
			}
		}
	}
	return names
}

// homeOf is the sled on which an instance is recorded.
func (s *diskStory) homeOf(instance string) (at int, is bool) {
	for i := range s.sleds {
		if _, there := s.seen[fmt.Sprint(i, " instance ", instance)]; there {
			return i, true
		}
	}
	return 0, false
}

// refusals are the exit codes of a command that does nothing: its input is wrong, something is missing, in the way, or cannot be.
var refusals = []int{2, exitMissing, exitConflict, exitRefused}

func (s *diskStory) play(acts int) (err error) {
	if s.seen, err = s.look(); err != nil {
		return err
	}
	for range acts {
		time.Sleep(time.Minute)
		a := s.draw()
		if (a.verb == "instance snapshot rollback" || a.verb == "volume attach") && s.r.IntN(4) > 0 { // of one that is stopped
			stop := "instance stop " + a.instance
			if err := s.act(diskAct{verb: "instance stop", line: stop, at: a.at, names: []string{a.instance}}); err != nil {
				return err
			}
		}
		if err := s.act(a); err != nil {
			return err
		}
	}
	s.log = append(s.log, "the end")
	if err := s.clear(); err != nil {
		return err
	}
	return s.left()
}

// left is what is on the sleds, and in their ledgers, that was not at first.
func (s *diskStory) left() (err error) {
	for i, sled := range s.sleds {
		keys, failed := (&player{sled: sled.Sled}).ledger()
		keys = slices.DeleteFunc(keys, func(key string) bool { return strings.HasPrefix(key, "departed/") })
		if diff := cmp.Diff(strings.Split(s.empty[i], "\n"), strings.Split(unmarked(sled.Comparable()), "\n")) + cmp.Diff(s.keys[i], keys); diff != "" || failed != nil {
			err = errors.Join(err, failed, fmt.Errorf("sled %d has something left (-first +now):\n%s", i, diff))
		}
	}
	return err
}

// act runs a command, and judges its result.
func (s *diskStory) act(a diskAct) error {
	before, users := s.seen, s.users
	exit, err := s.run(a, s.r.IntN(3) == 0)
	for try := 0; err == nil && exit == killed; try++ {
		again := slices.Contains([]string{"instance migrate", "volume rename", "volume resize", "volume attach", "volume detach", "instance snapshot rollback"}, a.verb)
		if again || s.r.IntN(2) == 0 {
			exit, err = s.run(a, try == 0 && s.r.IntN(3) == 0)
		}
		if again { // one that has begun goes on until it ends, or is refused as it would have been at first
			continue
		}
		if err == nil && exit != 0 && exit != killed || s.r.IntN(2) == 0 { // it is refused now, or the operator leaves it
			exit, err = s.run(diskAct{verb: "reap", line: "reap", at: a.at}, false)
		}
	}
	if err == nil {
		s.seen, err = s.look()
	}
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		of := key + " " + users[key]
		if now := s.seen[key]; now != before[key] && !slices.ContainsFunc(a.names, func(name string) bool { return strings.Contains(of, " "+name) }) {
			return fmt.Errorf("%s on sled %d changed %s: it was %s, and is %q", a.line, a.at, key, before[key], now)
		}
	}
	return nil
}

// killed is what run returns of a command that was, in the place of an exit code.
const killed = -1

// run runs a command line, which may be killed at one of its changes.
func (s *diskStory) run(a diskAct, kill bool) (exit int, err error) {
	sled := s.sleds[a.at]
	if a.verb == "reboot" {
		s.log = append(s.log, fmt.Sprint(a.at, ": reboot"))
		if err := sled.Reboot(context.Background()); err != nil {
			return 0, err
		}
		a.verb, a.line, kill = "bootstrap", "bootstrap", false
	}
	h := sled.Host()
	var dying *host.Crashing
	point, how := s.point, s.how
	if kill {
		point, how = 1+min(s.r.IntN(30), s.r.IntN(30)), host.CrashMode(s.r.IntN(3))
	}
	if point > 0 {
		dying = host.Crash(h, point, how)
		h = dying
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	answer := sled.Fed(ctx, h, a.line, a.input)
	if dying != nil {
		dying.Wait()
		if dying.Crashed() {
			s.kills++
			s.log = append(s.log, fmt.Sprintf("%d: sledctl %s # killed %s", a.at, a.line, dying.Where()))
			return killed, nil
		}
	}
	s.log = append(s.log, fmt.Sprintf("%d: sledctl %s # exit %d", a.at, a.line, answer.Exit))
	switch {
	case answer.Exit == 0 && a.verb == "bootstrap":
		s.done["reboot"]++
	case answer.Exit == 0:
		s.done[a.verb]++
	case !slices.Contains(refusals, answer.Exit):
		return answer.Exit, fmt.Errorf("sledctl %s: exit %d: %s", a.line, answer.Exit, answer.Errs)
	}
	return answer.Exit, nil
}

// look reads what there is, and holds it to the laws that need no history.
func (s *diskStory) look() (map[string]string, error) {
	seen, home := map[string]string{}, map[string]int{}
	s.users = map[string]string{}
	var err error
	for i, sled := range s.sleds {
		for kind, line := range map[string]string{"volume": "volume list -o json", "image": "image list -o json", "snapshot": "instance snapshot list -o json", "instance": "instance list -o json"} {
			var list struct {
				Items []struct {
					Name, Of, GUID, State, Reason, Wanted string
					Instances                             []string
					Disks                                 []struct{ GUID string }
				}
			}
			if failed := json.Unmarshal([]byte(sled.Run(line)), &list); failed != nil {
				return nil, failed
			}
			for _, is := range list.Items {
				key, what := fmt.Sprint(i, " ", kind, " ", is.Name), is.GUID
				switch kind {
				case "instance":
					what = is.Wanted
					if other, twice := home[is.Name]; twice {
						err = errors.Join(err, fmt.Errorf("instance %s is recorded on sleds %d and %d", is.Name, other, i))
					}
					home[is.Name] = i
				case "snapshot":
					key, what = fmt.Sprint(i, " ", kind, " ", is.Of, " ", is.Name), fmt.Sprint(is.Disks)
				}
				if kind != "instance" && is.State != "ready" {
					err = errors.Join(err, fmt.Errorf("%s on sled %d is %s: %s", key, i, is.State, is.Reason))
				}
				seen[key], s.users[key] = what, strings.Join(is.Instances, " ")
			}
		}
	}
	return seen, err
}

// clear deletes everything that there is. Snapshots go before what they are of, and clones before what they came from.
func (s *diskStory) clear() error {
	for range 6 {
		for _, key := range slices.Sorted(maps.Keys(s.seen)) {
			words := strings.Fields(key)
			at, kind, names := int(words[0][0]-'0'), words[1], strings.Join(words[2:], " ")
			line := map[string]string{"instance": "instance delete --yes ", "snapshot": "instance snapshot delete ", "volume": "volume delete --yes ", "image": "image delete "}[kind] + names
			if _, err := s.run(diskAct{verb: "clear", line: line, at: at}, false); err != nil {
				return err
			}
		}
		for i := range s.sleds {
			for _, line := range []string{"image prune", "reap"} { // images, and what was downloaded of some
				if _, err := s.run(diskAct{verb: "clear", line: line, at: i}, false); err != nil {
					return err
				}
			}
		}
		var err error
		if s.seen, err = s.look(); err != nil || len(s.seen) == 0 {
			return err
		}
	}
	return fmt.Errorf("this cannot be deleted: %v", slices.Sorted(maps.Keys(s.seen)))
}

// Histories in which a law of disks was broken once. The command is killed at each of its points.
func TestHistoriesOfDisksThatOnceBrokeALaw(t *testing.T) {
	if testing.Short() {
		t.Skip(unraced)
	}
	t.Parallel()
	imports := diskAct{verb: "image import", line: "image import - --size 128K --name ga", input: imageOf("ga")}
	of := func(line string) diskAct { return diskAct{verb: line, line: line} }
	for name, c := range map[string]struct {
		first  []diskAct
		killed diskAct
		points int
	}{
		"the record of a volume stays, whose deletion was killed": {[]diskAct{of("volume create va --size 8M")}, of("volume delete va"), 8},
		"the record of an image stays, whose deletion was killed": {[]diskAct{imports}, of("image delete ga"), 9},
		"the intent of an import stays, that was killed":          {nil, imports, 12},
	} {
		t.Run(name, func(t *testing.T) {
			for point := 1; point <= c.points; point++ {
				for _, how := range []host.CrashMode{host.CrashBefore, host.CrashAfter, host.CrashDuring} {
					synctest.Test(t, func(t *testing.T) {
						s := newDiskStory(t, rand.New(rand.NewPCG(1, 1)))
						for _, a := range append(c.first, c.killed, of("reap")) {
							s.point, s.how = 0, how
							if a.line == c.killed.line {
								s.point = point
							}
							if _, err := s.run(a, false); err != nil {
								t.Error(err)
							}
						}
						s.point = 0
						var err error
						if s.seen, err = s.look(); err == nil {
							err = errors.Join(s.clear(), s.left())
						}
						if err != nil {
							t.Errorf("%v\n\t%s", err, strings.Join(s.log, "\n\t"))
						}
					})
				}
			}
		})
	}
}
