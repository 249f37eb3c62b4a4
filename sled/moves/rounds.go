package moves

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/snapshot"
	"github.com/sledctl/sledctl/sled/volume"
	"github.com/sledctl/sledctl/zfs"
)

// Passing begins the names of the snapshots that a move takes. There is one while nothing is sent, for the next round.
const Passing = "for-move-"

// A round that has sent less than enough bytes is the last while the guest runs, and so is the one after mostRounds: a
// guest that writes faster than the line takes has no last one.
const enough, mostRounds = 64 << 20, 5

// rounds sends the volumes of an instance that may run, until little is left to be sent.
func (m *moving) rounds(ctx context.Context) error {
	for n := range mostRounds {
		m.tell("round " + strconv.Itoa(n+1))
		bytes, err := m.round(ctx)
		if _, apart := errors.AsType[*snapshot.RunningError](err); apart {
			return nil // its disks lie on several pools: all is sent once it is stopped
		}
		if err != nil || n > 0 && bytes < enough {
			return err
		}
		if view, err := m.read(ctx); err != nil || !m.runs(view) {
			return err
		}
	}
	return nil
}

// runs reports whether the guest may be writing.
func (m *moving) runs(view ledger.View) bool {
	is, err := m.Snapshots.Instance(view, m.done.Record.ID)
	return err == nil && is.Running
}

// round sends what has changed since the target was sent something, or all.
func (m *moving) round(ctx context.Context) (bytes int64, err error) {
	view, volumes, err := m.volumes(ctx)
	if err != nil || len(volumes) == 0 {
		return 0, err
	}
	earlier, next, err := m.passing(view)
	if err != nil {
		return 0, err
	}
	taken, report, err := m.Snapshots.Create(ctx, m.env, snapshot.Request{Ref: m.done.Record.ID, Name: next})
	m.done.Reports = append(m.done.Reports, report)
	if err != nil {
		return 0, err
	}
	held, err := m.held(ctx)
	if err != nil {
		return 0, err
	}
	for _, v := range volumes {
		step := m.sending(v, taken.Record, earlier, held[v.Name], &bytes)
		if err := step.Do(ctx, m.env.Host); err != nil {
			return bytes, err
		}
		m.paths[v.Dataset] = step.Got.Path
	}
	return bytes, m.dropSnapshots(ctx, next)
}

// passing are the snapshots of earlier rounds that are finished, and the name of the next.
func (m *moving) passing(view ledger.View) (earlier []snapshot.Record, next string, err error) {
	all, err := snapshot.Of(view, m.done.Record.ID)
	last := 0
	for _, r := range all {
		n, err := strconv.Atoi(strings.TrimPrefix(r.Name, Passing))
		if err != nil || !strings.HasPrefix(r.Name, Passing) {
			continue
		}
		if last = max(last, n); !r.Unfinished() {
			earlier = append(earlier, r)
		}
	}
	return earlier, Passing + strconv.Itoa(last+1), err
}

// dropSnapshots removes the snapshots of the move but one.
func (m *moving) dropSnapshots(ctx context.Context, but string) error {
	view, err := m.read(ctx)
	if err != nil {
		return err
	}
	all, err := snapshot.Of(view, m.done.Record.ID)
	for _, r := range all {
		if err != nil || !strings.HasPrefix(r.Name, Passing) || r.Name == but {
			continue
		}
		_, report, gone := m.Snapshots.Delete(ctx, m.env, snapshot.Request{Ref: r.Instance, Name: r.Name})
		m.done.Reports, err = append(m.done.Reports, report), gone
	}
	return err
}

// Held is what the target has of a volume.
type Held struct {
	Kind     string `json:"kind"`
	State    string `json:"state"`
	Path     string `json:"path"`
	Received string `json:"received"` // the GUID of the snapshot
	Arrives  string `json:"arrives"`  // the instance with which it moves there
}

// held asks the target, once for all volumes, what it has of each, by name. Zero: it has none of the name.
func (m *moving) held(ctx context.Context) (map[string]Held, error) {
	answer, err := m.Run(ctx, migration.Words(m.to(), []string{"volume", "list", "-o", "json"}), nil)
	printed, err := migration.Asked(m.to(), answer, err)
	if err != nil {
		return nil, err
	}
	var list struct {
		Kind  string `json:"kind"`
		Items []struct {
			Name string `json:"name"`
			Held
		} `json:"items"`
	}
	if json.Unmarshal(printed, &list) != nil || list.Kind != "VolumeList" {
		return nil, migration.Foreign(m.to(), answer)
	}
	all := map[string]Held{}
	for _, v := range list.Items {
		all[v.Name] = v.Held
	}
	return all, nil
}

// sending is the step that sends a volume as a snapshot has it, from where the target is.
func (m *moving) sending(v volume.Record, taken snapshot.Record, earlier []snapshot.Record, held Held, bytes *int64) *SendVolume {
	of := func(r snapshot.Record) string {
		i := slices.IndexFunc(r.Disks, func(d snapshot.Disk) bool { return d.Volume == v.ID })
		if i < 0 {
			return ""
		}
		return r.Disks[i].GUID
	}
	s := &SendVolume{
		Volume: v, Instance: m.done.Record.ID, To: m.to(), Feed: m.Feed, GUID: of(taken), Got: &Held{},
		Sent: zfs.Sent{Snapshot: naming.Snapshot(v.Dataset, taken.Name)},
		Count: func(n int) {
			*bytes += int64(n)
			if m.sent += int64(n); m.Progress != nil {
				m.Progress(m.sent, m.sent)
			}
		},
	}
	for _, r := range earlier {
		if guid := of(r); guid != "" && guid == held.Received && held.Arrives == s.Instance && held.State == string(volume.Arrives) {
			s.Since, s.Sent.Since = guid, naming.Snapshot(v.Dataset, r.Name)
		}
	}
	return s
}
