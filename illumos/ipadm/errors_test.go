package ipadm

import (
	"errors"
	"testing"

	"github.com/sledctl/sledctl/host"
)

func TestErrorKinds(t *testing.T) {
	for stderr, kind := range map[string]error{
		"ipadm: Could not get address: Object not found":                               host.ErrNotFound,
		"ipadm: Address object not found":                                              host.ErrNotFound,
		"ipadm: could not delete address: Object not found":                            host.ErrNotFound,
		"ipadm: Could not delete v0: Interface does not exist":                         host.ErrNotFound,
		"ipadm: Could not create v0 : Interface already exists":                        host.ErrExists,
		"ipadm: Could not create address: Address object already exists":               host.ErrExists,
		"ipadm: Could not create address: Address already in use":                      ErrAddressInUse,
		"ipadm: Could not create address: Interface already in use":                    host.ErrBusy,
		"ipadm: Could not create v0 : Interface already in use":                        host.ErrBusy,
		"ipadm: Could not open handle to library - Could not communicate with ipmgmtd": host.ErrTransient,
		"ipadm: Could not create address: Persistent operation on temporary object":    host.ErrRefused,
		"ipadm: Could not create v0 : Permission denied":                               host.ErrPrivileges,
		"ipadm: Could not create address: Could not open DLPI link":                    nil,
		"ipadm: Could not create address: Object not found":                            nil,
		"Could not get address: Object not found":                                      nil,
		"ipadm: warning: x\nipadm: Could not get address: Object not found":            nil,
		"zlogin: zone 'z1' unknown":                                                    nil,
		"":                                                                             nil,
	} {
		err := failure(ipadm("", "x"), host.Result{Exit: 1, Stdout: []byte("\n"), Stderr: []byte(stderr)})
		if e, ok := errors.AsType[*host.CommandError](err); !ok || e.Means != kind {
			t.Errorf("%q: kind %v, want %v", stderr, e.Means, kind)
		}
	}
	unknown := host.Result{Unknown: true, Stderr: []byte("ipadm: Could not get address: Object not found")}
	if err := failure(ipadm("z1", "x"), unknown); errors.Is(err, host.ErrNotFound) {
		t.Error("a command that did not tell its status is believed")
	}
}

func TestRouteKinds(t *testing.T) {
	for _, c := range []struct {
		exit   int
		stdout string
		kind   error
	}{
		{3, " 0.0.0.0: not in table\n", host.ErrNotFound},
		{17, "add net default: gateway 10.0.0.1: entry exists\n", host.ErrExists},
		{128, "add net default: gateway 10.0.0.1: Network is unreachable\n", host.ErrTransient},
		{3, "", nil},
		{1, " 0.0.0.0: not in table\n", nil},
		{17, "add net default: gateway 10.0.0.1\n", nil},
		{22, "add net default: gateway 10.0.0.1: Invalid argument\n", nil},
	} {
		err := failure(routeCommand("add", "", "default", "10.0.0.1", ""), host.Result{Exit: c.exit, Stdout: []byte(c.stdout)})
		if e, ok := errors.AsType[*host.CommandError](err); !ok || e.Means != c.kind {
			t.Errorf("exit %d, %q: kind %v, want %v", c.exit, c.stdout, e.Means, c.kind)
		}
	}
}
