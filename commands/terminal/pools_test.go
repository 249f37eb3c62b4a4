package terminal

import "testing"

func TestShortPools(t *testing.T) {
	const a, b, c = "oxp_343b36ca-70aa-4241-b7c3-69c1a71c6148", "oxp_343b36ca-28d0-421b-a095-bca14b68f98e", "oxi_7f7a2958-8b5b-4c0d-bd37-fd37f487d911"
	for _, x := range []struct {
		known      []string
		text, want string
	}{
		{nil, "its pool " + a + " is UNAVAIL", "its pool oxp_343b36ca is UNAVAIL"},
		{[]string{a, c}, a + "/crypt, " + c, "oxp_343b36ca/crypt, oxi_7f7a2958"},
		{[]string{a, b, c}, a + " and " + c, a + " and oxi_7f7a2958"},
		{nil, "rpool, oxp_new, x" + a, "rpool, oxp_new, x" + a},
		{nil, "", ""},
	} {
		if got := ShortPools(x.known)(x.text); got != x.want {
			t.Errorf("%q: got %q, want %q", x.text, got, x.want)
		}
	}
}
