package format

import (
	"bytes"
	"strconv"
)

// Ending is what stands behind the last line of a file that verifies.
type Ending int

// The endings.
const (
	EndComplete Ending = iota // nothing
	EndBare                   // nothing, but that line has lost its newline, or has another byte there
	EndTorn                   // the beginning of the next line: its writer was cut off
	EndDamaged                // something that no writer leaves
)

// classify returns what rest is, which stands behind line seq of an epoch. A power
// cut leaves the beginning of one append and nothing else. False: there were
// more lines, so that the file is not what it was somewhere before its end.
func classify(rest []byte, seq, epoch uint64) (end Ending, ok bool) {
	switch {
	case len(rest) == 0:
		return EndComplete, true
	case isTorn(rest, seq+1, epoch):
		return EndTorn, true
	case holdsLaterLine(rest):
		return EndDamaged, false
	}
	return EndDamaged, true
}

// isTorn reports whether data is how line seq may begin, and not all of it.
func isTorn(data []byte, seq, epoch uint64) bool {
	if f, ok := cutLine(data); ok && wholeFacts(f.facts) {
		return false // all of it is there, and its hash is not right
	}
	s := &prefix{data, true}
	s.literal(openHash)
	s.form("hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh")
	s.literal(openSeq + strconv.FormatUint(seq, 10))
	s.literal(openEpoch)
	n, whole := s.number()
	if whole && n < epoch {
		return false
	}
	s.literal(openTime)
	s.form("0000-00-00T00:00:00.000000Z")
	s.literal(openFacts + openKey)
	if whole && n > epoch {
		s.literal(MembersKey + openValue)
	}
	return s.ok && !bytes.ContainsFunc(s.rest, func(r rune) bool { return r < ' ' })
}

func wholeFacts(facts []byte) bool {
	for len(facts) > 0 {
		var ok bool
		if _, _, facts, ok = cutFact(facts); !ok {
			return false
		}
	}
	return true
}

// prefix compares text with what it may begin with, as far as it goes.
type prefix struct {
	rest []byte
	ok   bool
}

func (p *prefix) take(n int) []byte {
	n = min(n, len(p.rest))
	taken := p.rest[:n]
	p.rest = p.rest[n:]
	return taken
}

func (p *prefix) literal(text string) {
	got := p.take(len(text))
	p.ok = p.ok && string(got) == text[:len(got)]
}

// form is text in which 0 is any digit, and h any hexadecimal one.
func (p *prefix) form(form string) {
	for i, c := range p.take(len(form)) {
		digit := c >= '0' && c <= '9'
		switch form[i] {
		case '0':
			p.ok = p.ok && digit
		case 'h':
			p.ok = p.ok && (digit || c >= 'a' && c <= 'f')
		default:
			p.ok = p.ok && c == form[i]
		}
	}
}

// number returns false for a number that may have more digits.
func (p *prefix) number() (n uint64, whole bool) {
	if len(p.rest) == 0 {
		return 0, false
	}
	n, rest, ok := cutNumber(p.rest, "")
	p.rest, p.ok = rest, p.ok && ok
	return n, ok && len(rest) > 0
}

// holdsLaterLine reports whether rest holds a line that does not stand at its
// beginning: that is only written behind one that was flushed.
func holdsLaterLine(rest []byte) bool {
	for at := 0; ; at++ {
		i := bytes.Index(rest[at:], []byte(openSeq))
		if i < 0 {
			return false
		}
		if at += i; at != hashEnd && looksLikeLine(rest[at:]) {
			return true
		}
	}
}

// looksLikeLine reports whether data continues as a line does behind its hash.
func looksLikeLine(data []byte) bool {
	_, data, ok := cutNumber(data, openSeq)
	if ok {
		_, data, ok = cutNumber(data, openEpoch)
	}
	return ok && bytes.HasPrefix(data, []byte(openTime))
}

// begun is the number of the line that rest begins with; 0: it has none.
func begun(rest []byte) uint64 {
	if len(rest) < hashEnd {
		return 0
	}
	n, _, _ := cutNumber(rest[hashEnd:], openSeq)
	return n
}

// readOn is the number of the last line behind a break that the line before it
// proves; 0: no line is proved.
func readOn(rest []byte) (last uint64) {
	var prev []byte
	chain := newChain()
	for line := range bytes.Lines(rest) {
		line = bytes.TrimSuffix(line, []byte{'\n'})
		f, ok := cutLine(line)
		if ok && prev != nil && bytes.Equal(f.hash, chain.hash(prev, line[hashEnd:])) {
			last = f.seq
		}
		prev = nil
		if len(line) >= hashEnd && bytes.HasPrefix(line, []byte(openHash)) {
			prev = line[len(openHash):hashEnd]
		}
	}
	return last
}
