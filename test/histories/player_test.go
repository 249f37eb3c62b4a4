package histories

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/commands/config"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/lattice"
)

// player plays a history on a sled, next to the model of it.
type player struct {
	sled   *sim.Sled
	row    lattice.Row // which sled it is
	pool   string      // on which its machines' disks lie
	agent  *agentAtWork
	model  *model
	config func() (config.Config, error) // read once
	first  string                        // the world before the history
	keys   []string                      // of the ledger before it
	// configured are the files in /etc/zones before it.
	configured []string
	seen       map[string]shown // the instances as they were last seen
	acts       []act            // what was drawn so far
	// behind, if set, comes between a verb and the sled.
	behind func(verb, host.Host) host.Host
	// killed: the last verb was.
	killed bool
	// ending: only where it all leads to is looked at.
	ending bool
	log    []string // what was played and what came of it, a line each
	// unowned are the VNICs of ours that nothing names since the ledger was lost.
	unowned []string
}

// shown is what sledctl says of an instance.
type shown struct {
	Name, State, Reason, Wanted, Address, Zone, Pool string
	CPUs                                             int
	Protected                                        bool
	PropolisID                                       string `json:"propolis_id"`
	VNICs                                            []struct{ Name, MAC string }
}

// m2 is the disk that is pulled.
const m2 = "c1t0d0"

// prepare makes the sled of a row, on which histories begin: bootstrapped, with what
// others have on it.
func prepare(row lattice.Row) (*player, error) {
	if row.Memory() {
		row = row.Enlarged() // what cannot be made has no history
	}
	ctx := context.Background()
	sled, err := lattice.Lay(ctx, row)
	if err != nil {
		return nil, err
	}
	p := &player{row: row, sled: sled, model: &model{ground: prepared, vms: map[string]*vm{}, forgets: row.Is(lattice.Mode) == lattice.RAMDisk, footed: footed(row), addresses: row.Is(lattice.Mode) != lattice.OmniOS, crucible: row.Is(lattice.VMDisks) == lattice.Crucible}}
	for _, name := range names() {
		p.model.vms[name] = &vm{life: none}
	}
	p.pool, err = row.Pool(ctx, sled)
	for _, line := range append(foreign(row, "db1"), "sledctl bootstrap") {
		if err == nil {
			err = p.must(line)
		}
	}
	if err != nil {
		return nil, err
	}
	p.settle()
	if p.first, err = p.world(); err != nil {
		return nil, err
	}
	if p.keys, err = p.ledger(); err != nil {
		return nil, err
	}
	p.configured, err = p.configurations()
	return p, err
}

// settle waits until what others have is up.
func (p *player) settle() {
	if p.row.Is(lattice.Latencies) != lattice.None {
		time.Sleep(2 * time.Minute)
	}
}

// foreign are the commands that make a zone that is nobody's business.
func foreign(row lattice.Row, zone string) []string {
	return []string{
		"zfs create -o mountpoint=/" + zone + " rpool/" + zone,
		"zfs create rpool/" + zone + "/zone",
		fmt.Sprintf("dladm create-vnic -l net1 -m 02:08:20:0f:%02x:%02x %sn0", zone[0], zone[len(zone)-1], zone),
		"zonecfg -z " + zone + " create -b ; set brand=" + map[bool]string{true: "sparse", false: "ipkg"}[row.Is(lattice.Mode) == lattice.OmniOS] +
			" ; set zonepath=/" + zone + "/zone ; set ip-type=exclusive ; add net ; set physical=" + zone + "n0 ; end",
	}
}

// nobody are the commands that take it away.
func nobody(zone string) []string {
	return []string{"zonecfg -z " + zone + " delete -F", "dladm delete-vnic " + zone + "n0", "zfs destroy -r rpool/" + zone}
}

// fork is another player who goes on from here.
func (p *player) fork() *player {
	at := p.agent != nil
	p.rest() // no command may be running
	f := *p
	if at {
		defer p.work()
		defer f.work()
	}
	f.sled, f.model, f.log, f.acts, f.unowned = p.sled.Clone(), p.model.clone(), slices.Clip(p.log), slices.Clip(p.acts), slices.Clip(p.unowned)
	return &f
}

