// Package checksum reads the lists of digests that distributions publish next to their images.
package checksum

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"path"
	"strings"

	"github.com/sledctl/sledctl/host/fault"
)

// Digest is what a file must have, in hexadecimal and lower case: a SHA-256 or, by its length, a SHA-512. The zero
// Digest is any.
type Digest string

// Name is that of the function.
func (d Digest) Name() string {
	if len(d) == 2*sha512.Size {
		return "SHA-512"
	}
	return "SHA-256"
}

// SHA256 is the digest, if it is one; else it is empty.
func (d Digest) SHA256() string {
	if len(d) == 2*sha256.Size {
		return string(d)
	}
	return ""
}

// Of computes the digest of what it reads, of the same kind.
func (d Digest) Of(in io.Reader) (Digest, error) {
	var h hash.Hash = sha256.New()
	if len(d) == 2*sha512.Size {
		h = sha512.New()
	}
	_, err := io.Copy(h, in)
	return Digest(hex.EncodeToString(h.Sum(nil))), err
}

// Parse reads a digest.
func Parse(text string) (Digest, bool) {
	d := strings.ToLower(text)
	return Digest(d), (len(d) == 2*sha256.Size || len(d) == 2*sha512.Size) && strings.Trim(d, "0123456789abcdef") == ""
}

// NotListedError is a file that a list has no digest of.
type NotListedError struct{ File, List string }

// Error names both.
func (e *NotListedError) Error() string {
	return fmt.Sprintf("%s has no SHA-256 and no SHA-512 of %s", e.List, e.File)
}

func (*NotListedError) Kind() fault.Kind { return fault.NotFound }

// Hint says what is usual.
func (*NotListedError) Hint() string {
	return "find SHA256SUMS, SHA512SUMS or CHECKSUM next to the image; or give the digest itself with --sha256"
}

// ContradictionError is a list with two digests of one file.
type ContradictionError struct{ File, List string }

// Error names both.
func (e *ContradictionError) Error() string {
	return fmt.Sprintf("%s has more than one digest of %s", e.List, e.File)
}

func (*ContradictionError) Kind() fault.Kind { return fault.Refused }

// Hint says what is left.
func (*ContradictionError) Hint() string { return "give the digest of the right one with --sha256" }

// Find is the digest of a file in a list, whose name is for errors. Lines are those of sha256sum(1) and sha512sum(1), and of
// their option --tag, which BSD's have, too:
//
//	HEX  NAME, HEX *NAME, SHA256 (NAME) = HEX
//
// Of a path the last part counts. What else is there, such as a signature around the list, counts for nothing; nor does a digest
// of another kind. Errors: *NotListedError, *ContradictionError.
func Find(text, list, file string) (Digest, error) {
	var found Digest
	for line := range strings.Lines(text) {
		name, d, ok := parseLine(strings.TrimSpace(line))
		if !ok || path.Base(name) != file {
			continue
		}
		switch {
		case found == "" || len(d) > len(found):
			found = d
		case len(d) == len(found) && d != found:
			return "", &ContradictionError{File: file, List: list}
		}
	}
	if found == "" {
		return "", &NotListedError{File: file, List: list}
	}
	return found, nil
}

func parseLine(line string) (name string, d Digest, ok bool) {
	if kind, rest, tagged := strings.Cut(line, " ("); tagged && (kind == "SHA256" || kind == "SHA512") {
		i := strings.LastIndex(rest, ") = ")
		if i < 0 {
			return "", "", false
		}
		d, ok = Parse(rest[i+len(") = "):])
		return rest[:i], d, ok && d.Name() == kind[:3]+"-"+kind[3:]
	}
	hex, name, cut := strings.Cut(line, " ")
	d, ok = Parse(hex)
	name = strings.TrimPrefix(strings.TrimLeft(name, " "), "*")
	return name, d, ok && cut && name != ""
}
