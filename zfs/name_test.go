package zfs

import (
	"errors"
	"strings"
	"testing"
)

func TestNamesOfDatasets(t *testing.T) {
	for name, good := range map[string]bool{
		"rpool": true, "rpool/zone/web1": true, "oxp_0d7f-11/crypt/zone": true, "tank/a:b c.d": true, "tank/1": true,
		"tank/" + strings.Repeat("a", 250): true,
		"":                                 false, "/tank": false, "tank/": false, "tank//a": false, "1tank": false, "-tank": false,
		"tank/..": false, "tank/./a": false, "tank/a@b": false, "tank/a#b": false, "tank/a%b": false, "tank/ä": false,
		"tank/a\tb": false, "tank/a,b": false, "tank/" + strings.Repeat("a", 251): false,
	} {
		err := ValidateName(name)
		if _, is := errors.AsType[*NameError](err); is == good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestNamesOfSnapshots(t *testing.T) {
	for name, good := range map[string]bool{
		"tank@a": true, "tank/a@web1_snap99": true, "tank/a@2026-01-02T03:04:05": true,
		"tank/a": false, "tank/a@": false, "@a": false, "tank/a@b@c": false, "tank/a@b/c": false,
		"tank/a@b,c": false, "tank/a@b%c": false, "tank/a@" + strings.Repeat("b", 249): false,
	} {
		err := ValidateSnapshotName(name)
		if _, is := errors.AsType[*NameError](err); is == good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestPropertiesThatZFSWouldMisread(t *testing.T) {
	for _, c := range []struct {
		property Property
		good     bool
	}{
		{Property{"mountpoint", "/a"}, true},
		{Property{"sledctl:instance", "x=y, z"}, true},
		{Property{"sledctl:base", ""}, true},
		{Property{"x:y", strings.Repeat("v", ValueMax)}, true},
		{Property{"x:y", strings.Repeat("v", ValueMax+1)}, false},
		{Property{"x:y", "a\tb"}, false},
		{Property{"x:y", "a\nb"}, false},
		{Property{"", "v"}, false},
		{Property{"-r", "v"}, false},
		{Property{"quota=1", "v"}, false},
		{Property{"type,guid", "v"}, false},
		{Property{"X:y", "v"}, false},
		{Property{"x:" + strings.Repeat("y", 254), "v"}, false},
	} {
		if err := c.property.validate(); (err == nil) != c.good {
			t.Errorf("%.40q: %v", c.property, err)
		}
	}
	if err := validateProperties([]Property{{"quota", "1"}, {"quota", "2"}}); err == nil {
		t.Error("a property that is given twice was accepted")
	}
}