// leave ends what the player does.
func (p *player) leave() {
	p.rest()
	p.sled.Close()
}

// patience is how long a command may take by the sled's clock: a thousand times
// what it should.
const patience = time.Hour

// run runs a command line, of sledctl's or of the host's.
func (p *player) run(h host.Host, line string) (exit int, out, errs string, err error) {
	words := strings.Fields(line)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if words[0] == "sledctl" {
		env, out, errs := commands.On(h, nil)
		if p.config == nil {
			p.config = env.Config
		}
		env.Config = p.config
		env.Streams.In.Reader = strings.NewReader(p.input(words))
		exit = commands.Run(ctx, env, words[1:])
		if ctx.Err() != nil {
			err = fmt.Errorf("%s: it did not end: %s", line, errs)
		}
		return exit, out.String(), errs.String(), err
	}
	r, err := h.Run(ctx, host.Command{Program: words[0], Args: words[1:]})
	return r.Exit, string(r.Stdout), string(r.Stderr), err
}

// input is what a command line reads.
func (p *player) input(words []string) string {
	if !slices.Contains(words, "--spec") {
		return ""
	}
	_, input := p.row.Extras(words[3], p.pool) // sledctl instance ensure NAME
	return input
}

// must runs a command line that has to succeed.
func (p *player) must(line string) error {
	exit, _, errs, err := p.run(p.sled.Host(), line)
	if err == nil && exit != 0 {
		err = fmt.Errorf("%s: exit %d: %s", line, exit, errs)
	}
	return err
}

// play does one thing, and says which law is broken.
func (p *player) play(a act) error {
	time.Sleep(time.Second) // the hand has to get to the keyboard
	p.killed = false
	if a.hand != "" {
		return p.interfere(a)
	}
	before := ""
	if a.verb.dry {
		var err error
		if before, err = p.world(); err != nil {
			return err
		}
	}
	line := "sledctl " + a.verb.on(p.row, p.pool)
	h, words := p.sled.Host(), line
	if p.behind != nil {
		h = p.behind(a.verb, h)
	}
	var dying *host.Crashing
	if a.verb.crash != 0 {
		dying = host.Crash(h, a.verb.crash, a.verb.how)
		h = dying
		words, _, _ = strings.Cut(line, " --crash-at")
	}
	exit, _, errs, err := p.run(h, words)
	if dying != nil {
		dying.Wait()
	}
	if dying != nil && dying.Crashed() {
		p.log, p.killed = append(p.log, line+" # killed"), true
		p.model = p.model.killed(a.verb)
		return p.look()
	}
	p.log = append(p.log, fmt.Sprint(line, " # exit ", exit))
	if err != nil {
		return err
	}
	may := p.model.expect(a.verb)
	after, ok := may[exit]
	if !ok {
		return fmt.Errorf("exit %d, the model allows %v: %s", exit, exits(may), errs)
	}
	p.model = after
	if a.verb.word == "bootstrap" && exit == 0 {
		p.work()
	}
	if a.verb.dry {
		now, err := p.world()
		if err != nil {
			return err
		}
		if diff := cmp.Diff(strings.Split(before, "\n"), strings.Split(now, "\n")); diff != "" {
			return fmt.Errorf("--dry-run changed the sled:\n%s", diff)
		}
	}
	return p.look()
}

func exits(o outcomes) []int {
	var list []int
	for e := range o {
		list = append(list, e)
	}
	slices.Sort(list)
	return list
}

// list is what sledctl says of all instances; nil where it cannot know.
func (p *player) list() (map[string]shown, error) {
	exit, out, errs, err := p.run(p.sled.Host(), "sledctl instance list -o json")
	if err == nil && exit == exitRefused && p.model.blind() {
		return nil, nil
	}
	if err == nil && exit != 0 {
		err = fmt.Errorf("instance list: exit %d: %s", exit, errs)
	}
	if err != nil {
		return nil, err
	}
	return readList(out)
}

func readList(out string) (map[string]shown, error) {
	var list struct{ Items []shown }
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, err
	}
	seen := map[string]shown{}
	for _, i := range list.Items {
		seen[i.Name] = i
	}
	if len(seen) != len(list.Items) {
		return nil, fmt.Errorf("a name is there twice: %s", out)
	}
	return seen, nil
}

