package zone

import (
	"os"
	"path/filepath"
	"testing"
)

// samples is the directory of outputs of real systems, which lies beside the
// repository where there is one. It is not part of it.
func samples(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(filepath.Dir(dir), "shared", "samples")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("shared/samples is not here")
	}
	return dir
}

// sampleFiles are the samples whose names match any of the patterns; there must
// be some for each.
func sampleFiles(t testing.TB, patterns ...string) []string {
	t.Helper()
	dir := samples(t)
	var all []string
	for _, p := range patterns {
		found, err := filepath.Glob(filepath.Join(dir, p))
		if err != nil || len(found) == 0 {
			t.Fatalf("no sample matches %s (%v)", p, err)
		}
		all = append(all, found...)
	}
	return all
}

func readSample(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
