package histories

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
)

// Histories of a sled that a control plane has: it places VMs there, with NICs in its VPC and local disks, and removes
// them, while the agent is killed at some change, the sled reboots, and an operator halts zones. Whatever an agent was killed
// over, the control plane tells the next one once more. A local disk is the one that was made until its instance is removed;
// what the control plane takes to run, runs, with its port; and in the end nothing is left.

// planeSled is the sled's id in the control plane, and planeAgent where its agent answers.
const (
	planeSled  = "5b6f33bb-9c0c-4a3c-8e5f-2d6b1c0b7a11"
	planeAgent = "[fd00:1122:3344:101::1]:12345"
)

const planeConfig = sledtest.VPCConfig + `
[nexus]
url = "http://` + sledtest.PlaneAddress + `"
sled_id = "` + planeSled + `"
`

func TestHistoriesOfAControlPlane(t *testing.T) {
	t.Parallel()
	var kills int
	want := stories(t, 2, func(t *testing.T, r *rand.Rand) ([]string, error) {
		s := newPlaneStory(t, r)
		defer s.stop()
		err := s.play(4 + r.IntN(5))
		kills += s.kills
		return s.log, err
	})
	fmt.Printf("histories of a control plane: %d, agents killed: %d\n", want, kills)
	if kills == 0 {
		t.Error("no agent was killed")
	}
}

// stories plays as many as there is time for, each by a chance of its own and in a bubble of time, until one breaks a law.
func stories(t *testing.T, kind uint64, play func(*testing.T, *rand.Rand) (log []string, err error)) (played int) {
	want := 50
	switch {
	case sledtest.Soak():
		want = 20_000
	case testing.Short():
		want = 4
	}
	if *number > 0 {
		want = int(*number)
	}
	for story := range want {
		synctest.Test(t, func(t *testing.T) {
			if log, err := play(t, rand.New(rand.NewPCG(*seed+uint64(story), kind))); err != nil {
				t.Errorf("story %d: %v\n\t%s", story, err, strings.Join(log, "\n\t"))
			}
		})
		if t.Failed() {
			t.FailNow()
		}
	}
	return want
}

// planeStory is a sled, and what is known of its local disks.
type planeStory struct {
	*sledtest.Operator
	r     *rand.Rand
	names int               // of instances, so far
	disks map[string]string // volumes by their datasets, with the id that ZFS gave each
	agent func() sledtest.Answer
	dying *host.Crashing // the host of the agent, where it is to be killed
	kills int
	log   []string
}

func newPlaneStory(t *testing.T, r *rand.Rand) *planeStory {
	s := &planeStory{Operator: sledtest.New(t, sim.Options{Seed: 1, Mode: world.Helios, Installed: true, M2: 1, U2: 1, Links: 4}, planeConfig), r: r, disks: map[string]string{}}
	s.Lobby = &sledtest.Lobby{}
	s.Agent = s.Lobby.Dial
	if err := s.InitNexus(t.Context(), sim.NexusOptions{Address: sledtest.PlaneAddress, Era: "both", Sleds: []string{"tcp:" + planeAgent}}); err != nil {
		t.Fatal(err)
	}
	s.Run("bootstrap")
	return s
}

// start starts an agent that is killed at a change of the sled; 0: that is not.
func (s *planeStory) start(point int, how host.CrashMode) {
	h := s.Host()
	if s.dying = nil; point > 0 {
		s.dying = host.Crash(h, point, how).Kill(s.Lobby.Vanish)
		h = s.dying
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan sledtest.Answer, 1)
	go func() { ended <- s.On(ctx, h, "agent --listen tcp:"+planeAgent+" --insecure-listen") }()
	s.agent = func() sledtest.Answer { cancel(); return <-ended }
}

func (s *planeStory) stop() {
	if s.agent != nil {
		s.agent()
		s.agent = nil
	}
	if s.dying != nil {
		s.dying.Wait()
	}
}

// settle has the control plane tell the sled what it is to have until it has that. An agent that has been killed is
// started again.
func (s *planeStory) settle() error {
	var err error
	for range 8 {
		time.Sleep(30 * time.Second) // what an agent does by itself, it has done then
		if s.dying != nil && s.dying.Crashed() {
			s.log = append(s.log, "the agent was killed "+s.dying.Where())
			s.kills++
			s.stop()
			s.start(0, 0)
			continue
		}
		if err = s.ReconcileNexus(context.Background()); err == nil && s.agreed() {
			return nil
		}
	}
	return fmt.Errorf("the sled does not come to what the control plane wants: %w", err)
}

func (s *planeStory) instances() []sim.NexusInstance {
	all, err := s.NexusInstances(context.Background())
	if err != nil {
		s.T.Error(err)
	}
	return all
}

func (s *planeStory) agreed() bool {
	sleds, err := s.NexusSleds(context.Background())
	return err == nil && len(sleds) == 1 && !slices.ContainsFunc(s.instances(), func(i sim.NexusInstance) bool { return i.Removing || i.State != "running" })
}