// look holds what sledctl says of the instances against the model.
func (p *player) look() error {
	if p.ending {
		return nil
	}
	seen, err := p.list()
	if err != nil || seen == nil {
		return err
	}
	users := map[string]string{}
	var gone []string // perhaps: what is there next under the name may be another
	for name, it := range p.model.vms {
		was, known := p.seen[name]
		is, recorded := seen[name]
		if it.maybe != nil {
			all := it.all()
			if slices.ContainsFunc(all, func(v vm) bool { return !v.recorded }) {
				known = false
				gone = append(gone, name)
			}
			// A copy of the ledger that returns may know less: all stay possible.
			slices.SortStableFunc(all, func(a, b vm) int { return agreement(b, is, recorded) - agreement(a, is, recorded) })
			it = either(all)
			p.model.vms[name] = it
		}
		if err := it.agrees(is, recorded); err != nil {
			return fmt.Errorf("instance %s: %w; the model: %v; sledctl: %+v", name, err, it, is)
		}
		if it.stranger() {
			is = was // nobody else may have what it has
			seen[name] = was
		}
		if !recorded && !it.stranger() {
			continue
		}
		if known && was.Address != is.Address && was.Address != "" && p.row.Is(lattice.Addresses) != lattice.DHCP {
			return fmt.Errorf("instance %s had the address %s, and has %s", name, was.Address, is.Address)
		}
		for n, v := range is.VNICs {
			if known && n < len(was.VNICs) && was.VNICs[n].MAC != v.MAC {
				return fmt.Errorf("instance %s, VNIC %d had the MAC %s, and has %s", name, n, was.VNICs[n].MAC, v.MAC)
			}
		}
		for _, thing := range is.has(p.row) {
			if other, used := users[thing]; used {
				return fmt.Errorf("%s and %s both have %s", other, name, thing)
			}
			users[thing] = name
		}
		if known && len(is.VNICs) == 0 {
			is.VNICs = was.VNICs // it will have them again
			seen[name] = is
		}
	}
	for name := range seen {
		if p.model.vms[name] == nil {
			return fmt.Errorf("an instance %s is listed that nobody made", name)
		}
	}
	for _, name := range gone {
		delete(seen, name)
	}
	p.seen = seen
	return nil
}

func (s shown) has(row lattice.Row) (things []string) {
	if row.Is(lattice.Addresses) != lattice.DHCP {
		things = append(things, s.Address)
	}
	if s.PropolisID != "" {
		things = append(things, s.PropolisID)
	}
	for _, v := range s.VNICs {
		things = append(things, v.Name, v.MAC)
	}
	return things
}

func agreement(v vm, is shown, recorded bool) int {
	if v.agrees(is, recorded) != nil {
		return 0
	}
	return 1
}

// agrees says what of an instance is not as the model has it.
func (v *vm) agrees(is shown, recorded bool) error {
	switch {
	case recorded != v.recorded:
		return fmt.Errorf("it is recorded: %v", recorded)
	case !recorded:
		return nil
	case is.Wanted != v.wanted:
		return fmt.Errorf("it is wanted %s", is.Wanted)
	case is.CPUs != v.cpus:
		return fmt.Errorf("it has %d cpus", is.CPUs)
	case is.Protected != v.protected:
		return fmt.Errorf("it is protected: %v", is.Protected)
	case v.states() != nil && !slices.Contains(v.states(), is.State):
		return fmt.Errorf("it is %s (%s), not %v", is.State, is.Reason, v.states())
	case v.life == up && len(is.VNICs) != 1+v.nics:
		return fmt.Errorf("it has %d VNICs", len(is.VNICs))
	case (is.Reason == "") != (is.State == "running" || is.State == "stopped") && !slices.Contains([]life{begun, up, off, unclear}, v.life):
		return fmt.Errorf("%s is said with the reason %q", is.State, is.Reason)
	}
	return nil
}

