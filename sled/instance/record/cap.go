package record

import (
	"fmt"
	"math"
	"strconv"

	"github.com/sledctl/sledctl/zone"
)

// CPUCap is how many processors the zone of an instance keeps busy at most, in hundredths
// of one. It is written as a number of processors: 1.5.
type CPUCap int

// MaxCPUCap is far above what any sled has.
const MaxCPUCap CPUCap = 100 * 1024

// String is the number of processors.
func (c CPUCap) String() string { return zone.Hundredths(int(c)) }

// ParseCPUCap reads a number of processors; 0 is no cap.
func ParseCPUCap(s string) (CPUCap, error) {
	f, err := strconv.ParseFloat(s, 64)
	n := math.Round(f * 100)
	if err != nil || n < 0 || n > float64(MaxCPUCap) || math.Abs(f*100-n) > 1e-6 {
		return 0, badCPUCap(s)
	}
	return CPUCap(n), nil
}

func badCPUCap(value string) error {
	return &InputError{Field: "cpu-cap", Value: value, Want: fmt.Sprintf("a number of processors from 0.01 to %v in hundredths, or 0 for no cap", MaxCPUCap)}
}

// MarshalJSON is a number.
func (c CPUCap) MarshalJSON() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalJSON reads a number.
func (c *CPUCap) UnmarshalJSON(data []byte) (err error) {
	if string(data) == "null" {
		return nil
	}
	*c, err = ParseCPUCap(string(data))
	return err
}
