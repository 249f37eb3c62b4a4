package format

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"strconv"
	"time"
)

// Fact is one key with its value. The last value of a key counts.
type Fact struct {
	Key   string          // printable ASCII without quote and backslash, at most 512 bytes; not "members"
	Value json.RawMessage // any JSON; nil and null remove the key
}

// A line is cut by position: its fields always stand in this order, without
// blanks, so that reading one costs its hash and little more.
//
//	{"hash":"H","seq":N,"epoch":N,"time":"T","facts":[{"key":"K","value":V},…]}
//
// H is half of SHA-256 over the previous line's H and everything behind this
// line's H: checksum and chain in one.
const (
	openHash  = `{"hash":"`
	openSeq   = `","seq":`
	openEpoch = `,"epoch":`
	openTime  = `,"time":"`
	openFacts = `","facts":[`
	openKey   = `{"key":"`
	openValue = `","value":`

	hashLen  = 32 // hexadecimal digits
	hashEnd  = len(openHash) + hashLen
	timeForm = "2006-01-02T15:04:05.000000Z"
	maxKey   = 512
)

// fields is a line, cut. The slices lie in the line.
type fields struct {
	hash       []byte
	seq, epoch uint64
	time       []byte
	facts      []byte // {"key":…},{"key":…}
}

// cutLine cuts a line, given without its newline. It returns false for anything
// that is not built as a line is, and does not check the hash.
func cutLine(line []byte) (f fields, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(openHash))
	if !ok || len(rest) < hashLen {
		return f, false
	}
	f.hash, rest = rest[:hashLen], rest[hashLen:]
	if f.seq, rest, ok = cutNumber(rest, openSeq); !ok {
		return f, false
	}
	if f.epoch, rest, ok = cutNumber(rest, openEpoch); !ok {
		return f, false
	}
	if rest, ok = bytes.CutPrefix(rest, []byte(openTime)); !ok || len(rest) < len(timeForm) {
		return f, false
	}
	f.time, rest = rest[:len(timeForm)], rest[len(timeForm):]
	if rest, ok = bytes.CutPrefix(rest, []byte(openFacts)); !ok {
		return f, false
	}
	f.facts, ok = bytes.CutSuffix(rest, []byte("]}"))
	return f, ok
}

// cutNumber cuts prefix and a number without leading zeros.
func cutNumber(data []byte, prefix string) (n uint64, rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(data, []byte(prefix))
	if !ok {
		return 0, nil, false
	}
	i := 0
	for i < len(rest) && rest[i] >= '0' && rest[i] <= '9' {
		n = n*10 + uint64(rest[i]-'0')
		i++
	}
	if i == 0 || i > 19 || i > 1 && rest[0] == '0' {
		return 0, nil, false
	}
	return n, rest[i:], true
}

// cutFact cuts the first fact off facts.
func cutFact(facts []byte) (key, value, rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(facts, []byte(openKey))
	if !ok {
		return nil, nil, nil, false
	}
	i := bytes.IndexByte(rest, '"') // keys hold no quote and no escape
	if i < 1 {
		return nil, nil, nil, false
	}
	key = rest[:i]
	if rest, ok = bytes.CutPrefix(rest[i:], []byte(openValue)); !ok {
		return nil, nil, nil, false
	}
	end := valueEnd(rest)
	if end <= 0 || end == len(rest) || rest[end] != '}' {
		return nil, nil, nil, false
	}
	value, rest = rest[:end:end], rest[end+1:]
	if len(rest) == 0 {
		return key, value, nil, true
	}
	if rest[0] != ',' || len(rest) == 1 {
		return nil, nil, nil, false
	}
	return key, value, rest[1:], true
}

// valueEnd is the length of the JSON value that data opens with, or -1. It
// trusts the hash for what is inside and looks for the end only.
func valueEnd(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			n := stringEnd(data[i:])
			if n < 0 {
				return -1
			}
			if i += n - 1; depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i // the end of a number or a word
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return -1
}

// stringEnd is the length of the JSON string that data opens with, or -1. Most are so
// short that to call for a search costs more than it saves.
func stringEnd(data []byte) int {
	const short = 48
	for i := 1; i < min(len(data), short); i++ {
		switch data[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	for i := 1; ; i++ {
		n := bytes.IndexByte(data[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		escapes := 0
		for data[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}

// chain makes the hashes of lines, one behind the other, without allocating.
type chain struct {
	sha hash.Hash
	sum [sha256.Size]byte
	hex [hashLen]byte
}

func newChain() *chain { return &chain{sha: sha256.New()} }

// hash is half of SHA-256 over the parts, in hexadecimal digits. It is
// overwritten by the next call.
func (c *chain) hash(parts ...[]byte) []byte {
	c.sha.Reset()
	for _, part := range parts {
		c.sha.Write(part)
	}
	hex.Encode(c.hex[:], c.sha.Sum(c.sum[:0])[:hashLen/2])
	return c.hex[:]
}

// Sum is half of SHA-256 over the parts, in hexadecimal digits.
func Sum(parts ...[]byte) string { return string(newChain().hash(parts...)) }

// firstHash is what the first line of a ledger takes for the hash before it.
func firstHash(ledger string) string {
	return Sum([]byte("sledctl ledger " + ledger))
}

// EncodeLine makes the line that follows prev, with its newline. The facts are those
// of CheckFacts.
func EncodeLine(prev Head, epoch uint64, now time.Time, facts []Fact) []byte {
	var b bytes.Buffer
	b.WriteString(openHash)
	b.Write(make([]byte, hashLen))
	b.WriteString(openSeq + strconv.FormatUint(prev.Seq+1, 10))
	b.WriteString(openEpoch + strconv.FormatUint(epoch, 10))
	b.WriteString(openTime + now.UTC().Format(timeForm) + openFacts)
	for i, f := range facts {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(openKey + f.Key + openValue)
		b.Write(f.Value)
		b.WriteByte('}')
	}
	b.WriteString("]}")
	line := b.Bytes()
	copy(line[len(openHash):], newChain().hash([]byte(prev.Hash), line[hashEnd:]))
	return append(line, '\n')
}

// CheckFacts returns the facts as they are written: values compact, on one line, a
// removal as null.
func CheckFacts(facts []Fact) ([]Fact, error) {
	out := make([]Fact, len(facts))
	for i, f := range facts {
		if err := checkKey(f.Key); err != nil {
			return nil, err
		}
		out[i] = Fact{f.Key, json.RawMessage("null")}
		if f.Value == nil {
			continue
		}
		var b bytes.Buffer
		if err := json.Compact(&b, f.Value); err != nil {
			return nil, fmt.Errorf("value of %q is not JSON: %w", f.Key, err)
		}
		out[i].Value = b.Bytes()
	}
	return out, nil
}

// checkKey keeps keys such that they need no escape in JSON.
func checkKey(key string) error {
	if key == "" || len(key) > maxKey {
		return fmt.Errorf("key %.20q has %d bytes: 1 to %d are possible", key, len(key), maxKey)
	}
	if key == MembersKey {
		return fmt.Errorf("key %q is the ledger's own", key)
	}
	for i := range len(key) {
		if c := key[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return fmt.Errorf("key %q: %q cannot stand in a key", key, c)
		}
	}
	return nil
}
