package tools

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// chmod(1) and ls(1). The second line of ls -d/v is what omicron
// illumos-utils/src/zfs.rs looks at.
func TestDirectoriesCanBeMadeImmutable(t *testing.T) {
	tx := diskTx(t, boot.Options{})
	if err := host.MkdirAll(tx.Files, "/pool/ext", 0o755); err != nil {
		t.Fatal(err)
	}
	look := func(dir string) (string, int) {
		got := zfsLine(tx, "ls -d/v "+dir)
		if got.Exit != 0 {
			t.Errorf("ls -d/v %s: exit %d, %s", dir, got.Exit, got.Stderr)
		}
		m := regexp.MustCompile(`^d[rwx-]{9} .* ` + dir + `\n +\{archive,.*,(no)?immutable,.*,nosparse\}\n$`).FindStringSubmatch(got.Stdout)
		if m == nil {
			return got.Stdout, 1
		}
		return m[1], 2
	}
	if got, lines := look("/pool/ext"); got != "no" || lines != 2 {
		t.Errorf("before: %q", got)
	}
	for _, step := range []struct{ command, want string }{
		{"chmod S+ci /pool/ext", ""}, {"chmod S+ci /pool/ext", ""}, {"chmod S-ci /pool/ext", "no"}, {"chmod S+ci /pool/ext", ""},
	} {
		if got := zfsLine(tx, step.command); got.Exit != 0 || got.Stderr != "" {
			t.Errorf("%s: %+v", step.command, got)
		}
		if got, lines := look("/pool/ext"); got != step.want || lines != 2 {
			t.Errorf("after %s: %q", step.command, got)
		}
	}
	// tmpfs has no such attributes.
	if got, lines := look("/var/run"); lines != 1 {
		t.Errorf("/var/run: %q", got)
	}
	session(t, tx, `$ ls -d/v /none
! /none: No such file or directory
= 2
$ chmod S+ci /var/run
! not simulated: chmod: S+ci /var/run
= 70
$ ls /pool
! not simulated: ls: /pool
= 70
$ ls -d/c /pool
! not simulated: ls: -d/c /pool
= 70
$ chmod 0700 /pool
! not simulated: chmod: 0700 /pool
= 70
$ chmod S+cq /pool
! not simulated: chmod: S+cq /pool
= 70`)
}

// A mountpoint below an immutable directory cannot be made, and one that is
// immutable itself is not removed with its dataset (zfs_mount and
// changelist_postfix in usr/src/lib/libzfs/common).
func TestMountingOverImmutableDirectories(t *testing.T) {
	tx := zfsTx(t)
	if err := host.MkdirAll(tx.Files, "/data/on", 0o755); err != nil {
		t.Fatal(err)
	}
	session(t, tx, `$ chmod S+ci /data/on
$ zfs create -o mountpoint=/data/on/below tank/a
! cannot mount '/data/on/below': failed to create mountpoint
! filesystem successfully created, but not mounted
= 1
$ zfs destroy tank/a
$ zfs create -o mountpoint=/data/on tank/b
$ zfs get -Ho value mounted tank/b
yes
$ zfs create tank/b/c
$ zfs get -Ho value mounted tank/b/c
yes
$ zfs unmount tank/b`)
	if is, _ := zfs.Immutable(tx, "/data/on"); !is {
		t.Error("what was mounted took the attribute away")
	}
	if diff := cmp.Diff(cli.Reply{}, zfsLine(tx, "zfs destroy -r tank/b")); diff != "" {
		t.Error(diff)
	}
	if _, err := tx.Files.Stat("/data/on"); err != nil {
		t.Error(err)
	}
}
