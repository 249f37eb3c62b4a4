package tools

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/sim/tools/cli"
)

// manual_mount in usr/src/cmd/zfs/zfs_main.c, usr/src/cmd/fs.d/umount.c.
func TestMountOfLegacyFileSystems(t *testing.T) {
	tx := zfsTx(t)
	run := func(line string, want cli.Reply) {
		t.Helper()
		if diff := cmp.Diff(want, zfsLine(tx, line)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
	run("zfs create -o mountpoint=legacy -o zoned=on rpool/old", cli.Reply{})
	run("mount -F zfs rpool/old /tmp", cli.Reply{})
	run("mount -F zfs rpool/old /tmp", cli.Reply{Stderr: "mount failed: Device busy\n", Exit: 1})
	run("mount -F zfs rpool/old /none", cli.Reply{Stderr: "mount failed: No such file or directory\n", Exit: 1})
	run("umount /tmp", cli.Reply{})
	run("umount /tmp", cli.Reply{Stderr: "umount: warning: /tmp not in mnttab\numount: /tmp not mounted\n", Exit: 1})
}
