package progress

import (
	"fmt"
	"time"

	"github.com/sledctl/sledctl/commands/terminal"
)

// enough is how long something is copied before its speed is told.
const enough = time.Second

// Copied is how far a copy is after some time: "1.2G of 20G  310M/s  ~1m02s left". The speed is
// that since it began.
func Copied(done, of int64, took time.Duration) string {
	text := fmt.Sprintf("%s of %s", terminal.FormatSize(uint64(done)), terminal.FormatSize(uint64(of)))
	if took < enough || done <= 0 {
		return text
	}
	speed := float64(done) / took.Seconds()
	left := time.Duration(float64(of-done) / speed * float64(time.Second))
	return text + fmt.Sprintf("  %s/s  ~%s left", terminal.FormatSize(uint64(speed)), terminal.Elapsed(left.Round(time.Second)))
}
