package scf

import (
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"
)

// Normalize checks a value of a type and gives it as the repository prints it
// (scf_value_set_from_string(3SCF)). False: it is none.
func Normalize(typ, value string) (string, bool) {
	switch typ {
	case "boolean":
		switch value {
		case "true", "t", "1":
			return "true", true
		case "false", "f", "0":
			return "false", true
		}
		return "", false
	case "count":
		n, err := strconv.ParseUint(value, 0, 64)
		return strconv.FormatUint(n, 10), err == nil
	case "integer":
		n, err := strconv.ParseInt(value, 0, 64)
		return strconv.FormatInt(n, 10), err == nil
	case "time":
		return normalTime(value)
	case "opaque":
		_, err := hex.DecodeString(value)
		return strings.ToLower(value), err == nil
	case "fmri":
		return value, strings.HasPrefix(value, "svc:") || strings.HasPrefix(value, "file:") || strings.HasPrefix(value, "lrc:")
	case "uri":
		scheme, _, ok := strings.Cut(value, ":")
		return value, ok && isName(scheme, "+-.")
	case "net_address", "net_address_v4", "net_address_v6":
		return value, isNetAddress(typ, value)
	case "host":
		return value, isHostname(value) || isNetAddress("net_address", value)
	case "hostname":
		return value, isHostname(value)
	}
	return value, true // astring and ustring take anything
}

// normalTime reads SECONDS[.NANOSECONDS].
func normalTime(value string) (string, bool) {
	seconds, nanos, _ := strings.Cut(value, ".")
	if _, err := strconv.ParseInt(seconds, 10, 64); err != nil || len(nanos) > 9 {
		return "", false
	}
	nanos += strings.Repeat("0", 9-len(nanos))
	if _, err := strconv.ParseUint(nanos, 10, 32); err != nil {
		return "", false
	}
	return seconds + "." + nanos, true
}

func isNetAddress(typ, value string) bool {
	address, err := netip.ParseAddr(value)
	if err != nil {
		prefix, perr := netip.ParsePrefix(value)
		if perr != nil {
			return false
		}
		address = prefix.Addr()
	}
	return typ == "net_address" || (typ == "net_address_v4") == address.Is4()
}

func isHostname(value string) bool {
	for label := range strings.SplitSeq(value, ".") {
		if label == "" || len(label) > 63 || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") {
			return false
		}
		if strings.IndexFunc(label, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-')
		}) >= 0 {
			return false
		}
	}
	return len(value) < 256
}
