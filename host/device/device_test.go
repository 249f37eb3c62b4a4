//go:build !illumos

package device

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestVersion(t *testing.T) {
	dir := t.TempDir()
	for content, want := range map[string]int{"18\n": 18, "": 0, "0\n": 0, "-1": 0, "x": 0} {
		name := filepath.Join(dir, "node")
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Version(name, 1)
		if got != want || (want == 0) != errors.Is(err, syscall.ENOTTY) {
			t.Errorf("%q: %d, %v", content, got, err)
		}
	}
	if _, err := Version(filepath.Join(dir, "none"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
