package storage_test

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sled/storage"
	"github.com/sledctl/sledctl/test/hosttest"
)

// kept is a sled's files, with a configuration on each M.2.
type kept map[string]copyOf

type copyOf struct {
	text      string
	age       time.Duration
	absent    bool
	unmounted bool
	failing   bool
}

// disks shows config datasets as mounted, and some files as failing.
type disks struct {
	host.Files
	kept kept
}

func (d disks) Stat(name string) (host.Info, error) {
	info, err := d.Files.Stat(name)
	for uuid, c := range d.kept {
		switch name {
		case "/pool/int/" + uuid + "/config":
			if !c.unmounted {
				info.Device = 7
			}
		case "/pool/int/" + uuid + "/config/sledctl/config.toml":
			info.Time = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(-c.age)
		}
	}
	return info, err
}

var errDisk = errors.New("I/O error")

func (d disks) Open(name string, flag int, perm fs.FileMode) (host.File, error) {
	for uuid, c := range d.kept {
		if strings.HasPrefix(name, "/pool/int/"+uuid+"/") && c.failing {
			return nil, &os.PathError{Op: "open", Path: name, Err: errDisk}
		}
	}
	return d.Files.Open(name, flag, perm)
}

func (k kept) files(t *testing.T) host.Files {
	t.Helper()
	var files host.Files = hosttest.Memory()
	for uuid, c := range k {
		dir := "/pool/int/" + uuid + "/config/sledctl"
		if err := host.MkdirAll(files, dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if c.absent {
			continue
		}
		if err := host.WriteFile(files, dir+"/config.toml", []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return disks{files, k}
}

func TestTheNewestConfigurationThatCanBeReadCounts(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		kept     kept
		want     string // its text
		on       string // the M.2 that it is on
		warnings int
	}{
		"no M.2":              {nil, "", "", 0},
		"none has any":        {kept{"a": {absent: true}, "b": {absent: true}}, "", "", 0},
		"both have the same":  {kept{"a": {text: "x", age: day}, "b": {text: "x", age: day}}, "x", "a", 0},
		"the same, copied":    {kept{"a": {text: "x", age: day}, "b": {text: "x"}}, "x", "b", 0},
		"an old one is back":  {kept{"a": {text: "old", age: day}, "b": {text: "new"}}, "new", "b", 1},
		"a new disk":          {kept{"a": {text: "x", age: day}, "b": {absent: true}}, "x", "a", 1},
		"one is not mounted":  {kept{"a": {text: "x", age: day}, "b": {text: "hidden", unmounted: true}}, "x", "a", 0},
		"one cannot be read":  {kept{"a": {text: "x", age: day}, "b": {text: "y", failing: true}}, "x", "a", 1},
		"of one time, differ": {kept{"a": {text: "x"}, "b": {text: "y"}}, "x", "a", 1},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := storage.FindConfiguration(c.kept.files(t))
			if err != nil || string(got.Data) != c.want || len(got.Warnings) != c.warnings || c.on != "" && !strings.Contains(got.Name, "/int/"+c.on+"/") {
				t.Errorf("%q in %s, warnings %v, %v", got.Data, got.Name, got.Warnings, err)
			}
			for _, w := range got.Warnings {
				if !strings.Contains(w.Error(), "cp -p "+got.Name) {
					t.Errorf("it does not say how to repair it: %v", w)
				}
			}
		})
	}
}

// What may be there is not passed over in silence.
func TestAConfigurationThatNobodyCanReadIsNotAbsent(t *testing.T) {
	for name, k := range map[string]kept{
		"the other has none": {"a": {absent: true}, "b": {text: "y", failing: true}},
		"both":               {"a": {text: "x", failing: true}, "b": {text: "y", failing: true}},
	} {
		if _, err := storage.FindConfiguration(k.files(t)); !errors.Is(err, errDisk) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
