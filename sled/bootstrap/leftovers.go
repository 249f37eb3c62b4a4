package bootstrap

import (
	"errors"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/storage"
)

// Leftovers are the reports that tell what is left of a bootstrap that did not
// succeed. If it continued although some disks were not as they must be, only their
// part has left anything; where it ended halfway, all of its parts have.
func Leftovers(parts []Part) []operation.Report {
	var all, failed []operation.Report
	halfWay := false
	for _, p := range parts {
		all = append(all, p.Report)
		if p.Err != nil {
			failed = append(failed, p.Report)
			halfWay = halfWay || !errors.As(p.Err, new(*storage.PartialError))
		}
	}
	if halfWay {
		return all
	}
	return failed
}
