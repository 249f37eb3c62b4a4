package cli

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/sledctl/sledctl/commands/config"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/illumos/disk"
	"github.com/sledctl/sledctl/illumos/key"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/copies"
	"github.com/sledctl/sledctl/sled/image"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/snapshot"
	"github.com/sledctl/sledctl/sled/storage"
	"github.com/sledctl/sledctl/sled/volume"
	"github.com/sledctl/sledctl/zfs"
)

// StorageSettings are what storage takes from the configuration.
func StorageSettings(c config.Config) (storage.Settings, error) {
	s := storage.Settings{Keys: keys(c), Dir: vdevDir(c), Disks: sources(c.Storage)}
	for _, text := range c.Storage.Datasets {
		custom, err := storage.ParseCustomDataset(text, terminal.ParseSize)
		if err != nil {
			return s, fmt.Errorf("storage.datasets: %w", err)
		}
		s.Custom = append(s.Custom, custom)
	}
	return s, nil
}

// sources are where disks are looked for.
func sources(c config.Storage) []disk.Source {
	var all []disk.Source
	if c.Slots != "none" {
		all = append(all, disk.Detect{Board: c.Slots})
	}
	if len(c.Vdevs) > 0 {
		all = append(all, disk.Vdevs{Dir: c.VdevDir, Names: c.Vdevs})
	}
	var devices disk.Devices
	for _, device := range c.Devices {
		kind, name, _ := strings.Cut(device, ":")
		devices = append(devices, disk.Device{Kind: disk.Kind(kind), Path: name})
	}
	if len(devices) > 0 {
		all = append(all, devices)
	}
	return all
}

// vdevDir is where pools lie on files, if they do.
func vdevDir(c config.Config) string {
	if len(c.Storage.Vdevs) == 0 {
		return ""
	}
	return c.Storage.VdevDir
}

// keys are the keys of encrypted disks, from the configured source.
func keys(c config.Config) *key.Ring {
	dir := path.Join(c.Paths.Run, "key")
	switch how, what, _ := strings.Cut(c.Storage.Key, ":"); how {
	case "development":
		return key.NewRing(key.Development{}, dir)
	case "file":
		return key.NewRing(key.File{Name: what}, dir)
	case "command":
		source := key.Command{Argv: strings.Fields(what)}
		_, _ = hex.Decode(source.Salt[:], []byte(c.Storage.Salt)) // the configuration was checked
		return key.NewRing(source, dir)
	}
	return nil
}

// WarnOfKeys says what the operator must know of the key source.
func (e *Env) WarnOfKeys(s storage.Settings) {
	if s.Keys != nil && s.Keys.Source().Warning() != "" {
		e.book.warn(s.Keys.Source().Warning())
	}
}

// Volumes are what volumes take from the configuration, and what operations work with.
func Volumes(e *Env) (volume.Settings, operation.Env, error) {
	c, env, err := e.Operation()
	if err != nil {
		return volume.Settings{}, env, err
	}
	namespace, err := SledName(c, env.Host.Files())
	return volume.Settings{
		Namespace: naming.NamespaceID(namespace), Pools: c.Storage.ZonePools, Attached: record.UsersOfVolumes,
		Image: imagesOf(snapshot.Record{}), CopyImage: copiesImages(c, e.Progress.Copies()),
	}, env, err
}

// Copies are what copies of instances are made by.
func Copies(e *Env, s instance.Settings) (copies.Settings, error) {
	c, err := e.Config()
	return copies.Settings{
		Instances: s, Snapshots: snapshotsOf(s),
		Planned: func(s instance.Settings, r snapshot.Record) instance.Settings {
			withVolumes(c, &s, r)
			return s
		},
	}, err
}

// imagesOf finds what volumes begin as: images and disks of snapshots, also of one that a dry run would
// have taken.
func imagesOf(planned snapshot.Record) func(view ledger.View, name, pool string) (volume.Image, error) {
	return func(view ledger.View, name, pool string) (volume.Image, error) {
		if !strings.Contains(name, "@") {
			r, err := image.Get(view, name)
			place, on := r.On(pool)
			if !on {
				place = r.Places()[0]
			}
			return imageAt(r, place), err
		}
		r, d, err := snapshot.Pick(view, name, planned)
		if err != nil {
			return volume.Image{}, err
		}
		v, err := volume.Find(view, d.Volume)
		return volume.Image{Name: name, Pool: v.Pool, Snapshot: naming.Snapshot(v.Dataset, r.Name), Size: d.Size, Block: v.Block}, err
	}
}

// imageAt is an image in a place, for a volume that begins as it.
func imageAt(r image.Record, at image.Place) volume.Image {
	return volume.Image{Name: r.Name, Pool: at.Pool, Snapshot: at.Snapshot(), Size: zfs.VolumeSize(uint64(r.Size)), Block: zfs.DefaultBlock, Copied: true}
}