// play plays some acts, and what leads back.
func (s *planeStory) play(acts int) error {
	first, keys, err := s.left()
	if err != nil {
		return err
	}
	s.start(0, 0)
	if err := s.settle(); err != nil {
		return err
	}
	for range acts {
		s.act()
		if err := errors.Join(s.settle(), s.check()); err != nil {
			return err
		}
	}
	s.log = append(s.log, "the end")
	for _, i := range s.instances() {
		if err := s.RemoveFromNexus(context.Background(), i.Name); err != nil {
			s.log = append(s.log, "remove "+i.Name+": "+err.Error())
		}
	}
	if err := s.settle(); err != nil {
		return err
	}
	s.stop()
	s.Run("reap")
	now, have, err := s.left()
	if first == now && slices.Equal(keys, have) || err != nil {
		return err
	}
	return fmt.Errorf("something is left (-first +now):\n%s\n%s", cmp.Diff(strings.Split(first, "\n"), strings.Split(now, "\n")), cmp.Diff(keys, have))
}

// left is what is on the sled, and the keys of the ledger. What the control plane configures once stays:
// the datasets in which local disks lie.
func (s *planeStory) left() (text string, keys []string, err error) {
	for _, name := range strings.Fields(s.host("zfs list -Ho name -t volume")) {
		if strings.Contains(name, "local_storage") {
			text += name + "\n"
		}
	}
	for _, of := range []string{"opteadm list-ports", "zoneadm list -ci", "dladm show-vnic -po link", "zfs list -Ho name -t snapshot"} {
		text += s.host(of)
	}
	keys, err = (&player{sled: s.Sled}).ledger()
	keys = slices.DeleteFunc(keys, func(key string) bool { return key == "assignment" })
	return text, keys, err
}

// host is what a command of the host's prints.
func (s *planeStory) host(line string) string {
	words := strings.Fields(line)
	answer, err := s.Host().Run(context.Background(), host.Command{Program: words[0], Args: words[1:]})
	if err != nil {
		s.T.Errorf("%s: %v", line, err)
	}
	return string(answer.Stdout)
}

// act does one thing. Its result is checked once the sled and the control plane agree.
func (s *planeStory) act() {
	ctx := context.Background()
	do := draw(s.r, []weight[string]{{"place", 8}, {"remove", 5}, {"reboot", 2}, {"halt", 2}, {"reap", 1}, {"restart", 1}})
	if at := s.r.IntN(3); at > 0 && s.dying == nil {
		point, how := 1+s.r.IntN(40), host.CrashMode(s.r.IntN(3))
		s.log = append(s.log, fmt.Sprintf("the agent will be killed at change %d, %v", point, how))
		s.stop()
		s.start(point, how)
		time.Sleep(time.Second)
	}
	var err error
	all := s.instances()
	some := func() sim.NexusInstance { return all[s.r.IntN(len(all))] }
	if len(all) == 0 && (do == "remove" || do == "halt") || len(all) > 3 && do == "place" {
		do = "reap"
	}
	switch do {
	case "place":
		s.names++
		w := sim.NexusVMWanted{Name: fmt.Sprint("vm", s.names), CPUs: 1, Memory: 512}
		if s.r.IntN(3) > 0 {
			w.Disk = 1 << 30
		}
		do = fmt.Sprintf("place %+v", w)
		err = s.PlaceInNexus(ctx, w)
	case "remove":
		one := some()
		do += " " + one.Name
		err = s.RemoveFromNexus(ctx, one.Name)
	case "reboot":
		s.stop()
		if err = s.Reboot(ctx); err == nil {
			s.Run("bootstrap")
			s.start(0, 0)
		}
	case "halt":
		zone := "propolis_instance_" + some().VM
		do += " " + zone
		_, err = s.Host().Run(ctx, host.Command{Program: "zoneadm", Args: []string{"-z", zone, "halt"}})
	case "reap":
		err = s.done("reap")
	case "restart":
		s.stop()
		s.start(0, 0)
	}
	s.log = append(s.log, fmt.Sprint(do, ": ", err))
}

// done runs sledctl.
func (s *planeStory) done(line string) error {
	if a := s.Try(line); a.Exit != 0 {
		return fmt.Errorf("sledctl %s: exit %d: %s", line, a.Exit, a.Errs)
	}
	return nil
}

// check holds the sled to what the control plane knows.
func (s *planeStory) check() error {
	var err error
	ports, list := s.host("opteadm list-ports"), s.Run("instance list -H --columns propolis_id,state")
	made := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(s.host("zfs get -Hp -t volume -o name,value guid")), "\n") {
		if name, id, is := strings.Cut(line, "\t"); is && strings.Contains(name, "local_storage") {
			made[name] = id
		}
	}
	wanted := map[string]string{}
	for _, i := range s.instances() {
		if !strings.Contains(list, i.VM+"\trunning\n") {
			err = errors.Join(err, fmt.Errorf("VM %s of %s does not run: %s", i.VM, i.Name, list))
		}
		if !strings.Contains(ports, " "+i.IP+" ") {
			err = errors.Join(err, fmt.Errorf("%s has no port with %s: %s", i.Name, i.IP, ports))
		}
		if i.Disk != "" {
			name := "oxp_" + i.Pool + "/crypt/local_storage/" + i.Disk + "/vol"
			wanted[name] = made[name]
			if was := s.disks[name]; made[name] == "" || was != "" && was != made[name] {
				err = errors.Join(err, fmt.Errorf("the local disk of %s is %q, and was %q", i.Name, made[name], was))
			}
		}
	}
	if diff := cmp.Diff(wanted, made); diff != "" {
		err = errors.Join(err, fmt.Errorf("local disks (-wanted +on the sled):\n%s", diff))
	}
	if strings.Count(list, "\n") != len(s.instances()) {
		err = errors.Join(err, fmt.Errorf("instances: %s", list))
	}
	s.disks = made
	return err
}
