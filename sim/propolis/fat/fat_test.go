package fat

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What mkfs.fat and mtools have written is read as they wrote it: FAT12 and FAT16, with long names
// and files of many clusters. (.ci/run installs both.)
func TestReadsWhatOthersWrote(t *testing.T) {
	for _, tool := range []string{"mkfs.fat", "mcopy"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("there is no %s here; .ci/run installs it", tool)
		}
	}
	for kind, size := range map[string]int64{"12": 1 << 20, "16": 16 << 20} {
		dir := t.TempDir()
		image, big := filepath.Join(dir, "image"), bytes.Repeat([]byte("0123456789abcdef"), 9001)
		files := map[string][]byte{"meta-data": []byte("instance-id: x\n"), "network-config": big, "SHORT": []byte("s"), "empty": {}}
		run := func(name string, args ...string) {
			if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
				t.Fatalf("%s %v: %v %s", name, args, err, out)
			}
		}
		if err := os.WriteFile(image, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		run("mkfs.fat", "-F", kind, "-n", "CIDATA", image)
		for name, data := range files {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
			run("mcopy", "-i", image, filepath.Join(dir, name), "::"+name)
		}
		disk, err := os.ReadFile(image)
		if err != nil {
			t.Fatal(err)
		}
		v, err := Read(disk)
		if err != nil || v.Label != "CIDATA" || len(v.Files) != len(files) {
			t.Fatalf("FAT%s: %q %d files, %v", kind, v.Label, len(v.Files), err)
		}
		for name, want := range files {
			if name == "SHORT" { // a name of 8.3 has no case
				name = "short"
			}
			if !bytes.Equal(v.Files[name], want) {
				t.Errorf("FAT%s: %s has %d bytes, want %d", kind, name, len(v.Files[name]), len(want))
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	disk := make([]byte, 64<<10)
	copy(disk[11:], []byte{0, 2, 1, 1, 0, 2, 0x70, 0, 0x80, 0, 0xf0, 1, 0})
	disk[510], disk[511] = 0x55, 0xaa
	f.Add(disk)
	f.Add([]byte{})
	f.Fuzz(func(_ *testing.T, disk []byte) { _, _ = Read(disk) })
}
