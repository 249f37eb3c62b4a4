package spec

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func secretive(request, blob string) InstanceSpec {
	return InstanceSpec{Components: Components{
		"disk": CrucibleStorage{Request: request}, "init": BlobStorage{Base64: blob, ReadOnly: true}, "com1": SerialPort{Number: "com1"},
	}}
}

func TestSecretsAreSealedAndPutBack(t *testing.T) {
	key, other := []byte("key"), []byte("other")
	for name, c := range map[string]struct {
		spec InstanceSpec
		want int // secrets
	}{
		"none":           {InstanceSpec{Components: Components{"com1": SerialPort{Number: "com1"}}}, 0},
		"two":            {secretive(`{"key":"k"}`, "Zm9v"), 2},
		"twice the same": {secretive("Zm9v", "Zm9v"), 1},
		"an empty one":   {secretive("", "Zm9v"), 2},
	} {
		sealed, secrets := c.spec.Seal(key)
		switch digests := slices.Sorted(maps.Keys(secrets)); {
		case len(secrets) != c.want || !slices.Equal(digests, sealed.Sealed()):
			t.Errorf("%s: %d secrets, sealed %v", name, len(secrets), sealed.Sealed())
		case sealed.Open() || c.spec.Open() != (c.want > 0):
			t.Errorf("%s: open %v, sealed %v", name, c.spec.Open(), sealed.Open())
		case len(Compare(c.spec, sealed.Unseal(secrets))) > 0:
			t.Errorf("%s: put back: %v", name, Compare(c.spec, sealed.Unseal(secrets)))
		}
		if again, none := sealed.Seal(other); len(none) > 0 || len(Compare(sealed, again)) > 0 {
			t.Errorf("%s: what stands for a secret was sealed once more", name)
		}
		if same, _ := c.spec.Seal(key); len(Compare(sealed, same)) > 0 {
			t.Errorf("%s: one key gives two digests", name)
		}
		if not, _ := c.spec.Seal(other); c.want > 0 && slices.Equal(not.Sealed(), sealed.Sealed()) {
			t.Errorf("%s: two keys give one digest", name)
		}
	}
}

func TestWhatExposesASecretIsMasked(t *testing.T) {
	digest := sealedPrefix + strings.Repeat("0", 64)
	for _, c := range []struct{ text, want string }{
		{`{"a":1}`, `{"a":1}`},
		{`{"request_json":"{\"key\":\"k\\\"\"}","readonly":false}`, `{"request_json":"` + digest + `","readonly":false}`},
		{`{"base64":"Zm9v"},{"request_json":""}`, `{"base64":"` + digest + `"},{"request_json":"` + digest + `"}`},
		{`{"base64":"secret:hmac-sha256:12"}`, `{"base64":"secret:hmac-sha256:12"}`},
	} {
		if got := string(Mask([]byte(c.text))); got != c.want || Exposes([]byte(got)) {
			t.Errorf("%s: %s", c.text, got)
		}
	}
}
