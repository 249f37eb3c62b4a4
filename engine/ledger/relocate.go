package ledger

import (
	"context"
	"slices"
)

// Relocation is what it takes until the copies lie where they belong.
type Relocation struct {
	Join  []Location
	Leave []Location
	// Missing are places where a copy belongs and none can be made now, with why.
	Missing []Absence
}

// None says whether all is as it should be.
func (m Relocation) None() bool { return len(m.Join) == 0 && len(m.Leave) == 0 }

// Relocation compares where copies are with where they belong. A plain directory is
// left only for disks. The errors are those of Read, and ErrMissing if any
// member is missing (but see Degrade).
func (l *Ledger) Relocation(ctx context.Context, wanted []Location) (Relocation, error) {
	p, err := l.lookShared(ctx)
	if err != nil {
		return Relocation{}, err
	}
	if len(p.missing) > 0 && l.degraded() == nil {
		return Relocation{}, p.missingError()
	}
	return l.relocation(p, cleaned(wanted)), nil
}

func (l *Ledger) relocation(p *survey, wanted []Location) Relocation {
	var m Relocation
	disks := false
	for _, at := range wanted {
		if p.member(at) != nil {
			disks = disks || at.Pool != ""
		} else if err := at.Mounted(l.files); err != nil {
			m.Missing = append(m.Missing, Absence{File: at.File(), Pool: at.Pool, Err: err})
		} else {
			m.Join = append(m.Join, at)
			disks = disks || at.Pool != ""
		}
	}
	for _, c := range p.members {
		belongs := slices.ContainsFunc(wanted, func(at Location) bool { return at.Directory == c.Directory })
		if c.Pool == "" && !belongs && disks {
			m.Leave = append(m.Leave, c.Location)
		}
	}
	return m
}

// Relocate makes the copies lie where they belong, and says what it did. It may
// be killed between any two of its steps, and done again: first new copies
// join, then a directory leaves. The errors are those of Join and Leave.
func (l *Ledger) Relocate(ctx context.Context, wanted []Location, who, why string) (Relocation, error) {
	m, err := l.Relocation(ctx, wanted)
	if err != nil {
		return Relocation{}, err
	}
	done := Relocation{Missing: m.Missing}
	if len(m.Join) > 0 {
		if err := l.Join(ctx, m.Join, who, why); err != nil {
			return done, err
		}
		done.Join = m.Join
	}
	for _, at := range m.Leave {
		if err := l.Leave(ctx, at.Directory, who, why); err != nil {
			return done, err
		}
		done.Leave = append(done.Leave, at)
	}
	return done, nil
}

// WantedLocations is where copies belong, of the places that there are: on disks if there
// is one, else in all.
func WantedLocations(places []Location) []Location {
	disks := slices.DeleteFunc(slices.Clone(places), func(at Location) bool { return at.Pool == "" })
	if len(disks) > 0 {
		return disks
	}
	return places
}