// copiesImages makes images on further pools; progress, if not nil, is told how far one is.
func copiesImages(c config.Config, progress func(done, of int64)) func(context.Context, operation.Env, string, string, bool) (string, operation.Report, error) {
	return func(ctx context.Context, env operation.Env, name, pool string, dryRun bool) (string, operation.Report, error) {
		pools, err := zonePools(ctx, c, env.Host)
		if err != nil {
			return "", operation.Report{}, err
		}
		made, report, err := image.Copy(ctx, env, image.CopyRequest{Ref: name, Pool: pool, Pools: pools, Progress: progress, DryRun: dryRun})
		return made.Snapshot(), report, err
	}
}

// CompleteVolumes offers the names of volumes.
func CompleteVolumes(e *Env) func(context.Context) []string {
	return Recorded(e, volume.All, func(r volume.Record) string { return r.Name })
}

// Snapshots are what snapshots of instances take from the configuration, and what operations work with.
func Snapshots(ctx context.Context, e *Env) (snapshot.Settings, operation.Env, error) {
	s, env, err := e.Instances(ctx)
	return snapshotsOf(s), env, err
}

func snapshotsOf(s instance.Settings) snapshot.Settings {
	as := func(v volume.Record) snapshot.Volume {
		return snapshot.Volume{ID: v.ID, Name: v.Name, Dataset: v.Dataset, Size: v.Size, Thin: v.Thin}
	}
	return snapshot.Settings{
		Resized: volume.Resized,
		Clones: func(view ledger.View, name string) (names []string) {
			all, _ := volume.All(view) // an error is reported by what needs the records
			for _, v := range all {
				if v.Image == name || strings.HasPrefix(v.Image, name+":") {
					names = append(names, v.Name)
				}
			}
			return names
		},
		Volume: func(view ledger.View, id string) (snapshot.Volume, bool) {
			v, err := volume.Find(view, id)
			return as(v), err == nil
		},
		Instance: func(view ledger.View, ref string) (snapshot.Instance, error) {
			r, err := s.Find(view, ref)
			i := snapshot.Instance{ID: r.ID, Name: r.Name, Running: r.Incarnation != nil}
			disks := r.NextDisks()
			if i.Running {
				disks = r.Spec.Disks
			}
			for _, d := range disks {
				dataset, _ := d.Volume()
				v, ours := volume.At(view, dataset)
				switch {
				case d.ReadOnly:
				case ours:
					i.Volumes = append(i.Volumes, as(v))
				default:
					i.Foreign = append(i.Foreign, d.Path)
				}
			}
			return i, err
		},
	}
}

// CompleteImages offers the names of images.
func CompleteImages(e *Env) func(context.Context) []string {
	return Recorded(e, image.All, func(r image.Record) string { return r.Name })
}

// withVolumes has instances made with volumes of their own, and deleted with those that are set to.
func withVolumes(c config.Config, s *instance.Settings, planned snapshot.Record) {
	of := volume.Settings{Namespace: s.Namespace, Pools: c.Storage.ZonePools, Attached: record.UsersOfVolumes, Image: imagesOf(planned), CopyImage: copiesImages(c, nil)}
	s.MayStart = snapshot.Whole
	s.Followers = func(view ledger.View, inv *inventory.Inventory, datasets []string, moved bool) (instance.Followers, error) {
		f, err := of.Follow(view, inv, datasets, moved)
		return instance.Followers(f), err
	}
	s.MakeVolume = func(ctx context.Context, env operation.Env, name string, d record.NewDisk, dryRun, keep bool) (string, operation.Report, error) {
		want := volume.Wanted{Name: name, Image: d.Image, Size: d.Size, Block: d.Block, Pool: d.Pool, Near: d.Near, Thin: d.Thin, Follow: d.Follows}
		if view, err := operation.Decided(ctx, env, dryRun); err == nil {
			if r, made := of.AsWanted(view, want); made { // nothing is locked, and nothing written
				return r.Path(), operation.Report{}, nil
			}
		}
		made, report, err := of.Create(ctx, env, want, dryRun, keep)
		return made.Device, report, err
	}
	s.DropVolume = func(ctx context.Context, env operation.Env, name string) (left string, err error) {
		_, _, err = of.Delete(ctx, env, volume.DeleteRequest{Ref: name})
		if err == nil {
			return "", nil
		}
		if view, verr := operation.Decided(ctx, env, false); verr == nil {
			r, _ := volume.Find(view, name) // one that is gone is not left
			left = r.Dataset
		}
		if left != "" {
			left = "volume " + left
		}
		if errors.As(err, new(*volume.AttachedError)) {
			err = nil // the instance is resumed with it
		}
		return left, err
	}
}

// WholePools completes names of pools that were given as tables have them, oxp_101964cb for example, in their
// places. One that no pool, or more than one, begins with stays as it is: what needs the pool refuses it.
func WholePools(ctx context.Context, e *Env, names ...*string) error {
	var pools []zfs.Pool
	for _, name := range names {
		if name == nil || !terminal.IsShortPool(*name) {
			continue
		}
		if pools == nil {
			h, err := e.Host()
			if err == nil {
				pools, err = zfs.Pools(ctx, h)
			}
			if err != nil {
				return err
			}
		}
		var fit []string
		for _, p := range pools {
			if strings.HasPrefix(p.Name, *name+"-") {
				fit = append(fit, p.Name)
			}
		}
		if len(fit) == 1 {
			*name = fit[0]
		}
	}
	return nil
}
