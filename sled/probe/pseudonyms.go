package probe

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"sync"

	"github.com/sledctl/sledctl/host/fault"
)

// What of a recording is replaced, and what is kept.
//
// Replaced: UUIDs; the last three bytes of MAC addresses; IP addresses; serial numbers; the
// GUIDs of pools and datasets; names of zones, datasets, links, address objects and the
// sled, the values in zones' configurations, and directories. Kept: words of the
// vocabulary, so also a name that consists of them, such as rpool, net0 or vnic_propolis3;
// 127.0.0.1, netmasks, link-local and multicast prefixes; numbers and times.

//go:embed vocabulary.txt
var vocabularyText string

// errKept is the error of a recording in which a name is left: it is not written.
var errKept = fault.New(fault.Failed, "the recording cannot be made pseudonymous")

// pseudonymous is an archive with pseudonyms. Of the salts that follow from the given one
// it takes the first that gives no pseudonym which is also a name of the sled.
func pseudonymous(a Archive, salt []byte, names ...string) (Archive, error) {
	const tries, written = 250, 8 // only so many are worth the writing
	left, wrote := error(errKept), 0
	p := newPseudonyms()
	p.collect(a, names)
	for n := range tries {
		sum := sha256.Sum256(append(bytes.Clone(salt), byte(n)))
		for _, t := range p.tries() {
			t.salted(sum[:])
		}
		if !p.apart() {
			continue
		}
		if wrote++; wrote > written {
			break
		}
		replaced := p.archive(a)
		if left = p.check(replaced); left == nil {
			return replaced, nil
		}
	}
	return Archive{}, left
}

// pseudonyms are those of one archive.
type pseudonyms struct {
	vocabulary                                           map[string]bool
	uuids, macs, four, six, serials, numbers, words, odd trie
	names                                                map[string]bool // whole words that are replaced
	serial                                               map[string]bool
	number                                               map[string]bool
	heads                                                map[string]bool // the first 8 digits of UUIDs
	seen                                                 map[string]bool // addresses and UUIDs that are replaced
	all                                                  *regexp.Regexp  // serial numbers; nil: none
}

func newPseudonyms() *pseudonyms {
	p := &pseudonyms{
		vocabulary: map[string]bool{}, names: map[string]bool{}, serial: map[string]bool{}, number: map[string]bool{},
		heads: map[string]bool{}, seen: map[string]bool{},
	}
	for line := range strings.Lines(vocabularyText) {
		if !strings.HasPrefix(line, "#") {
			for _, word := range strings.Fields(line) {
				p.vocabulary[word] = true
			}
		}
	}
	return p
}

func (p *pseudonyms) tries() []*trie {
	return []*trie{&p.uuids, &p.macs, &p.four, &p.six, &p.serials, &p.numbers, &p.words, &p.odd}
}

// apart says whether no pseudonym is also a name of the sled.
func (p *pseudonyms) apart() bool {
	taken := map[string]bool{}
	for name := range p.names {
		if now := p.name(name); !p.stays(name) && (p.names[now] || taken[now]) {
			return false
		} else {
			taken[now] = true
		}
	}
	for old := range p.seen {
		if p.seen[p.tokens(old)] {
			return false
		}
	}
	return true
}

const (
	uuidForm = `[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}`
	macForm  = `[0-9A-Fa-f]{1,2}(?::[0-9A-Fa-f]{1,2}){5}`
	sixForm  = `[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}`
	escaped  = `[0-9A-Fa-f]{0,4}(?:\\:[0-9A-Fa-f]{0,4}){2,7}` // as dladm and ipadm print for programs
	fourForm = `[0-9]{1,3}(?:\.[0-9]{1,3}){3}`
	wordForm = `[0-9A-Za-z_][0-9A-Za-z_.-]*`
)

// forms are the shapes that are looked for. Other commands do not wait for them.
type forms struct{ uuid, head, disk, four, word, token, rest, mac, part *regexp.Regexp }

