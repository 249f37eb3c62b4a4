package tools

import (
	"strings"
	"testing"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/tools/storage"
)

// What no driver, script or page uses of zfs, zpool and fstyp is refused, whatever
// its mistake is.
func TestWhatIsNotSimulatedOfStorageIsRefused(t *testing.T) {
	tx := zfsTx(t)
	session(t, tx, "$ zfs create tank/a\n$ zfs create tank/a/b\n$ zfs snapshot tank/a@s\n$ zfs create -sV 1M tank/v\n")
	for line := range strings.SplitSeq(`zfs
zfs wait tank
zfs send -R tank@s
zfs create -p -o compression=lz4 tank/a
zfs create -p -o mountpoint=/y tank/x/y
zfs create -o quota tank/b
zfs create -o quota=1G -o quota=2G tank/b
zfs create -o recordsize=3 tank/b
zfs create
zfs create tank/b tank/c
zfs create -z tank/b
zfs create -s tank/b
zfs create -nvp -o quota=1G tank/q/r
zfs create -s -b 4096 -V 10000 tank/w
zfs create -V lots tank/x
zfs create -V
zfs create -V 1M nope/x
zfs list -H -o name -S name -d 1 tank
zfs list -Hp -o name,used -s used -d 1 tank
zfs list -o name,compress,readonly tank/a
zfs list -H -t snapshot tank/a
zfs list -o bogus
zfs list -t bogus
zfs list -d x tank
zfs list -j
zfs list -o
zfs get -Hpo value mountpoint /nowhere
zfs get bogus tank/a
zfs get
zfs get -o
zfs get -o name,size quota tank
zfs get -s here quota tank
zfs set casesensitivity=mixed tank/a
zfs set a:b=1 a:b=2 tank/a
zfs set
zfs set quota=1G
zfs set tank/a
zfs set quota=1G tank/a atime=off
zfs set -r quota=1G tank/a
zfs inherit quota tank/a
zfs inherit used tank/a
zfs inherit bogus tank/a
zfs snapshot tank/a
zfs clone -p tank/a@s tank/c
zfs clone tank/a tank/d
zfs clone tank/a@s rpool/d
zfs clone tank/a@s
zfs destroy -nvR tank/a
zfs destroy -np tank/a/b@s
zfs destroy -v tank/a/b@s
zfs destroy -R tank/a
zfs destroy
zfs promote tank/c
zfs rename tank/a tank/d
zfs mount a b
zfs mount -O tank/n
zfs unmount -f tank/n
zfs unmount
zfs mount
zfs load-key
zpool list -o bogus
zpool get failmode tank
zpool set failmode=maybe tank
zpool set size=1 tank
zpool create tank c12t0d0
zpool create c3 c12t0d0
zpool create new
zpool create -o bogus=1 new c12t0d0
zpool frobnicate
zfs get all tank
zfs get -H all tank
zfs get -H avail tank
zfs get -H written@s tank
zfs list -Ho space
zfs mount -l tank/a
zfs unmount -a
zfs unmount /tank/a
zfs load-key -a
zfs change-key -i tank/a
zfs destroy -d tank/a@s
zfs destroy tank/a@s%t
zfs destroy tank/a@s,t
zpool
zpool list -HT d
zpool status -v
zpool status -x rpool
zpool create -n new c12t0d0
zpool create -f new c12t0d0
zpool create new mirror c12t0d0 c11t0d0
zpool create new /dev/rdsk/c12t0d0s0
zpool create new /var/tmp
zpool create -m here new c12t0d0
zpool set comment=x tank
zpool destroy -f tank
zpool export -f tank
zpool import -a
zpool import -o readonly=on tank
zfs create -o refquota=20M tank/mine
zpool import -N new
zpool import new other
zpool clear
zpool clear tank c11t0d0
zfs rollback -r tank/a@s
zfs rollback tank/a
zpool labelclear c11t0d0s0
zpool labelclear /dev/dsk/c11t0d0s0
zpool labelclear /dev/dsk/c12t0d0s0
fstyp
fstyp -v /dev/dsk/c11t0d0s0
mount -F zfs tank/a /tmp`, "\n") {
		got := zfsLine(tx, line)
		if got.Exit != cli.ExitNotSimulated || !strings.HasPrefix(got.Stderr, "not simulated: ") || got.Stdout != "" {
			t.Errorf("%s: exit %d, %s%s", line, got.Exit, got.Stdout, got.Stderr)
		}
	}
	for _, zone := range []cli.Reply{
		cli.Refusing(storage.Zfs)(tx, cli.Call{Tool: "zfs", Args: strings.Fields("list -H"), Zone: "z"}),
		cli.Refusing(storage.Zpool)(tx, cli.Call{Tool: "zpool", Args: strings.Fields("list -H"), Zone: "z"}),
		cli.Refusing(storage.Fstyp)(tx, cli.Call{Tool: "fstyp", Args: []string{"/dev/dsk/c11t0d0s0"}, Zone: "z"}),
	} {
		if zone.Exit != cli.ExitNotSimulated {
			t.Errorf("in a zone: %+v", zone)
		}
	}
}
