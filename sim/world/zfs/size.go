package zfs

import (
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// Sizes as ZFS writes and reads them (usr/src/lib/libzfs/common/libzfs_util.c,
// zfs_nicenum_format and zfs_nicestrtonum).

const sizeUnits = "BKMGTPEZ"

// NiceNumber is a number as people read it: at most five characters, "96K",
// "1.03G", "0".
//
// Guess small-sizes-end-in-b: human sizes below 1 KiB end in "B"; sledctl always asks with -p.
// Check: `zfs list -o used` on an empty volume
func NiceNumber(n uint64) string {
	index := 0
	for rest := n; rest >= 1024 && index < len(sizeUnits)-1; rest >>= 10 {
		index++
	}
	unit := strings.TrimPrefix(string(sizeUnits[index]), "B")
	whole := uint64(1) << (10 * index)
	if n%whole == 0 {
		return strconv.FormatUint(n/whole, 10) + unit
	}
	value := float64(n) / float64(whole)
	for digits := 2; digits > 0; digits-- {
		if s := strconv.FormatFloat(value, 'f', digits, 64) + unit; len(s) <= 5 {
			return s
		}
	}
	return strconv.FormatFloat(value, 'f', 0, 64) + unit
}

// ParseSize reads a whole number with an optional unit: "100G", "512mb".
func ParseSize(s string) (uint64, error) {
	digits := strings.TrimRight(s, "BKMGTPEZbkmgtpez")
	unit := strings.ToUpper(s[len(digits):])
	if len(unit) == 2 && unit[0] != 'B' {
		unit = strings.TrimSuffix(unit, "B")
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	shift := 10 * max(0, strings.Index(sizeUnits, unit))
	if err != nil || len(unit) > 1 || shift >= 64 || n<<shift>>shift != n {
		return 0, world.NotSimulated("zfs: the number '%s'", s)
	}
	return n << shift, nil
}
