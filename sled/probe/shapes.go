package probe

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// This file knows the shapes: which symbols a word consists of, and what may replace each.

// uuid replaces a UUID, or its first digits.
func (p *pseudonyms) uuid(t string) string {
	now, ok := p.uuids.replace(hexDigits(t))
	if !ok {
		return t
	}
	b := []byte(strings.ToLower(t))
	i := 0
	for k := range b {
		if b[k] != '-' {
			b[k] = "0123456789abcdef"[now[i]]
			i++
		}
	}
	return string(b)
}

func hexDigits(t string) (all []symbol) {
	for i, c := range strings.ReplaceAll(strings.ToLower(t), "-", "") {
		n, _ := strconv.ParseUint(string(c), 16, 8)
		if i == 12 { // the version
			all = append(all, fixed(int(n)))
			continue
		}
		all = append(all, symbol{int(n), 0, 15})
	}
	return all
}

// mac replaces the last three bytes; the first three are the vendor's.
func (p *pseudonyms) mac(t string) string {
	now, ok := p.macs.replace(macBytes(t))
	if !ok {
		return t
	}
	groups := strings.Split(t, ":")
	for i, g := range groups {
		groups[i] = fmt.Sprintf("%0*x", len(g), now[i])
	}
	return strings.Join(groups, ":")
}

func macBytes(t string) (all []symbol) {
	for i, g := range strings.Split(t, ":") {
		n, _ := strconv.ParseUint(g, 16, 8)
		switch {
		case i < 3:
			all = append(all, fixed(int(n)))
		case n < 16:
			all = append(all, symbol{int(n), 0, 15})
		default:
			all = append(all, symbol{int(n), 16, 255})
		}
	}
	return all
}

// ip4 replaces an address octet by octet, each by one of as many digits.
func (p *pseudonyms) ip4(t string) string {
	word, ok := octets(t)
	if !ok {
		return t
	}
	now, ok := p.four.replace(word)
	if !ok {
		return t
	}
	return fmt.Sprintf("%d.%d.%d.%d", now[0], now[1], now[2], now[3])
}

func octets(t string) (all []symbol, ok bool) {
	a, err := netip.ParseAddr(t)
	if err != nil || !a.Is4() {
		return nil, false
	}
	bytes := a.As4()
	loopback := a == netip.AddrFrom4([4]byte{127, 0, 0, 1})
	for i, b := range bytes {
		n := int(b)
		switch {
		case n == 0 || n == 255 || bytes[0] >= 224 || loopback || i == 0 && n == 127:
			all = append(all, fixed(n))
		case n < 10:
			all = append(all, symbol{n, 1, 9})
		case n < 100:
			all = append(all, symbol{n, 10, 99})
		case i == 0 && n < 127:
			all = append(all, symbol{n, 100, 126})
		case i == 0:
			all = append(all, symbol{n, 128, 223})
		default:
			all = append(all, symbol{n, 100, 254})
		}
	}
	return all, true
}

// ip6 replaces an address group by group, each by one of as many digits.
func (p *pseudonyms) ip6(a netip.Addr) string {
	now, ok := p.six.replace(groups(a))
	if !ok {
		return a.String()
	}
	var b [16]byte
	for i, n := range now {
		b[2*i], b[2*i+1] = byte(n>>8), byte(n)
	}
	return netip.AddrFrom16(b).WithZone(a.Zone()).String()
}

func groups(a netip.Addr) (all []symbol) {
	b := a.As16()
	kept := a.IsLoopback()
	for i := range 8 {
		n := int(b[2*i])<<8 | int(b[2*i+1])
		switch {
		case n == 0 || kept || i == 0 && n >= 0xfe00:
			all = append(all, fixed(n))
		case n < 0x10:
			all = append(all, symbol{n, 1, 0xf})
		case n < 0x100:
			all = append(all, symbol{n, 0x10, 0xff})
		case n < 0x1000:
			all = append(all, symbol{n, 0x100, 0xfff})
		case i == 0:
			all = append(all, symbol{n, 0x1000, 0xfdff})
		default:
			all = append(all, symbol{n, 0x1000, 0xffff})
		}
	}
	return all
}

// plain replaces a serial number or a GUID, character by character.
func (p *pseudonyms) plain(t *trie, s string) string {
	now, ok := t.replace(characters(s, t == &p.numbers))
	if !ok {
		return s
	}
	return runes(now)
}

func runes(all []int) string {
	b := make([]byte, len(all))
	for i, n := range all {
		b[i] = byte(n)
	}
	return string(b)
}

// characters are those of a word. A number keeps the first two, and of 20 the first six,
// so that it is no larger than 64 bits.
func characters(s string, number bool) (all []symbol) {
	kept := 2
	if len(s) == 20 {
		kept = 6
	}
	for i := range len(s) {
		c := s[i]
		if number && i < kept {
			all = append(all, fixed(int(c)))
			continue
		}
		all = append(all, character(c))
	}
	return all
}

func character(c byte) symbol {
	switch {
	case c >= '0' && c <= '9':
		return symbol{int(c), '0', '9'}
	case c >= 'a' && c <= 'z':
		return symbol{int(c), 'a', 'z'}
	case c >= 'A' && c <= 'Z':
		return symbol{int(c), 'A', 'Z'}
	}
	return fixed(int(c))
}
