package histories

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/lattice"
)

// shown is an instance as sledctl lists it.
type shown struct {
	Name, State, Reason, Wanted, Address, Zone, Pool string
	CPUs                                             int
	Protected                                        bool
	PropolisID                                       string `json:"propolis_id"`
	VNICs                                            []struct{ Name, MAC string }
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

// look compares sledctl's list of the instances with the model.
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
		if is.State == "running" && slices.Contains(p.tampered, is.Zone) {
			return fmt.Errorf("instance %s runs in the zone %s, whose configuration somebody had changed before it was booted", name, is.Zone)
		}
		if err := it.agrees(is, recorded); err != nil {
			return fmt.Errorf("instance %s: %w; the model: %v; sledctl: %+v", name, err, it, is)
		}
		if it.unrecorded() {
			is = was // nobody else may have what it has
			seen[name] = was
		}
		if !recorded && !it.unrecorded() {
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

// finish ends a history: whatever happened in it, the manual's way out leads to where
// it began.
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
		if slices.ContainsFunc(it.all(), func(v vm) bool { return v.unrecorded() && (v.life == up || v.life == outlived) }) && !slices.Contains(steps, adopt) {
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
		case it.unrecorded() && (it.life == lost || p.model.unfit(it)) && it.maybe == nil: // what cannot be adopted is named with this
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
	if err := p.unspare(); err != nil {
		return err
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
		if of, last := strings.CutPrefix(key, naming.KeyLast); last && (!strings.Contains(of, "/") || strings.HasPrefix(of, naming.KeyBase) || strings.HasPrefix(of, naming.KeySpare)) {
			continue // what was done last, once for each subject that stays; one that is gone has none
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
