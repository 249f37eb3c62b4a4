package doctor

import (
	"context"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/sled/base"
	"github.com/sledctl/sledctl/sled/doctor"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/network"
)

// settings are what doctor takes from the configuration and the ledger, and the host.
func settings(e *cli.Env) (doctor.Settings, host.Host, error) {
	c, h, err := e.Reach()
	if err != nil {
		return doctor.Settings{}, nil, err
	}
	p := cli.PropolisSettings(c)
	kind, lacking := packagingOn(p.Packaging, h.Files())
	return doctor.Settings{
		RunDir: c.Paths.Run, LedgerDir: c.Paths.Ledger, Image: kind == packaging.Image, Lacking: lacking,
		Packaging: kind, Images: c.Propolis.Images, Program: cli.OwnProgram(e, c),
		Server: doctor.Server{
			Program: packaging.Program{File: p.Binary, LibraryPath: p.LibraryPath}, Bootrom: p.Bootrom, CheckBootrom: instance.CheckBootrom,
		},
		Reservoir: uint64(c.Instance.Reservoir.Size), Memory: uint64(c.Instance.Memory),
		ControlLink: c.Network.ControlLink, Etherstub: c.Network.Etherstub, MTU: c.Network.MTU, DHCP: !c.Network.Underlay.IsValid(),
		Names:   cli.Prefixes(c),
		Records: func(ctx context.Context) (doctor.Recorded, error) { return recorded(ctx, e) },
	}, h, nil
}

// packagingOn is how Propolis comes into a zone here, or why it cannot.
func packagingOn(how packaging.Settings, files host.Files) (packaging.Kind, error) {
	seen, err := how.Look(files)
	if err != nil {
		return "", err
	}
	return how.Decide(seen)
}

// recorded is what the ledger says that doctor compares with the host. Without a ledger
// that is nothing: status says what is wrong with it.
func recorded(ctx context.Context, e *cli.Env) (r doctor.Recorded, err error) {
	h, places, err := e.Places()
	if err != nil {
		return r, err
	}
	places.Warn = func(string) {}
	_, view, err := ledger.Open(ctx, h.Files(), places)
	if err != nil {
		return r, nil
	}
	net, _, err := network.Load(view)
	if err != nil {
		return r, err
	}
	r.ControlLink = net.ControlLink
	bases, err := base.All(view)
	if err != nil {
		return r, err
	}
	for _, b := range bases {
		if b.UUID != "" {
			r.Bases++
		}
	}
	r.Objects = map[string]bool{}
	for one, err := range record.Records(view) {
		if err != nil {
			return r, err
		}
		if r.Objects[one.ID] = true; one.Incarnation != nil {
			r.Objects[one.Incarnation.Zone] = true
		}
		if one.Spec.Memory > r.Largest {
			r.Largest, r.Instance = one.Spec.Memory, one.Name
		}
	}
	return r, nil
}
