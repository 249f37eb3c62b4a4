package world

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/sledctl/sledctl/sim/world/crucible"
)

// Sleds that can reach each other. What one asks of another is a transaction of
// the other's world; nobody holds two of them at once.

// Neighbour is a world that can be reached from another, by the name that it
// has there.
type Neighbour struct {
	Name  string // its directory, or a number
	World *World
}

// Connect makes two sleds reach each other: two in memory, or two in
// directories.
func Connect(ctx context.Context, a, b *World) error {
	if (a.dir == "") != (b.dir == "") {
		return errors.New("a sled in memory and one in a directory cannot reach each other")
	}
	return errors.Join(a.meet(ctx, b), b.meet(ctx, a))
}

// Share has a sled open its volumes in a Crucible that others of this process share. It is set before
// a VM runs.
func (w *World) Share(c *crucible.Crucible) { w.crucible = c }

func (w *World) meet(ctx context.Context, other *World) error {
	if w.dir == "" {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !slices.Contains(w.near, other) {
			w.near = append(w.near, other)
		}
		return nil
	}
	return w.Update(ctx, func(tx *Tx) error {
		if !slices.Contains(tx.State.Neighbours, other.dir) {
			tx.State.Neighbours = append(tx.State.Neighbours, other.dir)
		}
		return nil
	})
}

// Neighbours are those that are there.
func (w *World) Neighbours(ctx context.Context) ([]Neighbour, error) {
	var all []Neighbour
	if w.dir == "" {
		w.mu.Lock()
		defer w.mu.Unlock()
		for i, other := range w.near {
			all = append(all, Neighbour{strconv.Itoa(i), other})
		}
		return all, nil
	}
	var names []string
	if err := w.View(ctx, func(tx *Tx) error { names = slices.Clone(tx.State.Neighbours); return nil }); err != nil {
		return nil, err
	}
	for _, name := range names {
		if other, err := OpenDirectory(name); err == nil { // else it is switched off for good
			all = append(all, Neighbour{name, other.Handle(w.handlers)})
		}
	}
	return all, nil
}

// Neighbour is the one of a name; nil if there is none.
func (w *World) Neighbour(ctx context.Context, name string) (*World, error) {
	n, err := w.neighbour(ctx, func(n Neighbour) bool { return n.Name == name })
	return n.World, err
}

func (w *World) neighbour(ctx context.Context, is func(Neighbour) bool) (Neighbour, error) {
	all, err := w.Neighbours(ctx)
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i], err
	}
	return Neighbour{}, err
}

// NameOf is the name that another world has here; empty: it is no neighbour.
func (w *World) NameOf(ctx context.Context, other *World) (string, error) {
	n, err := w.neighbour(ctx, func(n Neighbour) bool { return n.World == other || w.dir != "" && n.World.dir == other.dir })
	return n.Name, err
}

// Web is a web server that the sled can reach, with the files of a directory of the machine that simulates it.
type Web struct {
	Address string `json:"address"` // HOST:PORT
	Dir     string `json:"dir"`
}
