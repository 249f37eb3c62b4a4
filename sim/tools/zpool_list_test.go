package tools

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/sim/world/zfs"
)

// TestZpoolListShowsDevices pins print_list_stats of
// usr/src/cmd/zpool/zpool_main.c: a device's line has columns of its own,
// whatever -o says.
func TestZpoolListShowsDevices(t *testing.T) {
	tx := zfsTx(t)
	disk := zfs.FindPool(tx, "tank").Vdevs[0]
	for _, c := range []struct{ line, want string }{
		{
			"zpool list -Hpv -o name,health tank",
			"tank\tONLINE\n\t%DISK\t107374182400\t%ALLOC\t%FREE\t-\t-\t0\t0\t-\tONLINE\n",
		},
		{
			"zpool list -HpvP -o name tank",
			"tank\n\t/dev/dsk/%DISKs0\t107374182400\t%ALLOC\t%FREE\t-\t-\t0\t0\t-\tONLINE\n",
		},
		{"zpool list -HpP -o name tank", "tank\n"},
	} {
		got := zfsLine(tx, c.line)
		figures := strings.Fields(zfsLine(tx, "zpool list -Hp -o size,allocated,free tank").Stdout)
		want := strings.NewReplacer("%DISK", disk, "107374182400", figures[0], "%ALLOC", figures[1], "%FREE", figures[2]).Replace(c.want)
		if diff := cmp.Diff(want, got.Stdout); diff != "" || got.Exit != 0 {
			t.Errorf("%s: exit %d %s: %s", c.line, got.Exit, got.Stderr, diff)
		}
	}
}
