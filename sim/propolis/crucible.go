package propolis

import (
	"encoding/json"
	"errors"
	"fmt"
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
	if err := json.Unmarshal([]byte(request), &v); err != nil {
		return fmt.Errorf("failed to deserialize Crucible volume construction request: %w", err)
	}
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
	case v.Type == "file" || v.Type == "url":
		return errors.New("the simulated sled has no Crucible volumes of files or URLs")
	default:
		return errors.New("failed to deserialize Crucible volume construction request: unknown variant `" + v.Type + "`") // Guess: the wording.
	}
	for _, sub := range below {
		if err := sub.open(); err != nil {
			return err
		}
	}
	return nil
}

// crucibleOf says whether a machine has a Crucible backend of a name.
func crucibleOf(spec []byte, id string) bool {
	var parts struct {
		Components map[string]struct {
			Type string `json:"type"`
		} `json:"components"`
	}
	_ = json.Unmarshal(spec, &parts) // our own
	return parts.Components[id].Type == "crucible_storage_backend"
}

// disk answers what asks a Crucible backend: nothing is known of what one does
// here.
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
	return c.live(func(_ *world.Tx, p *world.Process) (answer, error) {
		if crucibleOf(p.VM.Spec, canonicalKey(c.params["id"])) {
			return answer{}, &fault{status: http.StatusBadRequest, message: "the simulated sled's Crucible tells nothing of itself"}
		}
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
