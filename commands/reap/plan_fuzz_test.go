package reap

import (
	"testing"
)

// A saved plan names each object that it removes once, with its kind, or is
// refused.
func FuzzParseReapPlan(f *testing.F) {
	for _, text := range []string{
		`{"apiVersion":"sledctl/v1","kind":"ReapObjectList","items":[{"kind":"zone","name":"z","result":"to remove"}]}`,
		`{"apiVersion":"sledctl/v1","kind":"ReapObjectList","items":[]}`, `{"apiVersion":"v2"}`, `[]`, ``, `{"items":[{"kind":"zone","name":"z"},{"kind":"zone","name":"z"}]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		objects, _, err := parseReapPlan(text)
		if err != nil && objects != nil {
			t.Errorf("%q: %d objects, and %v", text, len(objects), err)
		}
		seen := map[string]bool{}
		for _, o := range objects {
			if key := string(o.Kind) + " " + o.Name; o.Kind == "" || o.Name == "" || seen[key] {
				t.Errorf("%q: %q", text, key)
			} else {
				seen[key] = true
			}
		}
	})
}
