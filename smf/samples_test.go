package smf

import (
	"os"
	"path/filepath"
	"testing"
)

// samples are the outputs of real systems that match a pattern. They lie
// beside the repository where there are any, and are not part of it.
func samples(t testing.TB, pattern string) map[string][]byte {
	t.Helper()
	dir, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(filepath.Dir(dir), "shared", "samples")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("shared/samples is not here")
	}
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("no sample matches %s (%v)", pattern, err)
	}
	all := map[string][]byte{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(name)] = data
	}
	return all
}
