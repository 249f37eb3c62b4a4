package napi

import (
	"net/http"
	"regexp"
	"slices"

	"github.com/sledctl/sledctl/sim/world"
)

// printedTag is a tag as it is written.
type printedTag struct {
	MTU  int    `json:"mtu"`
	Name string `json:"name"`
	UUID string `json:"uuid"`
}

func printTag(t *world.NAPITag) printedTag { return printedTag{t.MTU, t.Name, t.UUID} }

func (c *call) getTag() (a answer, err error) {
	err = c.view(c.r.Context(), func(_ *world.Tx, n *world.NAPI) error {
		i := slices.IndexFunc(n.Tags, func(t *world.NAPITag) bool { return t.Name == c.params["tag"] })
		if i < 0 {
			return notFound("nic tag not found")
		}
		a = answer{status: http.StatusOK, body: printTag(n.Tags[i])}
		return nil
	})
	return a, err
}

// checkTagName says what is wrong with the name of a tag that is to be made.
//
// Guess napi-words-for-a-long-tag: how a NAPI refuses a nic tag of more than 31 characters.
// Check: `curl -i NAPI/nic_tags -d name=…`
func checkTagName(n *world.NAPI, name string) error {
	const most = 31
	switch {
	case name == "":
		return invalid(missing("name", "Missing parameter"))
	case !regexp.MustCompile(`^[0-9A-Za-z_]+$`).MatchString(name):
		return invalid(wrong("name", "must only contain numbers, letters and underscores"))
	case len(name) > most:
		return invalid(wrong("name", "must not be longer than %d characters", most))
	case hasTag(n, name):
		return invalid(fieldFault{Field: "name", Code: "Duplicate", Message: "Already exists"})
	}
	return nil
}

func (c *call) createTag() (a answer, err error) {
	var given printedTag
	if err := c.given(&given); err != nil {
		return a, err
	}
	err = c.update(c.r.Context(), func(tx *world.Tx, n *world.NAPI) error {
		if err := checkTagName(n, given.Name); err != nil {
			return err
		}
		t := &world.NAPITag{UUID: tx.UUID(), Name: given.Name, MTU: 1500}
		n.Tags = append(n.Tags, t)
		a = answer{status: http.StatusOK, body: printTag(t)}
		return nil
	})
	return a, err
}
