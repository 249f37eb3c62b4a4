package checksum

import (
	"errors"
	"strings"
	"testing"
)

// The digest of a file is found in lists as distributions publish them.
func TestFind(t *testing.T) {
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	long := strings.Repeat("C", 128)
	for name, c := range map[string]struct {
		text string
		want string // empty: none
		fail error
	}{
		"sha256sum":           {text: b + "  other.img\n" + a + "  disk.img\n", want: a},
		"binary":              {text: a + " *disk.img\n", want: a},
		"of a path":           {text: a + "  ./images/disk.img\r\n", want: a},
		"BSD":                 {text: "SHA256 (disk.img) = " + a + "\n", want: a},
		"BSD, a name with )":  {text: "SHA256 (x) = y) = " + b + "\nSHA256 (disk.img) = " + a, want: a},
		"in capitals":         {text: strings.ToUpper(a) + "  disk.img", want: a},
		"SHA-512":             {text: long + "  disk.img", want: strings.ToLower(long)},
		"the better of two":   {text: a + "  disk.img\n" + long + "  disk.img\n" + a + "  disk.img", want: strings.ToLower(long)},
		"signed":              {text: "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n# disk.img: 12 bytes\nSHA256 (disk.img) = " + a + "\n-----BEGIN PGP SIGNATURE-----\n", want: a},
		"twice the same":      {text: a + "  disk.img\n" + a + "  x/disk.img\n", want: a},
		"two of one":          {text: a + "  disk.img\n" + b + "  disk.img\n", fail: &ContradictionError{}},
		"of another":          {text: a + "  disk.img.xz\n", fail: &NotListedError{}},
		"MD5":                 {text: a[:32] + "  disk.img\nMD5 (disk.img) = " + a[:32], fail: &NotListedError{}},
		"one digit too few":   {text: a[1:] + "  disk.img\n", fail: &NotListedError{}},
		"no hexadecimal":      {text: "g" + a[1:] + "  disk.img\n", fail: &NotListedError{}},
		"tagged as another":   {text: "SHA512 (disk.img) = " + a, fail: &NotListedError{}},
		"no name":             {text: a + "\n" + a + "  \n", fail: &NotListedError{}},
		"nothing":             {fail: &NotListedError{}},
		"a page":              {text: "<html><title>disk.img</title></html>", fail: &NotListedError{}},
		"a name in two words": {text: a + "  my disk.img\n", fail: &NotListedError{}},
	} {
		got, err := Find(c.text, "SUMS", "disk.img")
		_, unlisted := errors.AsType[*NotListedError](err)
		_, contradicts := errors.AsType[*ContradictionError](err)
		_, wantsUnlisted := c.fail.(*NotListedError)
		_, wantsContradiction := c.fail.(*ContradictionError)
		if string(got) != c.want || unlisted != wantsUnlisted || contradicts != wantsContradiction {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// A digest is computed by the function that it is of.
func TestADigestIsOfItsKind(t *testing.T) {
	for _, want := range []Digest{
		"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", // FIPS 180-4, examples
		"ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
	} {
		if got, err := want.Of(strings.NewReader("abc")); got != want || err != nil {
			t.Errorf("%s: %s, %v", want.Name(), got, err)
		}
	}
}
