package spec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestACrucibleRequestIsReadAsItWasWritten(t *testing.T) {
	v := CrucibleVolume{
		ID: "7c1e6dd0-2a5f-4f4c-9f0b-0d8a8a3a1f01", Targets: []string{"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"},
		BlockSize: 4096, ExtentBlocks: 16384, Extents: 160, Key: "a2V5", ReadOnly: true, Generation: 7,
	}
	for _, v := range []CrucibleVolume{v, {ID: v.ID, Targets: v.Targets, BlockSize: 512, ExtentBlocks: 1, Extents: 1, Generation: 1}} {
		got, ok := ReadCrucible(v.Request())
		if diff := cmp.Diff(v, got); !ok || diff != "" {
			t.Errorf("%v: %s", ok, diff)
		}
	}
	request := v.Request()
	part := request[strings.Index(request, "[{")+1 : strings.LastIndex(request, "]")]
	for what, other := range map[string]string{
		"nothing":           "",
		"another type":      strings.Replace(request, `"volume"`, `"url"`, 1),
		"two regions":       strings.Replace(request, part, part+","+part, 1),
		"no region":         strings.Replace(request, part, "", 1),
		"a volume below it": strings.Replace(request, `"read_only_parent":null`, `"read_only_parent":`+part, 1),
	} {
		if got, ok := ReadCrucible(other); ok {
			t.Errorf("%s is %+v", what, got)
		}
	}
}
