package failure

import (
	"regexp"
	"strings"
)

// Next is what to do after a failure: a command that can be typed as it stands, and what
// it is for; or, without a command, words.
type Next struct{ Command, For string }

// NextOf takes a hint apart: what it says to do, in order.
func NextOf(hint string) []Next {
	command := regexp.MustCompile(`^(?:(.*?)(?:, )?(?:then )?(?:run)?( ?on the sled)?: )?((?:pfexec )?(?:sledctl|zpool) .*)$`)
	var all []Next
	for part := range strings.SplitSeq(hint, "; ") {
		if found := command.FindStringSubmatch(part); found != nil {
			question, rest, asks := strings.Cut(found[1], "? ")
			if asks {
				all = append(all, Next{For: question + "?"})
				found[1] = rest
			}
			typed, then, more := strings.Cut(found[3], ", ")
			if found[2] != "" {
				typed = "on the sled: " + typed
			}
			all = append(all, Next{Command: typed, For: found[1]})
			if more {
				all = append(all, Next{For: then})
			}
		} else if part != "" {
			all = append(all, Next{For: part})
		}
	}
	return all
}

// groupOf are those instances of a verb on many that have one cause, as JSON has them.
type groupOf struct {
	Count int      `json:"count"`
	Cause string   `json:"cause"`
	Names []string `json:"names"`
}
