package zfs

import (
	"strconv"
	"strings"
)

// Sizes as ZFS writes and reads them (usr/src/lib/libzfs/common/libzfs_util.c,
// zfs_nicenum_format and zfs_nicestrtonum).

const sizeUnits = "BKMGTPEZ"

// NiceNumber is a number as people read it: at most five characters, "96K",
// "1.03G", "0".
func NiceNumber(n uint64) string {
	index := 0
	for rest := n; rest >= 1024 && index < len(sizeUnits)-1; rest >>= 10 {
		index++
	}
	if index == 0 {
		return strconv.FormatUint(n, 10)
	}
	unit := string(sizeUnits[index])
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

// ParseSize reads a whole number with an optional unit: "100G", "512mb". The error
// is the description that libzfs gives.
func ParseSize(s string) (uint64, error) {
	unit := strings.TrimLeft(s, "0123456789")
	if unit == s || strings.HasPrefix(unit, ".") {
		return 0, refuse("bad numeric value '%s'", s)
	}
	n, err := strconv.ParseUint(s[:len(s)-len(unit)], 10, 64)
	shift, known := unitShift(unit)
	switch {
	case !known:
		return 0, refuse("invalid numeric suffix '%s'", unit)
	case err != nil || shift >= 64 || n<<shift>>shift != n:
		return 0, refuse("numeric value is too large")
	}
	return n << shift, nil
}

// unitShift is how far a unit shifts: 10 for "K", "k" and "KB". "BB" is weird and
// refused.
func unitShift(unit string) (int, bool) {
	letter := strings.ToUpper(unit)
	if len(letter) == 2 && letter[1] == 'B' && letter[0] != 'B' {
		letter = letter[:1]
	}
	i := strings.Index(sizeUnits, letter)
	return 10 * max(0, i), i >= 0 && len(letter) <= 1
}
