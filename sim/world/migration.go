package world

import (
	"slices"
	"time"
)

// Migration is one that a machine takes part in, on either side. What will
// become of it is written down by both sides when the target has been made;
// from then on only the end of a side, at an earlier moment, changes that.
type Migration struct {
	ID   string `json:"id"`
	Peer string `json:"peer"` // the neighbour on which the other side is
	// Phases are what is published, in Propolis' words: Sync, RamPush, …
	Phases []Timepoint `json:"phases"`
	// End is when it has succeeded or failed; zero: the target is not made yet.
	End time.Time `json:"end,omitzero"`
	// Stages are when each stage behind Sync begins, and when the last one ends;
	// Fails, whether the migration fails then.
	Stages []Timepoint `json:"stages,omitempty"`
	Fails  bool        `json:"fails,omitempty"`
	// Listen is where the target does, and From the offset at which its console
	// goes on.
	Listen string `json:"listen,omitempty"`
	From   uint64 `json:"from,omitempty"`
	// Sure says that nothing that befell the other side can change it any more.
	Sure bool `json:"sure,omitempty"`
	// Stop says that the source was asked to stop meanwhile: it does if it goes on.
	Stop bool `json:"stop,omitempty"`
}

// At is the phase that is published at a time.
func (m *Migration) At(now time.Time) string { return At(m.Phases, now).State }

// Flows says whether the migration has not ended yet.
func (m *Migration) Flows(now time.Time) bool {
	return m != nil && (m.End.IsZero() || now.Before(m.End))
}

// Migrating is the migration that a machine is in now; nil: none.
func (vm *VM) Migrating(now time.Time) *Migration {
	for _, m := range []*Migration{vm.In, vm.Out} {
		if m.Flows(now) {
			return m
		}
	}
	return nil
}

// BrokenMigration is one of whose sides this sled had one that ended before it
// did.
type BrokenMigration struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
}

// Broke says when a side of a migration that was on this sled ended too early.
func (tx *Tx) Broke(id string) (time.Time, bool) {
	i := slices.IndexFunc(tx.State.Broken, func(b BrokenMigration) bool { return b.ID == id })
	if i < 0 {
		return time.Time{}, false
	}
	return tx.State.Broken[i].At, true
}

// Begin forgets the result of an earlier try with the same id.
func (tx *Tx) Begin(id string) {
	tx.State.Broken = slices.DeleteFunc(tx.State.Broken, func(b BrokenMigration) bool { return b.ID == id })
}

// Break writes down that a side of a migration has ended.
func (tx *Tx) Break(id string) {
	if _, already := tx.Broke(id); !already {
		tx.State.Broken = append(tx.State.Broken, BrokenMigration{id, tx.Now})
	}
}

// breakEnded notes the migrations of the processes that were there before and are gone.
func (tx *Tx) breakEnded(before []*Process) {
	for _, p := range ended(before, tx.State.Processes) {
		if p.VM == nil {
			continue
		}
		for _, m := range []*Migration{p.VM.In, p.VM.Out} {
			if m.Flows(tx.Now) {
				tx.Break(m.ID)
			}
		}
	}
}
