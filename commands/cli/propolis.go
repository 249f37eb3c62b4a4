package cli

import (
	"context"

	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// Propolis is the Propolis of an instance that has an incarnation.
func (e *Env) Propolis(ctx context.Context, ref string) (propolis.Client, record.Record, error) {
	if ref == "" {
		return propolis.Client{}, record.Record{}, NoInstanceFlag()
	}
	s, env, err := e.Instances(ctx)
	if err != nil {
		return propolis.Client{}, record.Record{}, err
	}
	view, err := e.View(ctx)
	if err != nil {
		return propolis.Client{}, record.Record{}, err
	}
	r, err := s.Find(view, ref)
	if err != nil {
		return propolis.Client{}, record.Record{}, err
	}
	if r.Incarnation == nil {
		return propolis.Client{}, r, &NotFoundError{What: "Propolis of instance " + r.Name, List: "sledctl instance get " + r.Name}
	}
	target := s.Target(r)
	target.ID = r.ID
	return propolis.Client{Host: env.Host, Target: target}, r, nil
}

// NoInstanceFlag is a command line that does not say which instance.
func NoInstanceFlag() error {
	return &UsageError{Text: "--instance is missing", Advice: "give --instance NAME"}
}
