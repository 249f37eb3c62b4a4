package key

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func counting() (s [Size]byte) {
	for i := range s {
		s[i] = byte(i)
	}
	return s
}

func bytesOf(k Key) []byte {
	b := k.reveal()
	return b[:]
}

func secretOf(s Secret) []byte {
	secret, _ := s.reveal()
	return secret[:]
}

func saltOf(s Secret) [Size]byte {
	_, salt := s.reveal()
	return salt
}

func zeros() [Size]byte { return [Size]byte{} }

func unhex(t *testing.T, text string) (s [Size]byte) {
	t.Helper()
	if n, err := hex.Decode(s[:], []byte(text)); err != nil || n != Size {
		t.Fatalf("%d bytes, %v", n, err)
	}
	return s
}

// The keys were computed by Python's hmac and hashlib.sha3_256 after RFC 5869.
func TestDerivation(t *testing.T) {
	development := newSecret(0, [Size]byte(bytes.Repeat([]byte{0x1d}, Size)), [Size]byte{})
	// The salt is SHA3-256 of the bytes 0 to 15, as of a rack's id.
	salted := newSecret(7, counting(), unhex(t, "39462d2a2320f8da572a97b0b39473d4312e0228b23e2c2fe0ae9b6c67f2343c"))
	for _, c := range []struct {
		secret                Secret
		vendor, model, serial string
		want                  string
	}{
		{development, "1b96", "WUS4C6432DSP3X3", "A079E3F8", "24af6832a6561d4bcad6cd5a3c1f69285816df05ee80fd30ea0cf2fcdb005c73"},
		{development, "synthetic-vendor", "synthetic-model-U2", "synthetic-serial-0", "c408218e864c980ad879c23a3d230e97c0c6968eb7642070ae61a7d8f6917430"},
		{development, "ab", "c", "d", "de89576a64cdf85b68ee94671c570d33b1694a0786adaec364f2b92559c0d524"},
		{salted, "1b96", "WUS4C6432DSP3X3", "A079E3F8", "a6f28b001c6efb7a465e19855a269e46d14cc94b86a1c5e4dce2fe08c5326eab"},
	} {
		k, err := c.secret.Derive(Identity(c.vendor, c.model, c.serial), "/run")
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(bytesOf(k)); got != c.want || k.Epoch != c.secret.Epoch || k.Identity() != c.vendor+c.model+c.serial {
			t.Errorf("%v: %s, want %s", k, got, c.want)
		}
	}
	if k, err := (Secret{}).Derive("a", "/run"); err == nil {
		t.Errorf("%v of no secret", k)
	}
}

// holder has a key where fmt cannot ask it how to be printed.
type holder struct {
	key    Key
	secret Secret
	Key    Key
}

func TestNothingPrintsAKey(t *testing.T) {
	s := newSecret(3, counting(), [Size]byte{})
	k, err := s.Derive("disk", "/run")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	logger.Info("x", "key", k, "secret", s, "pointer", &k, "holder", holder{k, s, k})
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "key", k, "secret", s, "holder", holder{k, s, k})
	printed := []string{log.String()}
	for _, value := range []any{k, s, &k, &s, holder{k, s, k}, &holder{k, s, k}, []Key{k}, map[string]Secret{"a": s}, ErrNoEpoch} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t"} {
			printed = append(printed, fmt.Sprintf(verb, value))
		}
		text, err := json.Marshal(value)
		if err != nil {
			t.Error(err)
		}
		printed = append(printed, string(text))
	}
	for _, text := range printed {
		for _, b := range [][]byte{bytesOf(k), secretOf(s)} {
			// In any base, with any separator: four bytes in a row are enough.
			for _, form := range []string{"%x", "%X", "% x", "%d", "%s", "%q"} {
				shown := strings.Trim(fmt.Sprintf(form, b[4:8]), "[]\"")
				if strings.Contains(text, shown) {
					t.Errorf("%q shows %q", text, shown)
				}
			}
		}
	}
	if got := fmt.Sprintf("%v; %s", k, s); got != "key of disk, epoch 3; secret of epoch 3" {
		t.Error(got)
	}
}

func TestKeysAreComparedByWhatTheyAre(t *testing.T) {
	s, other := newSecret(3, counting(), [Size]byte{}), newSecret(3, [Size]byte{1}, [Size]byte{})
	derive := func(s Secret, identity, dir string) Key {
		k, err := s.Derive(identity, dir)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	k := derive(s, "a", "/run")
	if !cmp.Equal(k, derive(s, "a", "/run")) || !cmp.Equal(Key{}, Key{}) {
		t.Error("a key differs from itself")
	}
	for _, l := range []Key{derive(other, "a", "/run"), derive(s, "b", "/run"), derive(s, "a", "/tmp"), {Epoch: 3, identity: "a", dir: "/run"}} {
		if cmp.Equal(k, l) {
			t.Errorf("%v is %v", k, l)
		}
	}
}
