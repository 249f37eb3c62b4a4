package histories

import (
	"context"
	"errors"
	"fmt"
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
	log    []string // what was played and its result, a line each
	// unowned are sledctl's VNICs that nothing names since the ledger was lost.
	unowned []string
	// tampered are zones whose configuration somebody changed while they were from an
	// earlier boot: none of them is booted again.
	tampered []string
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
	if err == nil {
		err = p.configure(row.Spareless())
	}
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
	if p.configured, err = p.configurations(); err != nil || row.Is(lattice.Spares) == lattice.None {
		return p, err
	}
	if err = p.configure(row); err == nil {
		err = p.must("sledctl bootstrap")
	}
	return p, err
}

// configure writes the configuration of a row.
func (p *player) configure(row lattice.Row) error {
	return host.WriteFile(p.sled.Host().Files(), "/etc/sledctl/config.toml", []byte(row.Config()), 0o600)
}

// unspare has bootstrap remove the spares.
func (p *player) unspare() error {
	if p.row.Is(lattice.Spares) == lattice.None {
		return nil
	}
	if err := p.configure(p.row.Spareless()); err != nil {
		return err
	}
	return p.must("sledctl bootstrap")
}

// settle waits until what others have is up.
func (p *player) settle() {
	if p.row.Is(lattice.Latencies) != lattice.None {
		time.Sleep(2 * time.Minute)
	}
}

// foreign are the commands that make a foreign zone.
func foreign(row lattice.Row, zone string) []string {
	return []string{
		"zfs create -o mountpoint=/" + zone + " rpool/" + zone,
		"zfs create rpool/" + zone + "/zone",
		fmt.Sprintf("dladm create-vnic -l net1 -m 02:08:20:0f:%02x:%02x %sn0", zone[0], zone[len(zone)-1], zone),
		"zonecfg -z " + zone + " create -b ; set brand=" + map[bool]string{true: "sparse", false: "ipkg"}[row.Is(lattice.Mode) == lattice.OmniOS] +
			" ; set zonepath=/" + zone + "/zone ; set ip-type=exclusive ; add net ; set physical=" + zone + "n0 ; end",
	}
}

// nobody are the commands that remove it.
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
	f.tampered = slices.Clip(p.tampered)
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

// run runs a command line: sledctl or a host command.
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
	if !slices.Contains(words, "--spec") && !slices.Contains(words, "--cloud-init") {
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

// list returns sledctl's list of all instances; nil if sledctl cannot know them.
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

func (p *player) playAll(acts []act) error {
	for _, a := range acts {
		if err := p.play(a); err != nil {
			return err
		}
	}
	return nil
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
