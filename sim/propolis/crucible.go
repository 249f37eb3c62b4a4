package propolis

import (
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/sim/world"
)

// live runs fn if the machine is live.
func (c *call) live(fn func(*world.Tx, *world.Process) (answer, error)) (a answer, err error) {
	err = c.view(func(tx *world.Tx, p *world.Process) (err error) {
		if !active(tx, p) {
			return noInstance()
		}
		a, err = fn(tx, p)
		return err
	})
	return a, err
}

// disk answers what asks a Crucible backend. No machine here has one.
func (c *call) disk() (answer, error) {
	if id, ok := c.params["snapshot_id"]; ok {
		if _, err := uuid.Parse(id); err != nil {
			return answer{}, badRequest("bad parameter in URL path: UUID parsing failed: %s", id)
		}
	}
	if strings.HasSuffix(c.r.URL.Path, "/vcr") {
		err := parse(c.body, func(d *decoder, v any) {
			d.str(d.object(v, "", "InstanceVCRReplace", false, "vcr_json")["vcr_json"], ".vcr_json")
		})
		if err != nil {
			return answer{}, err
		}
	}
	return c.live(func(*world.Tx, *world.Process) (answer, error) {
		code := "No crucible backend for id " // Guess for vcr, whose answer comes from the machine's own queue.
		if _, snapshot := c.params["snapshot_id"]; snapshot {
			code = "no disk with id "
		}
		code += canonicalKey(c.params["id"])
		if strings.HasPrefix(code, "no") {
			code += "!"
		}
		return answer{}, &fault{status: http.StatusNotFound, message: "Not Found", code: code}
	})
}
