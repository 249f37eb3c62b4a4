package zfs

import (
	"math"
	"strconv"
	"strings"
)

// Sizes as ZFS writes and reads them (usr/src/lib/libzfs/common/libzfs_util.c,
// zfs_nicenum_format and zfs_nicestrtonum).

const sizeUnits = "BKMGTPEZ"

// NiceBytes is a number of bytes as people read it: at most five characters,
// "96K", "1.03G", "0B".
func NiceBytes(n uint64) string {
	s := NiceNumber(n)
	if n < 1024 {
		return s + "B"
	}
	return s
}

// NiceNumber is NiceBytes without a unit for what is below 1024: "0", "8K".
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

// ParseSize reads a number with an optional unit: "100G", "1.5T", "512mb".
// The error is the description that libzfs gives.
func ParseSize(s string) (uint64, error) {
	if s == "" || (s[0] < '0' || s[0] > '9') && s[0] != '.' {
		return 0, refuse("bad numeric value '%s'", s)
	}
	digits := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if digits < 0 {
		digits = len(s)
	}
	if digits < len(s) && s[digits] == '.' {
		return parseFraction(s, digits)
	}
	n, err := strconv.ParseUint(s[:digits], 10, 64)
	if err != nil {
		return 0, refuse("numeric value is too large")
	}
	shift, err := unitShift(s[digits:])
	if err != nil {
		return 0, err
	}
	if shift >= 64 || n<<shift>>shift != n {
		return 0, refuse("numeric value is too large")
	}
	return n << shift, nil
}

// parseFraction reads a number with a decimal point, which is at dot.
func parseFraction(s string, dot int) (uint64, error) {
	end := dot + 1
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	value, err := strconv.ParseFloat(s[:end], 64)
	if err != nil {
		return 0, refuse("bad numeric value '%s'", s)
	}
	shift, err := unitShift(s[end:])
	if err != nil {
		return 0, err
	}
	value = math.Ldexp(value, shift)
	if value >= math.MaxUint64 {
		return 0, refuse("numeric value is too large")
	}
	return uint64(value), nil
}

// unitShift is how far a unit shifts: 10 for "K", "k" and "KB". "BB" is weird
// and refused.
func unitShift(unit string) (int, error) {
	if unit == "" {
		return 0, nil
	}
	upper := strings.ToUpper(unit)
	if i := strings.IndexByte(sizeUnits, upper[0]); i >= 0 && (len(upper) == 1 || upper[1:] == "B" && upper[0] != 'B') {
		return 10 * i, nil
	}
	return 0, refuse("invalid numeric suffix '%s'", unit)
}
