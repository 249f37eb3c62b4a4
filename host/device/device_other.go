//go:build !illumos

package device

import (
	"os"
	"strconv"
	"strings"
)

// Version reads what stands for a node here: a file that holds the version. Errors:
// *fs.PathError.
func Version(name string, _ int) (int, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	version, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || version <= 0 {
		return 0, notOne(name)
	}
	return version, nil
}
