package terminal

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// units are those of zfs(8): powers of two.
const units = "BKMGTPE"

// FormatSize writes a number of bytes for people, as zfs list does: "512B",
// "4G", "1.50T". It rounds.
func FormatSize(n uint64) string {
	unit, whole := 0, n
	for whole >= 1024 {
		whole >>= 10
		unit++
	}
	size := math.Ldexp(1, 10*unit)
	value := float64(n) / size
	if unit == 0 || n == whole<<(10*unit) {
		return fmt.Sprintf("%d%c", whole, units[unit])
	}
	for _, digits := range []int{2, 1, 0} {
		if text := strconv.FormatFloat(value, 'f', digits, 64); len(text) <= len("1.50") || digits == 0 {
			return text + string(units[unit])
		}
	}
	return ""
}

// ExactSize writes a number of bytes so that ParseSize gives it back: with the
// largest unit that divides it.
func ExactSize(n uint64) string {
	unit := 0
	for n != 0 && n%1024 == 0 && unit < len(units)-1 {
		n >>= 10
		unit++
	}
	if unit == 0 {
		return strconv.FormatUint(n, 10)
	}
	return strconv.FormatUint(n, 10) + string(units[unit])
}

// ParseSize reads a number of bytes as zfs(8) does: "4G" is 4·2³⁰; also "4g",
// "4GB", "4GiB" and fractions that are a whole number of bytes ("1.5G"). It is
// exact, and refuses signs, blanks and exponents.
func ParseSize(s string) (uint64, error) {
	number := strings.TrimRight(s, "BKMGTPEbkmgtpei")
	shift, ok := shiftOf(strings.ToUpper(s[len(number):]))
	whole, fraction, dot := strings.Cut(number, ".")
	if !ok || !digits(whole) || dot && !digits(fraction) {
		return 0, fmt.Errorf("size %q: want a number of bytes, or with K, M, G, T, P or E: 4G", s)
	}
	// SetString takes what digits let through.
	value, _ := new(big.Rat).SetString(number)
	value.Mul(value, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), shift)))
	switch {
	case !value.IsInt():
		return 0, fmt.Errorf("size %q is not a whole number of bytes", s)
	case !value.Num().IsUint64():
		return 0, fmt.Errorf("size %q is too large", s)
	}
	return value.Num().Uint64(), nil
}

// shiftOf is the power of two of a unit.
func shiftOf(unit string) (uint, bool) {
	if unit == "" || unit == "B" {
		return 0, true
	}
	at := strings.IndexByte(units, unit[0])
	rest := unit[1:]
	return uint(10 * at), at > 0 && (rest == "" || rest == "B" || rest == "IB")
}

// digits: one to forty, more than any size has.
func digits(s string) bool {
	return s != "" && len(s) <= 40 && strings.Trim(s, "0123456789") == ""
}
