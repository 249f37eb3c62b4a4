package format

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// format is the version of the file's layout. A newer one is not read.
const format = 1

// Header is the first line of a file. It differs between copies, so it stands
// outside the chain of lines and carries a hash of its own.
type Header struct {
	Format int    `json:"format"`
	Ledger string `json:"ledger"`
	Copy   string `json:"copy"`
	Base   Base   `json:"base"`
}

// Base says where the chain of lines starts. Up to Seq, a rewrite has left
// lines out; those it kept follow the header and no longer form a chain.
type Base struct {
	Seq  uint64 `json:"seq"`  // of the last line that the rewrite saw
	Hash string `json:"hash"` // of that line
	Kept int    `json:"kept"` // lines up to Seq that are here
	Sum  string `json:"sum"`  // half of SHA-256 over those lines
	Left int    `json:"left"` // lines up to Seq that are not here
	// Digest is half of SHA-256 over the digest before the last rewrite and the
	// lines that it left out.
	Digest string `json:"digest"`
}

// encode is the header as a line: its hash first, as in all lines.
func (h Header) encode() []byte {
	body, err := json.Marshal(h)
	if err != nil {
		panic(err) // strings and numbers only
	}
	line := make([]byte, 0, hashEnd+len(body)+3)
	line = append(line, openHash...)
	line = append(line, make([]byte, hashLen)...)
	line = append(line, `",`...)
	line = append(line, body[1:]...)
	copy(line[len(openHash):], newChain().hash(line[hashEnd:]))
	return append(line, '\n')
}

// CutHeader reads the header that data opens with, and returns its length. An error is a *Damage.
func CutHeader(data []byte) (h Header, size int, err error) {
	end := bytes.IndexByte(data, '\n')
	switch {
	case len(data) == 0:
		return h, 0, &Damage{Line: 1, Reason: "the file is empty"}
	case end < hashEnd || !bytes.HasPrefix(data, []byte(openHash)):
		return h, 0, &Damage{Line: 1, Reason: "the first line is no header of a ledger"}
	}
	if err := json.Unmarshal(data[:end], &h); err == nil && h.Format > format {
		return h, 0, &Damage{Line: 1, Reason: fmt.Sprintf("the file has format %d; this sledctl knows formats up to %d", h.Format, format), Newer: true}
	}
	if !bytes.Equal(data[len(openHash):hashEnd], newChain().hash(data[hashEnd:end])) {
		return h, 0, &Damage{Line: 1, Reason: "the header does not match its hash"}
	}
	if err := json.Unmarshal(data[:end], &h); err != nil {
		return h, 0, &Damage{Line: 1, Reason: fmt.Sprintf("the header is not JSON: %v", err)}
	}
	if h.Format != format || len(h.Base.Hash) != hashLen || h.Base.Kept < 0 || h.Ledger == "" || h.Copy == "" {
		return h, 0, &Damage{Line: 1, Reason: "the header is incomplete"}
	}
	return h, end + 1, nil
}
