package zfs_test

import (
	"errors"
	"strconv"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/zfs"
)

// What sledctl reckons before it asks for a volume is what zfs keeps back for it.
func TestAVolumeTakesWhatWasReckoned(t *testing.T) {
	for _, block := range []uint64{512, 8 << 10, 128 << 10} {
		for _, size := range []uint64{zfs.MostBlock, 1 << 30, 20 << 30} {
			r := simulated(t)
			before := r.get("rpool")
			r.do(zfs.CreateVolume{Dataset: "rpool/v", Size: size, Block: block})
			is := r.get("rpool/v", "volsize")
			if is.Volsize != size || is.Used != zfs.Reservation(size, block) || before.Available-r.get("rpool").Available != is.Used {
				t.Errorf("%d bytes in blocks of %d: %+v, reckoned %d", size, block, is, zfs.Reservation(size, block))
			}
		}
	}
}

func TestAVolumeIsNotMadeSmaller(t *testing.T) {
	r := simulated(t)
	r.do(zfs.CreateVolume{Dataset: "rpool/v", Size: 4 << 20, Block: zfs.DefaultBlock})
	err := zfs.GrowVolume{Dataset: "rpool/v", Size: 1 << 20}.Do(t.Context(), r.host)
	if _, ok := errors.AsType[*zfs.ShrinkError](err); !ok || r.get("rpool/v", "volsize").Volsize != 4<<20 {
		t.Errorf("%v, and it has %d", err, r.get("rpool/v", "volsize").Volsize)
	}
}

func TestAVolumeForWhichThereIsNoRoomIsErrSpace(t *testing.T) {
	r := simulated(t)
	err := zfs.CreateVolume{Dataset: "rpool/v", Size: 1 << 50, Block: zfs.DefaultBlock}.Do(t.Context(), r.host)
	if !errors.Is(err, zfs.ErrSpace) {
		t.Error(err)
	}
	r.do(zfs.CreateVolume{Dataset: "rpool/v", Size: 1 << 20, Block: zfs.DefaultBlock})
	if err := (zfs.GrowVolume{Dataset: "rpool/v", Size: 1 << 50}).Do(t.Context(), r.host); !errors.Is(err, zfs.ErrSpace) {
		t.Error(err)
	}
}

// A clone begins as its snapshot is, grows beyond it, and the pool keeps nothing back for it but what it
// is asked to.
func TestAClonedVolumeHasTheSizeOfItsSnapshot(t *testing.T) {
	r := simulated(t)
	r.do(
		zfs.CreateVolume{Dataset: "rpool/v", Size: 1 << 20, Block: 16 << 10}, zfs.Snapshot{Name: "rpool/v@s"}, zfs.GrowVolume{Dataset: "rpool/v", Size: 2 << 20},
		zfs.CloneVolume{Snapshot: "rpool/v@s", Dataset: "rpool/w"},
	)
	if is := r.get("rpool/w", "volsize"); is.Volsize != 1<<20 || is.Origin != "rpool/v@s" || is.Used > 1<<20 {
		t.Errorf("%+v", is)
	}
	r.do(zfs.GrowVolume{Dataset: "rpool/w", Size: 1 << 30}, zfs.Set{Dataset: "rpool/w", Name: "refreservation", Value: "auto"})
	if is := r.get("rpool/w", "volsize"); is.Volsize != 1<<30 || is.Used != zfs.Reservation(1<<30, 16<<10) {
		t.Errorf("%+v, reckoned %d", is, zfs.Reservation(1<<30, 16<<10))
	}
	if err := (zfs.CloneVolume{Snapshot: "rpool/v@none", Dataset: "rpool/x"}).Do(t.Context(), r.host); !errors.Is(err, host.ErrNotFound) {
		t.Error(err)
	}
	if err := (zfs.CloneVolume{Snapshot: "rpool/v@s", Dataset: "rpool/w"}).Do(t.Context(), r.host); !errors.Is(err, host.ErrExists) {
		t.Error(err)
	}
	if err := (zfs.Set{Dataset: "rpool/w", Name: "refreservation", Value: strconv.Itoa(1 << 50)}).Do(t.Context(), r.host); !errors.Is(err, zfs.ErrSpace) {
		t.Error(err)
	}
}

// A volume of the name that is another one is left as it is.
func TestAnotherVolumeOfTheNameIsLeftAlone(t *testing.T) {
	r := simulated(t)
	r.do(zfs.CreateVolume{Dataset: "rpool/v", Size: 1 << 20, Block: zfs.DefaultBlock})
	for _, err := range []error{
		zfs.GrowVolume{Dataset: "rpool/v", GUID: "1", Size: 2 << 20}.Do(t.Context(), r.host),
		zfs.RenameVolume{Dataset: "rpool/v", GUID: "1", To: "rpool/w"}.Do(t.Context(), r.host),
	} {
		if other, ok := errors.AsType[*zfs.OtherError](err); !ok || !errors.Is(other, host.ErrRefused) {
			t.Error(err)
		}
	}
}