var shape = sync.OnceValue(func() forms {
	return forms{
		uuid:  regexp.MustCompile(uuidForm),
		head:  regexp.MustCompile(`[0-9a-f]{8}`),
		disk:  regexp.MustCompile(`^(c[0-9]+t)([0-9A-F]{8,})(d[0-9]+.*)$`),
		four:  regexp.MustCompile(`^` + fourForm + `$`),
		word:  regexp.MustCompile(wordForm),
		token: regexp.MustCompile(escaped + `|` + sixForm + `|` + wordForm),
		rest:  regexp.MustCompile(`^[.-]*[0-9A-Za-z_]`),
		mac:   regexp.MustCompile(`^` + macForm + `$`),
		part:  regexp.MustCompile(`[0-9A-Za-z]+`),
	}
})

func (p *pseudonyms) archive(a Archive) Archive {
	replaced := a
	replaced.Answers = make([]Answer, len(a.Answers))
	for i, one := range a.Answers {
		b := one
		b.Argv = make([]string, len(one.Argv))
		for k, arg := range one.Argv {
			b.Argv[k] = p.text(arg)
		}
		b.Argv[0] = one.Argv[0]
		b.Stdout, b.Stderr = []byte(p.text(string(one.Stdout))), []byte(p.text(string(one.Stderr)))
		b.Failed = p.text(one.Failed)
		replaced.Answers[i] = b
	}
	return replaced
}

// text replaces whatever of the sled is in a text.
func (p *pseudonyms) text(s string) string {
	if p.all == nil {
		return p.tokens(s)
	}
	var b strings.Builder
	for {
		at := p.all.FindStringIndex(s)
		if at == nil {
			return b.String() + p.tokens(s)
		}
		b.WriteString(p.tokens(s[:at[0]]))
		b.WriteString(p.plain(&p.serials, s[at[0]:at[1]]))
		s = s[at[1]:]
	}
}

func (p *pseudonyms) tokens(s string) string {
	var b strings.Builder
	from := 0
	for _, at := range tokensIn(s) {
		b.WriteString(s[from:at[0]])
		if t := s[at[0]:at[1]]; strings.Contains(t, ":") {
			b.WriteString(p.address(t))
		} else {
			b.WriteString(p.word(t))
		}
		from = at[1]
	}
	return b.String() + s[from:]
}

// tokensIn are the places of words, and of what may be a MAC or an IPv6 address. None ends
// within a word: the first letters of a name behind a column look like a group of an address.
func tokensIn(s string) (all [][2]int) {
	for from := 0; ; {
		at := shape().token.FindStringIndex(s[from:])
		if at == nil {
			return all
		}
		begin, end := from+at[0], from+at[1]
		if colon := strings.Index(s[begin:end], ":"); colon >= 0 && shape().rest.MatchString(s[end:]) {
			end = begin + max(colon, 1)
		}
		all = append(all, [2]int{begin, end})
		from = end
	}
}

func tokensOf(s string) (all []string) {
	for _, at := range tokensIn(s) {
		all = append(all, s[at[0]:at[1]])
	}
	return all
}

