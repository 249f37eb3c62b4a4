package vnic

import (
	"errors"
	"testing"

	"github.com/sledctl/sledctl/host"
)

var errBusy = host.ErrBusy

// failed is the error of a dladm about a link that said this.
func failed(t *testing.T, link, stderr string) error {
	t.Helper()
	return failure(dladm("x"), host.Result{Exit: 1, Stderr: []byte(stderr)}, link)
}

func TestErrorKinds(t *testing.T) {
	for stderr, kind := range map[string]error{
		"dladm: link v0 is not valid: object not found\n":                          host.ErrNotFound,
		"dladm: invalid vnic name 'v0': object not found\n":                        host.ErrNotFound,
		"dladm: invalid link name 'v0'\n":                                          host.ErrNotFound,
		"dladm: vnic creation over net0 failed: object already exists\n":           host.ErrExists,
		"dladm: etherstub creation failed: object already exists\n":                host.ErrExists,
		"dladm: vnic creation over net0 failed: MAC address is already in use\n":   ErrMACInUse,
		"dladm: vnic deletion failed: link busy\n":                                 host.ErrBusy,
		"dladm: warning: cannot set link property 'mtu' on 'v0': link busy\n":      host.ErrBusy,
		"dladm: 'v0' is not a vnic\n":                                              host.ErrRefused,
		"dladm: VLAN over 'net0' may not use default_tag ID (see dladm(8))\n":      host.ErrRefused,
		"dladm: vnic creation over net0 failed: permission denied\n":               host.ErrPrivileges,
		"dladm: vnic deletion failed: try again later\n":                           host.ErrTransient,
		"dladm: invalid link name 'v1'\n":                                          nil,
		"dladm: link v1 is not valid: object not found\n":                          nil,
		"dladm: vnic deletion failed: object not found\n":                          nil,
		"dladm: vnic deletion failed: insufficient memory\n":                       nil,
		"link v0 is not valid: object not found\n":                                 nil,
		"dladm: warning: x\ndladm: link v0 is not valid: object not found\n":       nil,
		"dladm: could not open /dev/dld: link v0 is not valid: object not found\n": nil,
		"": nil,
	} {
		err := failed(t, "v0", stderr)
		e, ok := errors.AsType[*host.CommandError](err)
		if !ok || e.Means != kind {
			t.Errorf("%q: kind %v, want %v", stderr, e.Means, kind)
		}
	}
	if err := failed(t, "v.0", "dladm: invalid link name 'vx0'\n"); errors.Is(err, host.ErrNotFound) {
		t.Error("a name is taken for a pattern")
	}
}
