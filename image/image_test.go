package image

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// some is a disk with data, zeros and data.
func some(size int) []byte {
	d := make([]byte, size)
	for n := range size / 4 {
		d[n] = byte(n*31 + n>>9)
	}
	copy(d[size-512:], "the end")
	return d
}

func gzipped(data []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(data)
	_ = w.Close()
	return out.Bytes()
}

func zstandard(data []byte, options ...zstd.EOption) []byte {
	w, err := zstd.NewWriter(nil, options...)
	if err != nil {
		panic(err)
	}
	return w.EncodeAll(data, nil)
}

// xzOf packs by xz(1), and skips the test where there is none.
func xzOf(t testing.TB, data []byte, options ...string) []byte {
	t.Helper()
	return piped(t, data, "xz", append([]string{"-c"}, options...)...)
}

func piped(t testing.TB, data []byte, program string, args ...string) []byte {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not installed: this is not tested", program)
	}
	cmd := exec.Command(program, args...)
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(program, err)
	}
	return out
}

// contents reads a whole disk; holes are said to be such.
func contents(i *Image) (disk []byte, holes int64, err error) {
	err = i.Walk(context.Background(), func(at, length int64, data []byte) error {
		if at != int64(len(disk)) || length <= 0 {
			return errors.New("not in order")
		}
		if data == nil {
			holes += length
			data = make([]byte, length)
		}
		disk = append(disk, data...)
		return nil
	})
	return disk, holes, err
}

func open(raw []byte) (*Image, error) {
	return Open(context.Background(), "disk.img", bytes.NewReader(raw), int64(len(raw)))
}

// A disk is the same however it is packed, from a file and from a pipe, and its zeros are holes.
func TestEachPacking(t *testing.T) {
	want := some(3 << 20)
	for pack, raw := range map[string][]byte{
		"": want, "gzip": gzipped(want), "zstd": zstandard(want), "xz": xzOf(t, want), "gzip twice": append(gzipped(want[:1<<20]), gzipped(want[1<<20:])...),
	} {
		pack, _, _ = strings.Cut(pack, " ")
		for _, from := range []func() (*Image, error){
			func() (*Image, error) { return open(raw) },
			func() (*Image, error) { return Stream(bytes.NewReader(raw), int64(len(want))) },
		} {
			i, err := from()
			if err != nil {
				t.Errorf("%s: %v", pack, err)
				continue
			}
			got, holes, err := contents(i)
			if err != nil || !bytes.Equal(got, want) || i.Size != int64(len(want)) || i.Compression != pack || i.Format != "raw" {
				t.Errorf("%s: %d bytes of %d, %s by %q: %v", pack, len(got), i.Size, i.Format, i.Compression, err)
			}
			if holes < 2<<20 {
				t.Errorf("%s: only %d bytes are holes", pack, holes)
			}
		}
	}
	if i, err := open(gzipped(want)); err != nil || i.Data > 1<<20 {
		t.Errorf("a packed disk has %d bytes of data: %v", i.Data, err)
	}
}

// What is no disk is refused, with what to type.
func TestRefusesWhatIsNoDisk(t *testing.T) {
	at := func(offset int, text string) []byte {
		raw := make([]byte, 8192)
		copy(raw[offset:], text)
		return raw
	}
	gpt := func(last uint64) []byte {
		raw := at(512, "EFI PART")
		binary.LittleEndian.PutUint64(raw[512+32:], last)
		return raw
	}
	if _, err := open(gpt(15)); err != nil {
		t.Error(err)
	}
	packed := gzipped(some(1 << 20))
	for name, c := range map[string]struct {
		raw        []byte
		want, next string
	}{
		"nothing":               {nil, "it is empty", ""},
		"half a sector":         {make([]byte, 1000), "no whole sectors of 512", ""},
		"half a GPT disk":       {gpt(16), "of a disk of 17 sectors, and it has 16", ""},
		"a GPT that overflows":  {gpt(1<<64 - 1), "its end is missing", ""},
		"a VMDK":                {at(0, "KDMV"), "it is a VMDK", "qemu-img convert -f vmdk -O qcow2 disk.img disk.img.qcow2"},
		"a VMDK's description":  {at(0, "# Disk DescriptorFile\n"), "it is a VMDK", "-f vmdk"},
		"a VDI":                 {at(64, "\x7f\x10\xda\xbe"), "it is a VDI", "-f vdi"},
		"a VHDX":                {at(0, "vhdxfile"), "it is a VHDX", "-f vhdx"},
		"a dynamic VHD":         {at(0, "conectix"), "it is a VHD", "-f vpc"},
		"a fixed VHD":           {at(8192-512, "conectix"), "it is a VHD", "-f vpc"},
		"a QED":                 {at(0, "QED\x00"), "it is a QED", "-f qed"},
		"a DMG":                 {at(8192-512, "koly"), "it is a DMG", "-f dmg"},
		"bzip2":                 {at(0, "BZh9"), "packed by bzip2", "bzip2 -dk disk.img"},
		"an OVA":                {at(257, "ustar"), "tar archive", "tar xf disk.img"},
		"a zip":                 {at(0, "PK\x03\x04"), "zip archive", "unzip disk.img"},
		"a ZFS stream":          {at(8, "\xac\xcb\xba\xf5\x02\x00\x00\x00"), "ZFS stream", ""},
		"a web page":            {at(0, "\n<!DOCTYPE html><title>404"), "web page", ""},
		"a damaged qcow2":       {at(0, "QFI\xfb\x00\x00\x00\x07"), "its version is 7", ""},
		"a packed qcow2":        {gzipped(at(0, "QFI\xfb\x00\x00\x00\x03")), "in it is qcow2", "gunzip -k disk.img"},
		"packed twice":          {gzipped(gzipped(some(1 << 20))), "packed once more, by gzip", "gunzip -k disk.img"},
		"a packed VMDK":         {zstandard(at(0, "KDMV")), "in it is a VMDK", "unzstd disk.img"},
		"nothing, packed":       {gzipped(nil), "nothing is in it", ""},
		"half a sector, packed": {gzipped(make([]byte, 1000)), "no whole sectors", ""},
		"gzip without its end":  {packed[:len(packed)-9], "its end is missing", ""},
		"gzip without data":     {packed[:12], "its end is missing", ""},
		"gzip with one header":  {packed[:5], "its end is missing", ""},
		"damaged gzip":          {append(bytes.Clone(packed[:len(packed)-8]), "????????"...), "cannot be unpacked", ""},
		"zstd without its end":  {zstandard(some(1 << 20))[:900], "its end is missing", ""},
		"zstd, a window of 64M": {windowed(26), "cannot be unpacked", ""},
		"zstd, a window of 2T":  {windowed(41), "cannot be unpacked", ""},
	} {
		i, err := open(c.raw)
		e, ok := errors.AsType[*Refused](err)
		if !ok || !strings.Contains(e.Error(), c.want) || !strings.Contains(e.Hint(), c.next) || c.next == "" && e.Hint() != "" {
			t.Errorf("%s: %v, %v; want %q and %q", name, i, err, c.want, c.next)
		}
	}
}