// finish ends a history: whatever became of it, the manual's way out leads to
// where it began.
func (p *player) finish() error {
	steps := []act{}
	if p.model.pulled {
		steps = append(steps, act{hand: "insert"})
	}
	if p.model.ground != prepared || p.model.lame || p.model.cut {
		steps = append(steps, act{verb: verb{word: "bootstrap"}})
	}
	adopt := act{verb: verb{word: "adopt --all"}}
	for _, name := range names() {
		it := p.model.vms[name]
		if slices.ContainsFunc(it.all(), func(v vm) bool { return v.stranger() && (v.life == up || v.life == outlived) }) && !slices.Contains(steps, adopt) {
			steps = append(steps, adopt)
		}
	}
	p.ending = true
	if err := p.playAll(steps); err != nil {
		return err
	}
	steps = nil
	for _, name := range names() {
		it := p.model.vms[name]
		switch {
		case it.stranger() && (it.life == lost || p.model.unfit(it)) && it.maybe == nil: // what cannot be adopted is named with this
			if err := p.must("sledctl zone delete " + p.seen[name].Zone); err != nil {
				return err
			}
			it.life = none
		case it.recorded || it.maybe != nil || it.life != none:
			steps = append(steps, act{verb: verb{word: "delete", name: name, yes: true}})
		}
	}
	if err := p.playAll(append(steps, act{verb: verb{word: "reap"}})); err != nil {
		return err
	}
	if err := p.clear(); err != nil {
		return err
	}
	for n := range p.model.aliens {
		for _, line := range nobody(alien(n)) {
			if err := p.must(line); err != nil {
				return fmt.Errorf("somebody else's zone: %w", err)
			}
		}
	}
	now, err := p.world()
	if err != nil {
		return err
	}
	if inherits(now) != inherits(p.first) {
		return fmt.Errorf("after delete and reap (-first +now):\n%s", cmp.Diff(strings.Split(p.first, "\n"), strings.Split(now, "\n")))
	}
	keys, err := p.ledger()
	if err != nil {
		return err
	}
	if diff := cmp.Diff(p.keys, keys); diff != "" {
		return fmt.Errorf("after delete and reap, the ledger (-first +now):\n%s", diff)
	}
	configurations, err := p.configurations()
	if diff := cmp.Diff(p.configured, configurations); diff != "" || err != nil {
		return fmt.Errorf("after delete and reap, the configurations of zones (-first +now): %w\n%s", err, diff)
	}
	return nil
}

func (p *player) playAll(acts []act) error {
	for _, a := range acts {
		if err := p.play(a); err != nil {
			return err
		}
	}
	return nil
}

// configurations are the files that zones have, or templates, or nobody.
func (p *player) configurations() ([]string, error) {
	infos, err := p.sled.Host().Files().ReadDir("/etc/zones")
	var names []string
	for _, i := range infos {
		names = append(names, ungenerated(i.Name))
	}
	slices.Sort(names)
	return names, err
}

// ledger are the keys of the ledger that have values.
func (p *player) ledger() ([]string, error) {
	exit, out, errs, err := p.run(p.sled.Host(), "sledctl ledger export")
	if err == nil && exit != 0 {
		err = fmt.Errorf("ledger export: exit %d: %s", exit, errs)
	}
	if err != nil {
		return nil, err
	}
	var export struct{ Facts map[string]json.RawMessage }
	if err := json.Unmarshal([]byte(out), &export); err != nil {
		return nil, err
	}
	var keys []string
	for key := range export.Facts {
		if strings.HasPrefix(key, "tombstone/") || strings.HasPrefix(key, "agent/") {
			continue // of an agent, for a day
		}
		if strings.HasPrefix(key, "base/") {
			key = path.Dir(key) // but for its generation
		}
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys, nil
}

// world is all that is on the sled, but for counters, times and what a boot
// alone decides.
func (p *player) world() (string, error) {
	data, err := sim.Comparable(context.Background(), p.sled.World())
	if err != nil {
		return "", err
	}
	return unmarked(string(data)), nil
}

// change does something to the sled that no command does.
func (p *player) change(do func(tx *world.Tx) bool) error {
	return p.sled.World().Update(context.Background(), func(tx *world.Tx) error {
		if !do(tx) {
			return errors.New("there is no disk " + m2)
		}
		return nil
	})
}
