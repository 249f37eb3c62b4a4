package zfs

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/test/refdata"
)

// asked are the properties of a sample: four that each of them is about, and
// those which only some have.
func asked(out []byte) []string {
	set := map[string]bool{"available": true, "used": true, "mounted": true, "compression": true}
	for line := range strings.Lines(string(out)) {
		property := strings.Split(line, "\t")[1]
		if userProperty(property) || slices.Contains(native(), property) {
			set[property] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

func uuid(value, source string) map[string]Value {
	return map[string]Value{"oxide:uuid": {Value: value, Source: source}}
}

func TestSamplesOfDatasets(t *testing.T) {
	plain := Dataset{Name: "dataset_name", Available: 1234, Used: 5678, Compression: "off"}
	mounted, whole, inherited := plain, plain, plain
	mounted.Mounted = true
	whole.Mounted, whole.Quota, whole.Reservation = true, 111, 222
	whole.User = uuid("d4e1e554-7b98-4413-809e-4a42561c3d0c", Local)
	inherited.User = uuid("b8698ede-60c2-4e16-b792-d28c165cfd12", "inherited from parent")
	want := map[string]struct {
		datasets []Dataset
		refused  string
	}{
		"zfs-get-Hpo-name,property,value,source.UNITTEST.txt": {datasets: []Dataset{whole}},
		"parse_dataset_props":                     {datasets: []Dataset{mounted}},
		"parse_dataset_props_with_optionals":      {datasets: []Dataset{whole}},
		"parse_dataset_uuid_ignored_if_dash":      {datasets: []Dataset{plain}},
		"parse_dataset_uuid_ignored_if_inherited": {datasets: []Dataset{inherited}},
		"parse_quota_ignored_if_default":          {datasets: []Dataset{plain}},
		"parse_reservation_ignored_if_default":    {datasets: []Dataset{plain}},
		"parse_sorts_and_dedups": {datasets: []Dataset{
			{Name: "foo", Available: 111, Used: 111, Compression: "off"},
			{Name: "bar", Available: 222, Used: 222, Compression: "off", Mounted: true},
		}},
		"parse_dataset_bad_avail":        {refused: `"BADAVAIL" is no number`},
		"parse_dataset_bad_usage":        {refused: `"BADUSAGE" is no number`},
		"parse_dataset_bad_quota":        {refused: `"BADQUOTA" is no number`},
		"parse_dataset_bad_reservation":  {refused: `"BADRES" is no number`},
		"parse_dataset_bad_uuid":         {refused: "has no line for compression"}, // a value of oxide:uuid is not judged here
		"parse_dataset_missing_fields-2": {refused: "has no line for used"},
		"parse_dataset_missing_fields":   {refused: "has no line for available"},
		"parse_dataset_missing_fields-3": {refused: "has no line for compression"},
		"parse_dataset_missing_fields-4": {refused: "has no line for compression"},
		"parse_dataset_too_many_columns": {refused: "5 columns"},
	}
	files := refdata.Files(t, "samples/omicron/zfs_get_*", "samples/illumos/zfs-get-*")
	for file, sample := range files {
		name := file
		if parts := strings.Split(name, "__"); len(parts) > 1 {
			name = parts[1] // the test of omicron that it is taken from
		}
		expected, known := want[name]
		if !known {
			t.Errorf("nothing is expected of %s", file)
			continue
		}
		got, err := ParseDatasets(sample, asked(sample))
		switch {
		case expected.refused == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case expected.refused != "" && (!errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), expected.refused)):
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if diff := cmp.Diff(expected.datasets, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if len(files) != len(want) {
		t.Errorf("%d samples, %d expectations", len(files), len(want))
	}
}

func TestSamplesOfPools(t *testing.T) {
	for file, sample := range refdata.Files(t, "samples/omicron/zpool_list_-Hpo_*") {
		// The samples are of a listing without identity and failmode.
		got, err := ParsePools([]byte(strings.ReplaceAll(string(sample), "\n", "\t17\twait\n")))
		if strings.Contains(file, "__missing-health__") {
			if !errors.Is(err, ErrSyntax) {
				t.Errorf("%s: accepted as %v, %v", file, got, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if diff := cmp.Diff([]Pool{{Name: "rpool", GUID: "17", Health: "ONLINE", Size: 10000, Allocated: 6000, Free: 4000, Failmode: "wait"}}, got); diff != "" {
			t.Errorf("%s: %s", file, diff)
		}
	}
}
