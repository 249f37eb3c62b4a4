package storage

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/illumos/naming"
)

func TestOperatorsNameDatasetsOfTheirOwn(t *testing.T) {
	const id = "11111111-1111-4111-8111-111111111111"
	bytes := func(s string) (uint64, error) {
		if n, ok := strings.CutSuffix(s, "G"); ok {
			v, err := strconv.ParseUint(n, 10, 32)
			return v << 30, err
		}
		return strconv.ParseUint(s, 10, 64)
	}
	for text, want := range map[string]CustomDataset{
		"u2:images":          {On: naming.ExternalPool, Name: "images"},
		"m2:a/b quota=2G":    {On: naming.InternalPool, Name: "a/b", Properties: props("quota", "2147483648")},
		"u2:x mountpoint=/x": {On: naming.ExternalPool, Name: "x", Mountpoint: "/x"},
		"u2:x reservation=7 compression=lz4 canmount=noauto uuid=" + id: {
			On: naming.ExternalPool, Name: "x", Properties: props("reservation", "7", "compression", "lz4", "canmount", "noauto", "oxide:uuid", id),
		},
	} {
		got, err := ParseCustomDataset(text, bytes)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", text, err, diff)
		}
	}
	for _, text := range []string{
		"", "images", "u3:x", "u2:", "u2:/x", "u2:a//b", "u2:a@b", "u2:x quota", "u2:x quota=much", "u2:x quto=1", "u2:x canmount=yes", "u2:x mountpoint=x", "u2:x uuid=1",
		"u2:x compression=",
	} {
		if custom, err := ParseCustomDataset(text, bytes); !errors.As(err, new(*CustomDatasetError)) {
			t.Errorf("%q: %+v, %v", text, custom, err)
		}
	}
}
