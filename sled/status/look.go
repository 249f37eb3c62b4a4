package status

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/kstat"
	"github.com/sledctl/sledctl/illumos/reservoir"
	"github.com/sledctl/sledctl/illumos/system"
	"github.com/sledctl/sledctl/sled/base"
	"github.com/sledctl/sledctl/sled/doctor"
	"github.com/sledctl/sledctl/sled/image"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/network"
	"github.com/sledctl/sledctl/sled/storage"
	"github.com/sledctl/sledctl/sled/volume"
)

// Settings are what a look needs.
type Settings struct {
	Sled     Sled
	Storage  storage.Settings
	Instance *instance.Settings // nil: they are not known
	// NoInstance is why there is no Instance; nil also where the network is not prepared.
	NoInstance error
	Places     ledger.Places
	View       ledger.View
	// Ledgerless says that the sled has no ledger, and needs none.
	Ledgerless bool
	// NoLedger is why there is no View.
	NoLedger       error
	Base           base.Settings
	Nexus          string
	Faults         []string
	DevelopmentKey bool
}

// Patience is how long one host command may take: one that takes longer is unknown.
const Patience = 5 * time.Second

// Look looks at the sled: it lists each kind of thing once, asks each running Propolis,
// and reads the ledger and the locks. It writes nothing and takes no lock
// of an operation. What it cannot see is in Unknown.
func (s Settings) Look(ctx context.Context, env operation.Env) Seen {
	files := env.Host.Files()
	patient := bounded{env.Host}
	seen := Seen{
		Sled: s.Sled, NoLedger: s.NoLedger, Head: s.View.Head(), Epoch: s.View.Epoch().N, Nexus: s.Nexus, Faults: s.Faults, DevelopmentKey: s.DevelopmentKey,
		Open: operation.Open(s.View), Lasts: operation.Lasts(s.View),
	}
	if k, _, err := record.KeeperOf(s.View); s.NoLedger == nil && err == nil {
		seen.Sled.Keeper = k.Keeper
	}
	var wg sync.WaitGroup
	var memory, check, locks, last error
	seen.Doctor, last = doctor.Last(files, env.RunDir)
	wg.Go(func() {
		var r reservoir.State
		if r, memory = reservoir.Query(ctx, patient); memory == nil {
			seen.Reservoir = &r
		}
	})
	wg.Go(func() {
		if !s.Ledgerless {
			seen.Ledger, check = ledger.CheckCopies(ctx, files, s.Places)
		}
	})
	wg.Go(func() { seen.AtWork, locks = operation.AtWork(ctx, env) })
	var booted time.Time
	var unbooted error
	wg.Go(func() { booted, unbooted = kstat.Booted(ctx, patient) })
	rest := s.lookAtHost(ctx, env, patient, &seen)
	wg.Wait()
	if unbooted == nil { // nothing depends on it: a sled that does not tell is no less well
		uptime := int64(max(0, s.Sled.Time.Sub(booted)) / time.Second)
		seen.Sled.Booted, seen.Sled.Uptime = &booted, &uptime
	}
	for _, place := range seen.Ledger.Places {
		if info, err := files.Stat(place.File()); err == nil && info.Time.After(seen.Written) {
			seen.Written = info.Time
		}
	}
	for _, err := range append(rest, check, locks, last) {
		if err != nil {
			seen.Unknown = append(seen.Unknown, err)
		}
	}
	return seen
}

// lookAtHost lists what is on the host once, for the storage and the instances.
func (s Settings) lookAtHost(ctx context.Context, env operation.Env, h host.Host, seen *Seen) (unknown []error) {
	wants := []inventory.Want{s.Storage.Observes(), instance.Observes()}
	if all, err := volume.All(s.View); err == nil && len(all) > 0 {
		wants = append(wants, volume.Wants())
	}
	if all, err := image.All(s.View); err == nil && len(all) > 0 {
		wants = append(wants, image.Wants())
	}
	env.Host = inventory.Prefetch(ctx, h, wants...)
	var wg sync.WaitGroup
	var disks, vms, bases, strays, volumes, images error
	wg.Go(func() {
		seen.Volumes, volumes = volume.Settings{Attached: record.UsersOfVolumes}.List(ctx, env.Host, s.View)
	})
	wg.Go(func() { seen.Images, images = image.List(ctx, env.Host, s.View) })
	wg.Go(func() { seen.Items, seen.Drifts, disks = s.Storage.Survey(ctx, env.Host, s.View) })
	wg.Go(func() { vms = s.lookAtInstances(ctx, env, seen) })
	wg.Go(func() {
		zones, err := inventory.Look(ctx, env.Host, instance.Observes()).Zones()
		if strays = err; err == nil && s.NoLedger == nil {
			seen.Unrecorded, strays = unrecorded(s.Base.Names, s.View, zones)
			seen.Unrecorded, seen.LostSpares = withoutSpares(env.Host.Files(), seen.Unrecorded)
		}
	})
	wg.Go(func() { seen.Bases, bases = s.Base.Invalid(ctx, env.Host, s.View) })
	records, err := storage.Records(s.View)
	for _, r := range records {
		seen.Disks = append(seen.Disks, r)
	}
	wg.Wait()
	return []error{disks, vms, bases, strays, volumes, images, err}
}

func (s Settings) lookAtInstances(ctx context.Context, env operation.Env, seen *Seen) (err error) {
	record, prepared, err := network.Load(s.View)
	seen.Network.Link = record.ControlLink
	if err == nil && s.NoLedger == nil && !prepared {
		seen.Unprepared, err = system.RunsVMs(ctx, env.Host)
	}
	if s.Instance == nil || err != nil {
		return errors.Join(err, s.NoInstance)
	}
	inv := inventory.Look(ctx, env.Host, instance.Observes())
	if seen.Instances, err = s.Instance.List(ctx, env, s.View); err != nil {
		return err
	}
	for _, i := range seen.Instances {
		if i.Incarnation == nil {
			continue
		}
		for _, v := range i.Incarnation.Guests {
			if _, there := inv.Link(v.Name); there {
				seen.Network.Guest++
			}
		}
		if _, there := inv.Link(i.Incarnation.Control.Name); there {
			seen.Network.Control++
		}
	}
	boot, unread := operation.Boot(env)
	_, linked := inv.Link(record.ControlLink)
	seen.Unprepared = unread == nil && (boot == "" || inv.Know(inventory.Links) == nil && !linked)
	return errors.Join(unread, inv.Know(inventory.Zones, inventory.Links))
}

// bounded is a host whose commands have a time that they may take.
type bounded struct{ host.Host }

// Run runs a command that only looks.
func (b bounded) Run(ctx context.Context, c host.Command) (host.Result, error) {
	short, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	result, err := b.Host.Run(short, c)
	if errors.Is(short.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
		return result, fmt.Errorf("%s did not answer within %d s", c.Program, Patience/time.Second)
	}
	return result, err
}
