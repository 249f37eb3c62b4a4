package spec

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatAVersionCannotExpressIsNamedWithTheFirstThatCan(t *testing.T) {
	s := sound()
	s.SMBIOS = &SMBIOS{Manufacturer: "Acme"}
	s.Components["boot"] = NVMeDisk{Backend: "boot-backend", PCI: PCIPath{0, 16, 0}, WriteCache: new(false)}
	const (
		cache  = "components.boot.component.has_write_cache: an NVMe disk without a write cache needs 6.0.0"
		vsock  = "components.vsock: a virtio_socket needs 3.0.0"
		smbios = "smbios: an SMBIOS table of one's own needs 2.0.0"
	)
	for v, want := range map[Version]string{
		1: "version 1.0.0 of the Propolis API cannot express it: " + cache + "; " + vsock + "; " + smbios,
		2: "version 2.0.0 of the Propolis API cannot express it: " + cache + "; " + vsock,
		3: "version 3.0.0 of the Propolis API cannot express it: " + cache,
		5: "version 5.0.0 of the Propolis API cannot express it: " + cache,
	} {
		_, err := s.At(v)
		if e, ok := errors.AsType[*VersionError](err); !ok || e.Version != v || err.Error() != want {
			t.Errorf("%s: %v", v, err)
		}
		if _, again := (EnsureRequest{Init: Init{Spec: &s}}).Encode(v); again == nil || again.Error() != want {
			t.Errorf("%s: %v", v, again)
		}
	}
	if got, err := s.At(6); err != nil || s.Needs() != 6 || *got.Components["boot"].(NVMeDisk).WriteCache {
		t.Errorf("%v, %v", got, err)
	}
}

// A machine that asks for nothing new is told to every version, and is the same
// machine in each.
func TestASpecIsOneInAllVersions(t *testing.T) {
	s := sound()
	delete(s.Components, "vsock")
	if got := s.Needs(); got != Oldest {
		t.Errorf("needs %s", got)
	}
	for _, v := range Versions() {
		at, err := s.At(v)
		if err != nil {
			t.Fatal(err)
		}
		if d := Compare(s, at); d != nil {
			t.Errorf("%s: %v", v, d)
		}
		data, err := encode(at)
		if err != nil || bytes.Contains(data, []byte("has_write_cache")) != (v == 6) {
			t.Errorf("%s: %s, %v", v, data, err)
		}
	}
	if s.Components["boot"].(NVMeDisk).WriteCache != nil {
		t.Error("the spec itself was changed")
	}
}

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]Version{"1": 1, "5": 5, "5.0.0": 5, "6": 6, "0": 0, "7": 0, "": 0, "5.1.0": 0, "v5": 0, "05": 0, ".0.0": 0} {
		got, err := ParseVersion(text)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
	if diff := cmp.Diff([]Version{1, 2, 3, 4, 5, 6}, Versions()); diff != "" {
		t.Error(diff)
	}
}
