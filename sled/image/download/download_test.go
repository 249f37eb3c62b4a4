package download

import (
	"errors"
	"io/fs"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/test/hosttest"
)

func parse(t *testing.T, address string) *url.URL {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// A download is named as its file is, whatever that is called, and each address and image has one of its own.
func TestFileOf(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range []struct{ address, image, begins string }{
		{"https://h/a/disk.img", "debian", "disk.img-"},
		{"https://h/a/disk.img", "debian-13", "disk.img-"},
		{"https://h/b/disk.img", "debian", "disk.img-"},
		{"https://h/a/disk.img?v=2", "debian", "disk.img-"},
		{"https://h/..", "debian", "-"},
		{"https://h/", "debian", "_-"},
		{"https://h", "debian", "-"},
		{"https://h/a%2f..%2fetc", "debian", "etc-"},
		{"https://h/.hidden", "debian", "hidden-"},
		{"https://h/a b;é%00", "debian", "a_b___-"},
		{"https://h/" + strings.Repeat("x", 300), "debian", strings.Repeat("x", 80) + "-"},
	} {
		got := fileOf(parse(t, c.address), c.image)
		if !strings.HasPrefix(got, c.begins) || len(got) != len(c.begins)+8+len(suffix) || path.Base(got) != got || seen[got] {
			t.Errorf("%s for %s: %s", c.address, c.image, got)
		}
		seen[got] = true
	}
}

type sled struct {
	host.Host
	files host.Files
}

func (s sled) Files() host.Files { return s.files }

// What lies in the configured place is found; what else is there is left alone, and one that cannot be read is of no image.
func TestWhatIsKept(t *testing.T) {
	s := sled{files: hosttest.Memory()}
	at := parse(t, "https://h/disk.img")
	if _, err := Find(t.Context(), s, "/data", at, "debian"); !isNowhere(err) || fault.Of(err) != fault.Refused || !strings.Contains(err.Error(), "/data") {
		t.Errorf("an absent place: %v", err)
	}
	if all, err := List(t.Context(), s, "/data"); err != nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
	if err := host.MkdirAll(s.files, "/data/"+directory+"/dir"+suffix, 0o700); err != nil {
		t.Fatal(err)
	}
	if all, err := List(t.Context(), s, "/data"); err != nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
	file, err := Find(t.Context(), s, "/data", at, "debian")
	if err != nil || path.Dir(file) != "/data/"+directory {
		t.Errorf("%s, %v", file, err)
	}
	for _, name := range []string{file, "/data/" + directory + "/README"} {
		if err := host.WriteFile(s.files, name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := List(t.Context(), s, "/data"); err != nil || len(all) != 1 || all[0].Path != file || all[0].For != "" {
		t.Errorf("%+v, %v", all, err)
	}
	if again, err := Find(t.Context(), s, "/data", at, "debian"); again != file || err != nil {
		t.Errorf("%s, %v", again, err)
	}
	s.files = broken{s.files}
	if _, err := List(t.Context(), s, "/data"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a directory that cannot be read: %v", err)
	}
}

func isNowhere(err error) bool { _, is := errors.AsType[*NowhereError](err); return is }

type broken struct{ host.Files }

func (broken) ReadDir(string) ([]host.Info, error) { return nil, fs.ErrPermission }
