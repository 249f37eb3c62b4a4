package histories

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
	"github.com/sledctl/sledctl/test/lattice"
)

// propolisService is the service of a Propolis in its zone.
func propolisService(row lattice.Row) string {
	if row.Is(lattice.Mode) == lattice.OmniOS {
		return "svc:/site/sledctl/propolis-server:default"
	}
	return "svc:/system/illumos/propolis-server:default"
}

// alien is the name of the n-th zone of somebody else's: some are called nearly as
// ours are.
func alien(n int) string {
	return fmt.Sprint([]string{"propolis_baseball", "alien", "propolis_instance_mine"}[n%3], n)
}

// interfere does what somebody next to sledctl does. A command that the host
// refuses was not done.
func (p *player) interfere(a act) error {
	p.model = p.model.clone()
	m, it, is := p.model, p.model.vms[a.name], p.seen[a.name]
	switch a.hand {
	case "power":
		p.log = append(p.log, "sledctl sim reboot")
		p.rest()
		if err := p.reboot(); err != nil {
			return err
		}
		m.lame = m.pulled || m.lame
		if !lasting(p.row) {
			m.ground = bare
		}
		for _, it := range m.each() {
			switch {
			case it.unrecorded() && inMemory(p.row):
				it.life = none // nothing is left that could be adopted
			case it.unrecorded():
				it.life = outlived // its marks still say what it is
			case it.life == begun && it.steps <= slices.Index(steps(), "propolis ensure"), it.life == stale:
				it.life, it.steps = stale, 0
			case it.life != none && it.life != unclear:
				it.life = outlived
			}
		}
	case "pull":
		p.log = append(p.log, "sledctl sim disk remove "+m2)
		m.pulled = true
		if err := p.change(func(tx *world.Tx) bool { return zfs.LoseDisk(tx, m2) }); err != nil {
			return err
		}
	case "insert":
		if !m.pulled {
			return nil
		}
		p.log = append(p.log, "sledctl sim disk insert "+m2)
		m.pulled = false
		if err := p.change(func(tx *world.Tx) bool { return zfs.InsertDisk(tx, m2) }); err != nil {
			return err
		}
		p.tried("zpool clear " + p.pulled())
	case "lose":
		if whole, err := p.whole(); err != nil || !whole {
			return err
		}
		if err := p.lose(); err != nil {
			return err
		}
	case "tamper": // between two boots; in a zone of this boot sledctl does not look for it
		if it.life == outlived && !it.unrecorded() && it.maybe == nil && is.Zone != "" && p.tried("zonecfg -z "+is.Zone+" set bootargs=-v") {
			p.tampered = append(p.tampered, is.Zone)
		}
	case "alien":
		for _, line := range foreign(p.row, alien(m.aliens)) {
			p.log = append(p.log, line)
			if err := p.must(line); err != nil {
				return err
			}
		}
		m.aliens++
	default:
		p.onZone(a.hand, it, is)
	}
	return p.look()
}

// inMemory reports whether the zones go with the power: the pool of their datasets is a
// RAM disk, as there is no U.2 for them.
func inMemory(row lattice.Row) bool {
	return row.Is(lattice.Mode) == lattice.RAMDisk && row.Is(lattice.Disks) == lattice.LoneM2
}

// lasting reports whether all that bootstrap prepares outlives a boot: there is
// nothing but what a step on a VM needs, and no reservoir.
func lasting(row lattice.Row) bool {
	return footed(row) && row.Is(lattice.Reservoir) == lattice.None
}

// footed reports whether what a step on a VM needs outlives a boot: there is no
// network that is only sledctl's, and nothing is encrypted. A new VM may still lack memory.
func footed(row lattice.Row) bool {
	return row.Is(lattice.Addresses) == lattice.DHCP && row.Has(lattice.Disks, lattice.LoneM2, lattice.RpoolOnly) && row.Is(lattice.Mode) != lattice.RAMDisk
}

// reboot is a power cycle. What others have comes back, be it that somebody makes
// it again.
func (p *player) reboot() error {
	ctx := context.Background()
	if err := p.sled.Reboot(ctx); err != nil {
		return err
	}
	defer p.settle()
	if p.row.Is(lattice.Mode) != lattice.RAMDisk {
		return nil
	}
	err := p.row.Booted(ctx, p.sled)
	lines := foreign(p.row, "db1")
	for n := range p.model.aliens {
		lines = append(lines, foreign(p.row, alien(n))...)
	}
	for _, line := range lines {
		if err == nil {
			err = p.must(line)
		}
	}
	return err
}

