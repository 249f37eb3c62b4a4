package record

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/propolis/spec"
)

func crucibleDisk() CrucibleDisk {
	return CrucibleDisk{
		ID: "7c1e6dd0-2a5f-4f4c-9f0b-0d8a8a3a1f01", Targets: []string{"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"},
		BlockSize: 4096, ExtentBlocks: 16384, Extents: 160, Key: "a2V5",
	}
}

// A VM takes to another sled the volume that it has, with a generation above, and no other.
func TestAVolumeIsHeldAgainstTheSource(t *testing.T) {
	key := []byte("of digests")
	change := func(change func(*CrucibleDisk)) CrucibleDisk {
		d := crucibleDisk()
		d.Targets = slices.Clone(d.Targets)
		change(&d)
		return d
	}
	for what, c := range map[string]struct {
		theirs     CrucibleDisk
		generation uint64
		request    string // in the place of theirs
		want       string
	}{
		"the same":           {theirs: crucibleDisk(), generation: 6},
		"the same, too late": {theirs: crucibleDisk(), generation: 7, want: "is open with generation 7 at the source, and would be opened with 7"},
		"one that is ahead":  {theirs: crucibleDisk(), generation: 8, want: "generation 8"},
		"another volume":     {theirs: change(func(d *CrucibleDisk) { d.ID = strings.Replace(d.ID, "7c", "8c", 1) }), generation: 6, want: "is 8c1e"},
		"another downstairs": {theirs: change(func(d *CrucibleDisk) { d.Targets[1] = "10.0.0.9:1" }), generation: 6, want: "10.0.0.9:1"},
		"another size":       {theirs: change(func(d *CrucibleDisk) { d.Extents++ }), generation: 6, want: "extents=161"},
		"another key":        {theirs: change(func(d *CrucibleDisk) { d.Key = "b3RoZXI=" }), generation: 6, want: "key="},
		"no key":             {theirs: change(func(d *CrucibleDisk) { d.Key = "" }), generation: 6, want: "key="},
		"read-only":          {theirs: change(func(d *CrucibleDisk) { d.ReadOnly = true }), generation: 6, want: "readonly"},
		"no volume":          {request: "{}", want: "is no volume of one region at the source"},
	} {
		d := crucibleDisk()
		d.Key, d.Generation = spec.Digest(key, d.Key), 7
		request := c.request
		if request == "" {
			request = c.theirs.RequestAt(c.generation)
		}
		got := d.Obstacle(request, key)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) || strings.Contains(got, "a2V5") || strings.Contains(got, "b3RoZXI=") {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
	d := crucibleDisk()
	d.ReadOnly, d.Generation, d.Key = true, 7, ""
	if why := d.Obstacle(d.RequestAt(9), key); why != "" {
		t.Errorf("one that nothing is written to: %s", why)
	}
}

// What another sled is told is above all that this one has had, which it counts; and the same
// again, if it has counted.
func TestAGenerationIsCountedBeforeAVMLeaves(t *testing.T) {
	view := func(last uint64) ledger.View {
		if last == 0 {
			return operationtest.Book(t)
		}
		fact, err := GenerationFact("1", last)
		if err != nil {
			t.Fatal(err)
		}
		return operationtest.Book(t, fact)
	}
	for _, c := range []struct {
		last, above uint64
		again       bool
		told        uint64
		counted     string
	}{
		{3, 0, false, 3, "4"},
		{4, 0, true, 3, ""},
		{3, 57, false, 57, "58"},
		{58, 57, true, 57, ""},
	} {
		d := crucibleDisk()
		d.Above = c.above
		r := Record{ID: "1", Spec: Spec{Crucible: []CrucibleDisk{d}}}
		sent, facts, err := Leaving(view(c.last), r, c.again)
		if err != nil {
			t.Fatal(err)
		}
		var counted string
		for _, f := range facts {
			counted += string(f.Value)
		}
		if sent.Spec.Crucible[0].Above != c.told || counted != c.counted || r.Spec.Crucible[0].Above != c.above {
			t.Errorf("%+v: above %d, counted %q", c, sent.Spec.Crucible[0].Above, counted)
		}
	}
	sent, facts, err := Leaving(view(0), Record{ID: "1"}, false)
	if text, _ := json.Marshal(sent); err != nil || facts != nil || strings.Contains(string(text), "crucible") {
		t.Error(fmt.Sprint("without a volume: ", facts, err))
	}
}
