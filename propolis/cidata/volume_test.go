package cidata

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
)

func files(size int) Files {
	return Files{MetaData: []byte("{\"instance-id\":\"x\"}\n"), UserData: bytes.Repeat([]byte("a"), size), NetworkConfig: []byte("version: 2\n")}
}

// What was built is read again, whatever its size, up to the limit and not beyond.
func TestReadsWhatWasBuilt(t *testing.T) {
	sizes := []int{1, 511, 512, 513, 40_000, 100_000, 600_000}
	for n := 500_000; n < 530_000; n += 512 { // around the size from which go-diskfs has a larger root directory
		sizes = append(sizes, n)
	}
	for _, n := range sizes {
		want := files(n)
		image, err := Build(want, 1)
		if err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		got, err := Read(image)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%d bytes: what was read differs: %v", n, err)
		}
	}
	if _, err := Build(files(MaxSize), 1); err == nil {
		t.Error("a volume beyond the limit was built")
	} else if _, is := errors.AsType[*TooLargeError](err); !is {
		t.Error(err)
	}
}

// The same files make the same bytes, at whatever time; the serial number is in them.
func TestBuildsTheSameBytes(t *testing.T) {
	build := func(serial uint32, epoch string) []byte {
		t.Setenv("SOURCE_DATE_EPOCH", epoch) // go-diskfs takes it for the time
		image, err := Build(files(5000), serial)
		if err != nil {
			t.Fatal(err)
		}
		return image
	}
	first := build(7, "1000000000")
	if !bytes.Equal(first, build(7, "1700000000")) {
		t.Error("built later, the volume is another")
	}
	if bytes.Equal(first, build(8, "1000000000")) {
		t.Error("two serial numbers make the same volume")
	}
}

// Without user-data there is a file that says nothing: NoCloud wants one.
func TestUserDataIsAlwaysThere(t *testing.T) {
	image, err := Build(Files{MetaData: []byte("{}")}, 0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read(image)
	if string(got.UserData) != "#cloud-config\n" || got.NetworkConfig != nil || err != nil {
		t.Errorf("%q %q %v", got.UserData, got.NetworkConfig, err)
	}
}

// A chain of clusters that is a ring would never end.
func TestRefusesARing(t *testing.T) {
	image, err := Build(files(5000), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []int{512, 1024} { // cluster 4 is followed by itself
		image[table+6], image[table+7] = 4, image[table+7]&0xf0
	}
	if _, err := Read(image); !errors.Is(err, ErrNoVolume) {
		t.Error(err)
	}
}

func FuzzRead(f *testing.F) {
	image, err := Build(files(5000), 0)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(image)
	f.Add(image[:512])
	f.Add([]byte{})
	f.Fuzz(func(_ *testing.T, image []byte) { _, _ = Read(image) })
}
