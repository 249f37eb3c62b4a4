// Package key gives the keys of encrypted disks: it takes a secret of an epoch
// from a source (a file, a command, or the public one of development), derives
// from it the key of each disk, and lends that to zfs in a file that is there
// for the time of one command.
//
// No key or secret can be printed: formatting one, as JSON or in a log too,
// says whose it is. The bytes leave this package only for the file.
package key

import (
	"crypto/hkdf"
	"crypto/sha3"
	"fmt"
	"log/slog"
)

// Size is the length of secrets, salts and keys in bytes.
const Size = 32

// Identity is the text that a disk's key is derived from: its vendor, model and
// serial number, one behind the other, as the sled agent has it
// (oxidecomputer/omicron key-manager). It is kept with the dataset and used
// again from there, so that a disk that calls itself something else one day can
// still be read.
func Identity(vendor, model, serial string) string { return vendor + model + serial }

// Secret is what the keys of one epoch are derived from.
type Secret struct {
	Epoch uint64
	// The bytes are in closures, here and in Key: package fmt follows pointers,
	// and asks no method for what lies in a field that is not exported.
	reveal func() (secret, salt [Size]byte)
}

func newSecret(epoch uint64, secret, salt [Size]byte) Secret {
	return Secret{Epoch: epoch, reveal: func() ([Size]byte, [Size]byte) { return secret, salt }}
}

// Key is the key of one disk in one epoch, with the file that holds it while it is used.
type Key struct {
	Epoch    uint64
	identity string
	dir      string
	reveal   func() [Size]byte
}

// Derive gives the key of a disk, whose files will lie in dir: HKDF (RFC 5869)
// with SHA3-256, the salt and the secret of the epoch, and the info "U.2-zfs-"
// and the identity (oxidecomputer/omicron key-manager).
//
// Guess keys-derived-as-the-agent: keys are the sled agent's: HKDF-SHA3-256 with the info
// "U.2-zfs-", vendor, model and serial number.
// Check: load the key of a disk that an agent without trust quorum has encrypted:
// `storage.key = "development"`
func (s Secret) Derive(identity, dir string) (Key, error) {
	if s.reveal == nil {
		return Key{}, fmt.Errorf("%v: there is none", s)
	}
	secret, salt := s.reveal()
	derived, err := hkdf.Key(sha3.New256, secret[:], salt[:], "U.2-zfs-"+identity, Size)
	if err != nil {
		return Key{}, fmt.Errorf("derive the key of %s: %w", identity, err)
	}
	key := [Size]byte(derived)
	return Key{Epoch: s.Epoch, identity: identity, dir: dir, reveal: func() [Size]byte { return key }}, nil
}

// Identity is the text that it was derived from.
func (k Key) Identity() string { return k.identity }

// Equal says whether two keys are the same in all that tells them apart.
func (k Key) Equal(l Key) bool {
	same := k.reveal == nil && l.reveal == nil || k.reveal != nil && l.reveal != nil && k.reveal() == l.reveal()
	return same && k.Epoch == l.Epoch && k.identity == l.identity && k.dir == l.dir
}

// String says whose key it is.
func (k Key) String() string { return fmt.Sprintf("key of %s, epoch %d", k.identity, k.Epoch) }

// Format is String for every verb.
func (k Key) Format(f fmt.State, _ rune) { fmt.Fprint(f, k.String()) }

// MarshalText is String.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// LogValue is String.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// String returns the epoch, never the secret.
func (s Secret) String() string { return fmt.Sprintf("secret of epoch %d", s.Epoch) }

// Format is String for every verb.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// MarshalText is String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue is String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