// address replaces a MAC or an IPv6 address, with or without backslashes. It is neither:
// its parts are words.
func (p *pseudonyms) address(t string) string {
	plain := strings.ReplaceAll(t, `\`, "")
	now := plain
	a, err := netip.ParseAddr(plain)
	switch {
	case shape().mac.MatchString(plain):
		now = p.mac(plain)
	case err == nil && a.Is6():
		now = p.ip6(a)
	default:
		return shape().word.ReplaceAllStringFunc(t, p.word)
	}
	if plain != t {
		now = strings.ReplaceAll(now, ":", `\:`)
	}
	return now
}

// word replaces a word that is a name, an IPv4 address or a disk, or has a UUID in it.
func (p *pseudonyms) word(t string) string {
	switch {
	case shape().four.MatchString(t):
		return p.ip4(t)
	case p.number[t]:
		return p.plain(&p.numbers, t)
	case p.names[t]:
		return p.name(t)
	case shape().disk.MatchString(t):
		parts := shape().disk.FindStringSubmatch(t)
		return parts[1] + p.plain(&p.serials, parts[2]) + parts[3]
	case strings.HasSuffix(t, "."):
		return p.word(strings.TrimSuffix(t, ".")) + "."
	}
	return p.ids(t)
}

// ids replaces UUIDs, and what begins one.
func (p *pseudonyms) ids(t string) string {
	t = shape().uuid.ReplaceAllStringFunc(t, p.uuid)
	return shape().head.ReplaceAllStringFunc(t, func(h string) string {
		if !p.heads[h] || strings.Contains(t, h+"-") {
			return h
		}
		return p.uuid(h)
	})
}

// name replaces a name: its UUIDs as UUIDs, words of the vocabulary not at all, the rest
// character by character.
func (p *pseudonyms) name(t string) string {
	if p.stays(t) {
		return t
	}
	for _, words := range []*trie{&p.words, &p.odd} {
		now, ok := words.replace(p.nameCharacters(t))
		if replaced := p.overlaid(t, runes(now)); ok && replaced != t {
			return replaced
		}
	}
	return t
}

// overlaid puts the replaced UUIDs of a name where they stood.
func (p *pseudonyms) overlaid(old, now string) string {
	b := []byte(now)
	for _, at := range p.idsIn(old) {
		copy(b[at[0]:at[1]], p.uuid(old[at[0]:at[1]]))
	}
	return string(b)
}

// idsIn are the places of UUIDs, and of what begins one.
func (p *pseudonyms) idsIn(t string) [][]int {
	if all := shape().uuid.FindAllStringIndex(t, -1); all != nil {
		return all
	}
	var all [][]int
	for _, at := range shape().head.FindAllStringIndex(t, -1) {
		if p.heads[t[at[0]:at[1]]] {
			all = append(all, at)
		}
	}
	return all
}

// nameCharacters are those of a name, of which some stay. An operator's name like dev-1 has none
// that do: what is left of it would be a digit, which tells hardly any names apart.
func (p *pseudonyms) nameCharacters(t string) []symbol {
	all, ids := characters(t, false), p.idsIn(t)
	for _, at := range ids {
		keep(all, at[0], at[1])
	}
	chosen := len(ids) == 0 && strings.Contains(t, "-")
	for _, at := range shape().part.FindAllStringIndex(t, -1) {
		if part := t[at[0]:at[1]]; !chosen && (p.vocabulary[part] || p.vocabulary[strings.TrimRight(part, "0123456789")]) {
			keep(all, at[0], at[1])
		}
	}
	if p.vocabulary[t] {
		keep(all, 0, len(all))
	}
	return all
}

func keep(all []symbol, from, to int) {
	for i := from; i < to; i++ {
		all[i] = fixed(all[i].value)
	}
}

// check looks for what was to be replaced.
func (p *pseudonyms) check(a Archive) error {
	var text bytes.Buffer
	for _, one := range a.Answers {
		fmt.Fprintf(&text, "%s\n%s\n%s\n%s\n", strings.Join(one.Argv, " "), one.Stdout, one.Stderr, one.Failed)
	}
	words := map[string]bool{}
	for _, w := range shape().word.FindAllString(text.String(), -1) { // whatever is taken for an address
		if words[w] = true; strings.Trim(w, "0123456789abcdefABCDEF") == "" {
			delete(words, w) // a group
		}
	}
	for _, t := range tokensOf(text.String()) {
		t = strings.ReplaceAll(t, `\`, "")
		words[t] = true
		if _, err := netip.ParseAddr(t); err == nil || shape().mac.MatchString(t) {
			continue // its groups are no words
		}
		for _, w := range shape().word.FindAllString(t, -1) {
			words[w] = true
		}
	}
	found := 0
	for name := range p.names {
		if words[name] && !p.stays(name) {
			found++
		}
	}
	for id := range p.seen {
		if words[id] || len(id) >= 20 && bytes.Contains(text.Bytes(), []byte(id)) {
			found++
		}
	}
	for s := range p.serial {
		if bytes.Contains(text.Bytes(), []byte(s)) {
			found++
		}
	}
	if found > 0 {
		return fmt.Errorf("%w: %d names, addresses or serial numbers are left", errKept, found)
	}
	return nil
}

// stays says whether a name consists of words that stay.
func (p *pseudonyms) stays(name string) bool {
	for _, s := range p.nameCharacters(name) {
		if s.lo != s.hi {
			return false
		}
	}
	return len(p.idsIn(name)) == 0
}
