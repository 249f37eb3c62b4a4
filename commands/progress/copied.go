package progress

import (
	"fmt"
	"time"

	"github.com/sledctl/sledctl/commands/terminal"
)

// enough is how long something is copied before its speed is told.
const enough = time.Second

// Copied is how far a copy is after some time: "1.2G of 20G  310M/s  ~1m02s left". The speed is
// that since it began, when some was already there. How much it will be may be unknown: -1.
func Copied(begun, done, of int64, took time.Duration) string {
	text := terminal.FormatSize(uint64(done))
	if of >= 0 {
		text += " of " + terminal.FormatSize(uint64(of))
	}
	if took < enough || done <= begun {
		return text
	}
	speed := float64(done-begun) / took.Seconds()
	if of < 0 {
		return text + fmt.Sprintf("  %s/s", terminal.FormatSize(uint64(speed)))
	}
	left := time.Duration(float64(of-done) / speed * float64(time.Second))
	return text + fmt.Sprintf("  %s/s  ~%s left", terminal.FormatSize(uint64(speed)), terminal.Elapsed(left.Round(time.Second)))
}