// windowed is a zstd frame that asks for a window of 1<<bits bytes (RFC 8878, 3.1.1.1.2).
func windowed(bits int) []byte {
	return append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, byte(bits-10) << 3}, 0x01, 0x40, 0x00, 'x')
}

// xz asks for its window in the header of a block; 4 GiB are refused as `xz -9`'s 64 MiB are not.
func TestTheWindowOfXz(t *testing.T) {
	want := some(1 << 20)
	nine := xzOf(t, want, "-9")
	i, err := open(nine)
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := contents(i); err != nil || !bytes.Equal(got, want) {
		t.Error(err)
	}
	_, err = open(xzOf(t, want, "--lzma2=dict=128MiB"))
	if err == nil || !strings.Contains(err.Error(), "dictionary size exceeds") {
		t.Errorf("%v", err)
	}
	if _, err := open(nine[:len(nine)/2]); err == nil || !strings.Contains(err.Error(), "its end is missing") {
		t.Errorf("%v", err)
	}
}

// A pipe whose disk has another size than was said is found out; a qcow2 from one is refused at once.
func TestPipes(t *testing.T) {
	want := some(2 << 20)
	for _, raw := range [][]byte{want, gzipped(want)} {
		for size, text := range map[int64]string{1 << 20: "has more than 1048576 bytes", 4 << 20: "ends at 2097152 bytes instead of 4194304"} {
			i, err := Stream(bytes.NewReader(raw), size)
			if err == nil {
				_, _, err = contents(i)
			}
			if _, ok := errors.AsType[*Refused](err); !ok || !strings.Contains(err.Error(), text) {
				t.Errorf("%d: %v", size, err)
			}
		}
	}
	for text, raw := range map[string]string{"tables may lie anywhere": "QFI\xfb", "a VMDK": "KDMV", "it is empty": ""} {
		if _, err := Stream(strings.NewReader(raw), 512); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
}

// An error of the file is no judgement of what it holds, and an interrupt ends a walk.
func TestErrorsOfTheFile(t *testing.T) {
	lost := &os.PathError{Op: "read", Path: "disk.img", Err: io.ErrClosedPipe}
	for _, raw := range [][]byte{some(3 << 20), gzipped(some(3 << 20))} {
		_, err := Open(context.Background(), "disk.img", failing{raw, lost}, 64<<20)
		if err == nil {
			i, _ := Open(context.Background(), "disk.img", failing{raw, lost}, 64<<20)
			_, _, err = contents(i)
		}
		if !errors.Is(err, lost) {
			t.Errorf("%v", err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		i, err := open(raw)
		if err != nil {
			t.Fatal(err)
		}
		err = i.Walk(ctx, func(int64, int64, []byte) error { cancel(); return nil })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
}

// failing is a file that is larger than what can be read of it.
type failing struct {
	raw []byte
	err error
}

func (f failing) ReadAt(p []byte, at int64) (int, error) {
	if at > 1<<20 && at < 32<<20 || at+int64(len(p)) > int64(len(f.raw)) && at < 32<<20 {
		return 0, f.err
	}
	if at >= int64(len(f.raw)) {
		return len(p), nil
	}
	return copy(p, f.raw[at:]), nil
}

// FuzzImage: whatever a file holds, it is a disk of its size, or refused.
func FuzzImage(f *testing.F) {
	f.Add(some(4096), false)
	f.Add(gzipped(some(4096)), false)
	f.Add(zstandard(some(4096)), true)
	if raw, err := os.ReadFile(filepath.Join("testdata", "disk.xz")); err == nil {
		f.Add(raw, false)
	} else {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte, piped bool) {
		from := open
		if piped {
			from = func(raw []byte) (*Image, error) { return Stream(bytes.NewReader(raw), 4096) }
		}
		i, err := from(raw)
		if err == nil && i.Size < 1<<24 {
			var got []byte
			if got, _, err = contents(i); err == nil && int64(len(got)) != i.Size {
				t.Fatalf("%d bytes of %d", len(got), i.Size)
			}
		}
		if _, ok := errors.AsType[*Refused](err); err != nil && !ok {
			t.Fatalf("%v is no refusal", err)
		}
	})
}
