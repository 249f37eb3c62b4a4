package commands

import (
	"context"

	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// client is the Propolis of an instance that has a run.
func (e *Env) client(ctx context.Context, ref string) (propolis.Client, record.Record, error) {
	if ref == "" {
		return propolis.Client{}, record.Record{}, errNoInstanceFlag()
	}
	s, env, err := e.instances(ctx)
	if err != nil {
		return propolis.Client{}, record.Record{}, err
	}
	view, err := e.view(ctx)
	if err != nil {
		return propolis.Client{}, record.Record{}, err
	}
	r, err := s.Find(view, ref)
	if err != nil {
		return propolis.Client{}, record.Record{}, err
	}
	if r.Run == nil {
		return propolis.Client{}, r, &notFoundError{what: "Propolis of instance " + r.Name}
	}
	target := s.Target(r)
	target.ID = r.ID
	return propolis.Client{Host: env.Host, Target: target}, r, nil
}

func errNoInstanceFlag() error {
	return &usageError{text: "--instance is missing", hint: "--instance NAME"}
}
