package propolis

import (
	"cmp"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/smf"
)

// Faults of a server. Their words are "propolis", the zone, the method, and the
// request's path in words: "propolis propolis_instance_… PUT instance state".

// words are those of a request.
func (c *call) words(p *world.Process) []string {
	return append([]string{"propolis", p.Zone, c.r.Method}, strings.Split(strings.Trim(c.r.URL.Path, "/"), "/")...)
}

// disturbed is what happens to a request before it is carried out.
func (c *call) disturbed() error {
	struck := []string{world.FaultFail, world.FaultCrash, world.FaultDrop}
	stream := strings.HasSuffix(c.r.URL.Path, "/serial") // dropped once it flows
	if stream {
		struck = struck[1:2]
	}
	armed := false
	err := c.view(func(tx *world.Tx, p *world.Process) error { armed = tx.Expects(c.words(p), struck...); return nil })
	if err != nil || !armed {
		return err
	}
	return c.update(func(tx *world.Tx, p *world.Process) error {
		f := tx.TakeFault(c.words(p), struck...)
		switch {
		case f == nil: // somebody else has taken it
			return nil
		case f.Name == world.FaultCrash:
			smf.Abort(tx, p.PID, cmp.Or(f.Text, "thread 'tokio-runtime-worker' panicked at a fault of the simulated sled")+"\n")
			return errGone
		case f.Name == world.FaultDrop:
			return errGone
		}
		return internal(cmp.Or(f.Text, "a fault of the simulated sled"))
	})
}
