package packaging_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/hosttest"
)

// The sum of an image is compared with the one that was downloaded with it.
func TestSumsOfImages(t *testing.T) {
	sled := sim.New(sim.Options{Mode: world.OmniOS}, hosttest.Files)
	t.Cleanup(sled.Close)
	files := sled.Host().Files()
	sum := sha256.Sum256([]byte("image"))
	digest := hex.EncodeToString(sum[:])
	for name, content := range map[string]string{"/a.tar.gz": "image", "/a.sha256.txt": digest + "\n", "/b.tar.gz": "image", "/b.tar.gz.sha256": "ABC  b.tar.gz\n", "/c.tar.gz": "image"} {
		if err := world.Put(files, name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := packaging.Settings{Images: []string{"/a.tar.gz", "/b.tar.gz", "/c.tar.gz", "/absent.tar.gz"}}.Sums(t.Context(), files)
	want := []packaging.Sum{
		{Image: "/a.tar.gz", SHA256: digest, Expected: digest, From: "/a.sha256.txt"},
		{Image: "/b.tar.gz", SHA256: digest, Expected: "abc", From: "/b.tar.gz.sha256"},
		{Image: "/c.tar.gz", SHA256: digest},
	}
	if err != nil || len(got) != len(want) {
		t.Fatalf("%+v, %v", got, err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v", got[i])
		}
	}
}

// The baseline is where the service of Helios makes it, or where the brand's package has it.
func TestTheBaselineIsFound(t *testing.T) {
	for mode, want := range map[world.Mode]string{world.OmniOS: "", world.Helios: "/var/run/brand/omicron1/baseline"} {
		sled := sim.New(sim.Options{Mode: mode}, hosttest.Files)
		t.Cleanup(sled.Close)
		files := sled.Host().Files()
		if got, err := packaging.FindBaseline(files); got != want || err != nil {
			t.Errorf("%s: %q, %v", mode, got, err)
		}
		if err := world.Put(files, "/usr/lib/brand/omicron1/baseline/gzonly.txt", nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := packaging.FindBaseline(files); got == "" || err != nil {
			t.Errorf("%s: %q, %v", mode, got, err)
		}
	}
}
