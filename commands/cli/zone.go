package cli

import (
	"context"

	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// ZoneNamed is the zone that a word means: that of the instance with this name or UUID,
// else the zone with this name. Without a ledger it is the word itself.
func (e *Env) ZoneNamed(ctx context.Context, word string) (string, error) {
	c, err := e.Config()
	if err != nil {
		return "", err
	}
	if Prefixes(c).NameOfZone(word).Ours() {
		return word, nil // no instance is meant: the ledger may be lost
	}
	s, _, err := e.Instances(ctx)
	if err != nil {
		return word, nil
	}
	view, err := e.View(ctx)
	if err != nil {
		return word, nil
	}
	r, err := s.Find(view, word)
	switch {
	case err != nil:
		return word, nil
	case r.Incarnation == nil:
		return "", &NotFoundError{What: "a zone of instance " + r.Name, List: "sledctl instance get " + r.Name}
	}
	return r.Incarnation.Zone, nil
}

// NoZone is the error about a zone that does not exist. If a name like it is that of an
// instance or of one of the zones, it was probably meant.
func (e *Env) NoZone(ctx context.Context, word string, zones []string) error {
	missing := &NotFoundError{What: "zone " + word, List: "sledctl zone list"}
	if view, err := e.View(ctx); err == nil {
		missing.Near = naming.Nearest(word, append(record.Names(view), zones...))
	}
	return missing
}

// OfInstance is the record of the instance that --instance names.
func (e *Env) OfInstance(ctx context.Context, ref string) (record.Record, error) {
	s, _, err := e.Instances(ctx)
	if err != nil {
		return record.Record{}, err
	}
	view, err := e.View(ctx)
	if err != nil {
		return record.Record{}, err
	}
	r, err := s.Find(view, ref)
	return r, err
}
