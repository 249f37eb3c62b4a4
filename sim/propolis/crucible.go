package propolis

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

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

// volume is a volume construction request as far as it is looked at
// (oxidecomputer/crucible, crucible-client-types).
type volume struct {
	Type       string   `json:"type"`
	SubVolumes []volume `json:"sub_volumes"`
	ReadOnly   *volume  `json:"read_only_parent"`
	Opts       *struct {
		Target []string `json:"target"`
	} `json:"opts"`
}

// openCrucible is a volume whose downstairs answer: each region has the three
// that the upstairs wants. What they keep is not simulated.
func openCrucible(request string) error {
	var v volume
	_ = json.Unmarshal([]byte(request), &v) // what is no request opens nothing
	return v.open()
}

func (v volume) open() error {
	below := v.SubVolumes
	if v.ReadOnly != nil {
		below = append(below[:len(below):len(below)], *v.ReadOnly)
	}
	switch {
	case v.Type == "volume":
	case v.Type == "region" && v.Opts != nil && len(v.Opts.Target) == 3:
	case v.Type == "region":
		return errors.New("bad Crucible volume: a region has three targets")
	default:
		return errors.New("not simulated: a Crucible volume of type " + strconv.Quote(v.Type))
	}
	for _, sub := range below {
		if err := sub.open(); err != nil {
			return err
		}
	}
	return nil
}

// disk answers what asks a Crucible backend: nothing is known of what one does
// here.
//
// Guess words-for-an-unknown-disk: the words for a disk that is not known: for vcr the answer comes
// from the machine's own queue.
// Check: `curl` with such requests
func (c *call) disk() (answer, error) {
	snapshot, has := c.params["snapshot_id"]
	if _, err := uuid.Parse(snapshot); has && err != nil {
		return answer{}, badRequest("bad parameter in URL path: UUID parsing failed: %s", snapshot)
	}
	return c.live(func(_ *world.Tx, p *world.Process) (answer, error) {
		var spec instanceSpec
		_ = json.Unmarshal(p.VM.Spec, &spec) // our own
		id := canonicalKey(c.params["id"])
		code := "No crucible backend for id " + id
		switch {
		case spec.Components[id].Type == "crucible_storage_backend":
			return answer{}, notSimulated("what a Crucible volume tells of itself")
		case has:
			code = "no disk with id " + id + "!"
		}
		return answer{}, &fault{status: http.StatusNotFound, message: "Not Found", code: code}
	})
}