// lose loses the ledger, and begins another, as the manual says.
func (p *player) lose() error {
	p.log = append(p.log, "rm /pool/int/*/config/sledctl/ledger.jsonl", begunAnew)
	p.rest()
	defer p.work()
	files := p.sled.Host().Files()
	for _, at := range ledger.Find(files, p.row.Ledger()) {
		if err := files.Remove(at.File()); err != nil {
			return err
		}
	}
	p.model = p.model.lost()
	if err := p.must(begunAnew); err != nil {
		return err
	}
	unknown, err := p.unknown()
	p.unowned = append(p.unowned, unknown...)
	return err
}

// unknown are the VNICs of which reap says that they may be anybody's: what no
// record names is not taken by its name, and what reap leaves is the operator's.
func (p *player) unknown() (names []string, err error) {
	exit, out, errs, err := p.run(p.sled.Host(), "sledctl reap --dry-run -o json")
	if err == nil && exit != 0 {
		err = fmt.Errorf("reap --dry-run: exit %d: %s", exit, errs)
	}
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []struct{ Kind, Name, Verdict string }
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, err
	}
	for _, i := range list.Items {
		if i.Kind == "vnic" && i.Verdict == "unknown" && !strings.Contains(p.first, `"`+i.Name+`"`) {
			names = append(names, i.Name)
		}
	}
	return names, nil
}

// clear removes by hand what lost its owner with the ledger.
func (p *player) clear() error {
	if len(p.unowned) == 0 {
		return nil
	}
	unknown, err := p.unknown()
	for _, name := range unknown {
		if err == nil && slices.Contains(p.unowned, name) {
			err = p.must("dladm delete-vnic " + name)
		}
	}
	return err
}

const begunAnew = "sledctl bootstrap --new-ledger"

// whole says whether the ledger can be lost, and what runs be known by what is
// there: nothing is open, and no hand has taken anything from what runs.
func (p *player) whole() (bool, error) {
	m := p.model
	if m.pulled || m.lame || m.ground != prepared {
		return false, nil
	}
	text, err := p.world()
	for name, it := range m.vms {
		if it.maybe != nil || !slices.Contains([]life{none, up, lost}, it.life) || it.unrecorded() {
			return false, err
		}
		for _, v := range p.seen[name].VNICs {
			if it.life == up && !strings.Contains(text, `"`+v.Name+`"`) {
				return false, err
			}
		}
	}
	return true, err
}

// onZone does something to the zone of an instance.
func (p *player) onZone(hand string, it *vm, is shown) {
	if is.Zone == "" {
		return
	}
	unrecorded := it.unrecorded()
	if unrecorded && (hand == "remove" || hand == "destroy") {
		return // what is left of the marks then depends on the brand
	}
	if it.life == begun || it.life == off {
		it.life = unclear // what it is then, depends on how far it was
	}
	switch hand {
	case "halt":
		if p.tried("zoneadm -z "+is.Zone+" halt") && it.known() {
			it.life = halted
		}
	case "remove":
		if it.life == up || it.life == lost {
			p.tried("zoneadm -z " + is.Zone + " halt")
		}
		if p.tried("zoneadm -z " + is.Zone + " uninstall -F"); p.tried("zonecfg -z "+is.Zone+" delete -F") && it.known() {
			it.life = removed
		}
	case "unlink":
		if n := len(is.VNICs); n > 0 && !unrecorded {
			p.tried("dladm delete-vnic " + is.VNICs[n-1].Name)
		}
	case "destroy":
		p.tried("zfs destroy -r " + zoneParent(is.Pool) + "/" + is.Zone)
	case "restart":
		if p.tried("svcadm -z "+is.Zone+" restart "+propolisService(p.row)) && it.life == up {
			it.life = lost
			time.Sleep(time.Second) // until it has
			p.settle()
		}
	}
	if unrecorded && it.life != lost && it.life != up {
		it.life = outlived // it can be adopted by its marks
	}
}

// zoneParent is the dataset in which the zones on a pool lie.
func zoneParent(pool string) string {
	if pool == "rpool" {
		return "rpool/zone"
	}
	return pool + "/crypt/zone"
}

// tried runs a command of the host, and says whether the host let it.
func (p *player) tried(line string) bool {
	exit, _, _, err := p.run(p.sled.Host(), line)
	p.log = append(p.log, fmt.Sprint(line, " # exit ", exit))
	return err == nil && exit == 0
}

// pulled is the pool of the disk that is pulled.
func (p *player) pulled() string {
	name := ""
	_ = p.sled.World().View(context.Background(), func(tx *world.Tx) error {
		name = zfs.FindDisk(tx, m2).Pool
		return nil
	})
	return strings.TrimSpace(name)
}
