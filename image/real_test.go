package image_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/image"
)

// Images that QEMU's own tool makes are read as it reads them, byte by byte: several sizes of clusters,
// compressed by both of its compressions, of the older version, with clusters that are written over and
// thrown away, with snapshots, grown, and of disks whose last cluster is one in part.
func TestRealImages(t *testing.T) {
	if _, err := exec.LookPath("qemu-img"); err != nil {
		t.Skip("qemu-img is not installed: no image that QEMU made is read")
	}
	if testing.Short() {
		t.Skip("takes seconds, and more under the race detector, which sees as much in TestEachPacking")
	}
	dir := t.TempDir()
	run := func(program string, args ...string) {
		t.Helper()
		if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %s: %v: %s", program, strings.Join(args, " "), err, out)
		}
	}
	disk := filepath.Join(dir, "disk.raw")
	if err := os.WriteFile(disk, randomDisk(9<<20+512*3), 0o600); err != nil {
		t.Fatal(err)
	}
	made := 0
	check := func(name string) {
		t.Helper()
		made++
		file := filepath.Join(dir, name)
		run("qemu-img", "convert", "-O", "raw", file, file+".raw")
		want, err := os.ReadFile(file + ".raw")
		if err != nil {
			t.Fatal(err)
		}
		got, err := readFile(file)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(want), err)
		}
	}
	for _, options := range []string{
		"cluster_size=512", "cluster_size=4k", "cluster_size=64k", "cluster_size=1M", "cluster_size=2M",
		"compat=0.10", "compat=0.10,cluster_size=8k", "compression_type=zstd", "compression_type=zstd,cluster_size=2M", "refcount_bits=1", "refcount_bits=64", "lazy_refcounts=on",
		"preallocation=metadata", "preallocation=falloc",
	} {
		name := strings.NewReplacer("=", "-", ",", "-").Replace(options)
		run("qemu-img", "convert", "-O", "qcow2", "-o", options, disk, filepath.Join(dir, name))
		check(name)
		if !strings.Contains(options, "prealloc") {
			run("qemu-img", "convert", "-c", "-O", "qcow2", "-o", options, disk, filepath.Join(dir, name+"-c"))
			check(name + "-c")
		}
	}
	used := filepath.Join(dir, "used")
	run("qemu-img", "create", "-q", "-f", "qcow2", used, "20M")
	run("qemu-io", "-c", "write -P 7 1M 3M", "-c", "write -z 2M 1M", "-c", "discard 3M 64k", "-c", "write -P 9 5000k 1000", "-c", "write -c -P 5 10M 64k", used)
	check("used")
	run("qemu-img", "snapshot", "-c", "before", used)
	run("qemu-io", "-c", "write -P 8 1M 100k", used)
	check("used")
	run("qemu-img", "resize", "-q", used, "50M")
	check("used")
	run("qemu-img", "create", "-q", "-f", "qcow2", filepath.Join(dir, "empty"), "3T")
	if i, err := openFile(filepath.Join(dir, "empty")); err != nil || i.Size != 3<<40 || i.Data != 0 {
		t.Errorf("%+v, %v", i, err)
	}
	if _, err := exec.LookPath("cloud-localds"); err == nil { // of cloud-image-utils: the disks that guests boot first with
		data := filepath.Join(dir, "user-data")
		if err := os.WriteFile(data, []byte("#cloud-config\nhostname: web1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, format := range []string{"raw", "qcow2"} {
			run("cloud-localds", "--disk-format", format, filepath.Join(dir, "seed-"+format), data)
			check("seed-" + format)
		}
	}
	t.Logf("%d images are read as qemu-img reads them", made)

	run("qemu-img", "create", "-q", "-f", "qcow2", "-b", used, "-F", "qcow2", filepath.Join(dir, "overlay"))
	run("qemu-img", "create", "-q", "-f", "qcow2", "-o", "extended_l2=on", filepath.Join(dir, "extended"), "1M")
	run("qemu-img", "create", "-q", "-f", "qcow2", "-o", "data_file="+filepath.Join(dir, "external"), filepath.Join(dir, "split"), "1M")
	for _, format := range []string{"vmdk", "vdi", "vhdx", "vpc", "qed"} {
		run("qemu-img", "convert", "-O", format, disk, filepath.Join(dir, format))
	}
	run("qemu-img", "convert", "-O", "vpc", "-o", "subformat=fixed", disk, filepath.Join(dir, "fixed"))
	for name, want := range map[string]string{
		"overlay": "backing file", "extended": "extended L2", "split": "another file", "vmdk": "a VMDK", "vdi": "a VDI", "vhdx": "a VHDX", "vpc": "a VHD", "qed": "a QED", "fixed": "a VHD",
	} {
		i, err := openFile(filepath.Join(dir, name))
		e, ok := err.(*image.Refused)
		if !ok || !strings.Contains(e.Error(), want) || !strings.Contains(e.Hint(), "run: qemu-img convert") {
			t.Errorf("%s: %+v, %v", name, i, err)
		}
	}
}

// randomDisk has stretches of each kind: noise, what can be compressed, zeros.
func randomDisk(size int) []byte {
	random := rand.New(rand.NewPCG(19, 2))
	d := make([]byte, size)
	for at := 0; at < size; {
		n := min(size-at, 512*(1+random.IntN(300)))
		switch random.IntN(3) {
		case 0:
			for k := range n {
				d[at+k] = byte(random.Uint32())
			}
		case 1:
			copy(d[at:at+n], strings.Repeat(fmt.Sprint("line ", at, "\n"), n/8))
		}
		at += n
	}
	return d
}

func openFile(name string) (*image.Image, error) {
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return image.Open(context.Background(), name, bytes.NewReader(raw), int64(len(raw)))
}

func readFile(name string) ([]byte, error) {
	i, err := openFile(name)
	if err != nil {
		return nil, err
	}
	var disk []byte
	err = i.Walk(context.Background(), func(_, length int64, data []byte) error {
		if data == nil {
			data = make([]byte, length)
		}
		disk = append(disk, data...)
		return nil
	})
	return disk, err
}
