package tools

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/tools/storage"
	"github.com/sledctl/sledctl/sim/world"
)

// The forms for a person: zfs_do_list, zfs_do_get and zpool_do_list.
func TestListingsForAPerson(t *testing.T) {
	session(t, zfsTx(t), `$ zfs create tank/b
$ zfs create -o mountpoint=legacy tank/a
$ zfs create tank/b/c
$ zfs create -sV 1M tank/v
$ zfs snapshot tank/b@1
$ zfs list -r tank
NAME       USED  AVAIL  REFER  MOUNTPOINT
tank       440K  2.82T    96K  /tank
tank/a      96K  2.82T    96K  legacy
tank/b     192K  2.82T    96K  /tank/b
tank/b/c    96K  2.82T    96K  /tank/b/c
tank/v      56K  2.82T    56K  -
$ zfs list -t snapshot
NAME       USED  AVAIL  REFER  MOUNTPOINT
tank/b@1      0      -    96K  -
$ zfs list -d 1 -o name,compression,readonly tank/b
NAME      COMPRESS  RDONLY
tank/b         off     off
tank/b/c       off     off
$ zfs list -Hp -o name,quota -d 1 -t filesystem tank/b
tank/b→0
tank/b/c→0
$ zfs get quota,mountpoint tank/b
NAME    PROPERTY    VALUE    SOURCE
tank/b  quota       none     default
tank/b  mountpoint  /tank/b  default
$ zpool list tank
NAME   SIZE  ALLOC   FREE  CKPOINT  EXPANDSZ   FRAG    CAP  DEDUP    HEALTH  ALTROOT
tank  2.91T   440K  2.91T        -         -     0%     0%  1.00x    ONLINE  -
`)
}

func TestZfsCreate(t *testing.T) {
	// zfs_do_create in usr/src/cmd/zfs/zfs_main.c; zfs(8).
	session(t, zfsTx(t), `$ zfs create tank/a
$ zfs create tank/a
! cannot create 'tank/a': dataset already exists
= 1
$ zfs create tank/x/y
! cannot create 'tank/x/y': parent does not exist
= 1
$ zfs create nope/x
! cannot create 'nope/x': no such pool 'nope'
= 1
$ zfs create -o mountpoint=/usr tank/u
! cannot mount '/usr': directory is not empty
! filesystem successfully created, but not mounted
= 1
$ zfs list -H -o name,mounted tank/u
tank/u→no
`)
}

func TestZfsCreateVolume(t *testing.T) {
	// zfs_do_create: a volume's size is rounded up to its block size; the space is
	// reserved with that of its metadata.
	session(t, zfsTx(t), `$ zfs create -V 1G tank/v
$ zfs get -Hp -o property,value,source type,volsize,volblocksize,refreservation,mountpoint tank/v
type→volume→-
volsize→1073741824→local
volblocksize→8192→default
refreservation→1109393408→local
mountpoint→-→-
$ zfs create -V 1P tank/x
! cannot create 'tank/x': out of space
= 1
$ zfs create -V 1G tank/v
! cannot create 'tank/v': dataset already exists
= 1
`)
}

func TestZfsReservations(t *testing.T) {
	// dsl_dir_set_reservation_check, dsl_dir_set_quota_check, and parent_delta of dsl_dir.c: what
	// is reserved is used to what is above. Small blocks take more metadata.
	session(t, zfsTx(t), `$ zfs create -o canmount=off -o quota=1G -o reservation=1G tank/a
$ zfs get -Hp -o property,value used,reservation,quota tank/a
used→98304
reservation→1073741824
quota→1073741824
$ zfs create -o reservation=2G -o quota=1G tank/b
! cannot create 'tank/b': out of space
= 1
$ zfs create -o reservation=1P tank/b
! cannot create 'tank/b': out of space
= 1
$ zfs create -V 1G -o volblocksize=4096 tank/a/vol
! cannot create 'tank/a/vol': out of space
= 1
$ zfs set quota=512M tank/a
! cannot set property for 'tank/a': size is less than current used or reserved space
= 1
$ zfs set reservation=2G tank/a
! cannot set property for 'tank/a': size is greater than available space
= 1
$ zfs set quota=1094M tank/a
$ zfs set reservation=1094M tank/a
$ zfs create -V 1G -o volblocksize=4096 tank/a/vol
$ zfs get -Hp -o property,value,source volblocksize,refreservation tank/a/vol
volblocksize→4096→local
refreservation→1142947840→local
$ zfs set reservation=none tank/a
$ zfs get -Hp -o value,source reservation tank/a
0→local
`)
}

func TestZfsVolumeGrowsAndIsRenamed(t *testing.T) {
	// zfs_valid_proplist and zfs_add_synthetic_resv: the reservation of a volume follows its
	// size if it was that of its size before. zfs_rename.
	session(t, zfsTx(t), `$ zfs create -V 1G -o volblocksize=16384 -o sledctl:volume=i tank/v
$ zfs create -sV 1G tank/thin
$ zfs get -Hp -o property,value,source volsize,volblocksize,refreservation tank/v
volsize→1073741824→local
volblocksize→16384→local
refreservation→1092616192→local
$ zfs set volsize=2G tank/v
$ zfs set volsize=1000 tank/v
! cannot set property for 'tank/v': 'volsize' must be a multiple of volume block size (16K)
= 1
$ zfs set volsize=0 tank/v
! cannot set property for 'tank/v': 'volsize' cannot be zero
= 1
$ zfs set volsize=1P tank/v
! cannot set property for 'tank/v': size is greater than available space
= 1
$ zfs set volsize=1P tank/thin
$ zfs get -Hp -o name,property,value volsize,refreservation tank/v tank/thin
tank/thin→volsize→1125899906842624
tank/thin→refreservation→0
tank/v→volsize→2147483648
tank/v→refreservation→2183135232
$ zfs create -V 1G -o volblocksize=5000 tank/x
! cannot create 'tank/x': 'volblocksize' must be power of 2 from 512B to 128K
= 1
$ zfs snapshot tank/v@s
$ zfs rename tank/v tank/thin
! cannot rename 'tank/v': dataset already exists
= 1
$ zfs rename tank/v tank/no/v
! cannot create 'tank/no/v': parent does not exist
= 1
$ zfs rename tank/v tank/w
$ zfs list -Hr -o name -t volume,snapshot tank
tank/thin
tank/w
tank/w@s
$ zfs rename tank/v tank/w
! cannot open 'tank/v': dataset does not exist
= 1
`)
}

func TestZfsListShowsWhatIsAskedFor(t *testing.T) {
	// zfs_do_list and zfs_iter.c.
	tx := zfsTx(t)
	session(t, tx, `$ zfs create tank/b
$ zfs create -o mountpoint=legacy tank/a
$ zfs create tank/b/c
$ zfs create -sV 1M tank/v
$ zfs snapshot tank/b@2
$ zfs snapshot tank/b@1
$ zfs snapshot tank/b/c@1
$ zfs list -H -o name,type -t all -r tank/b
tank/b→filesystem
tank/b@2→snapshot
tank/b@1→snapshot
tank/b/c→filesystem
tank/b/c@1→snapshot
$ zfs list -H -o name tank/b@1 tank/b/c
tank/b@1
tank/b/c
$ zfs list -H -o name tank/b tank/none tank/a tank/b
! cannot open 'tank/none': dataset does not exist
tank/a
tank/b
= 1
$ zfs list -H -o name,org.x:y tank/a
tank/a→-
$ zfs list -Hr -t snapshot tank/a
`)
}

func TestZfsListWithoutOperandsShowsAllButSnapshots(t *testing.T) {
	// zfs(8): snapshots are listed with -t snapshot, or if the pool's
	// listsnapshots is on.
	tx := zfsTx(t)
	session(t, tx, `$ zfs snapshot tank@s
$ zfs list -H -o name
rpool
rpool/ROOT
rpool/ROOT/omnios-r151058
tank
$ zpool set listsnapshots=on tank
$ zfs list -H -o name
rpool
rpool/ROOT
rpool/ROOT/omnios-r151058
tank
tank@s
`)
}

func TestZfsGetShowsValuesAndSources(t *testing.T) {
	// zfs_do_get and zprop_print_one_property.
	session(t, zfsTx(t), `$ zfs create -o quota=10G -o sledctl:instance=i␠1 tank/a
$ zfs create tank/a/b
$ zfs snapshot tank/a/b@s
$ zfs get -Hp -r -o name,property,value,source type,quota,mountpoint,mounted,sledctl:instance,org.x:y tank/a
tank/a→type→filesystem→-
tank/a→quota→10737418240→local
tank/a→mountpoint→/tank/a→default
tank/a→mounted→yes→-
tank/a→sledctl:instance→i 1→local
tank/a→org.x:y→-→-
tank/a/b→type→filesystem→-
tank/a/b→quota→0→default
tank/a/b→mountpoint→/tank/a/b→default
tank/a/b→mounted→yes→-
tank/a/b→sledctl:instance→i 1→inherited from tank/a
tank/a/b→org.x:y→-→-
tank/a/b@s→type→snapshot→-
tank/a/b@s→quota→-→-
tank/a/b@s→mountpoint→-→-
tank/a/b@s→mounted→-→-
tank/a/b@s→sledctl:instance→i 1→inherited from tank/a
tank/a/b@s→org.x:y→-→-
$ zfs get -H quota,available tank/a
tank/a→quota→10G→local
tank/a→available→10.0G→-
$ zfs get -H -s local,inherited quota,compression,sledctl:instance tank/a/b
tank/a/b→sledctl:instance→i 1→inherited from tank/a
$ zfs get -Ho value name /tank/a/b
tank/a/b
$ zfs get -H -t volume -r name tank/a
$ zfs get -H quota tank/none
! cannot open 'tank/none': dataset does not exist
= 1
`)
}

func TestZfsSetAndInherit(t *testing.T) {
	// zfs_do_set and zfs_do_inherit.
	session(t, zfsTx(t), `$ zfs create tank/a
$ zfs create tank/a/b
$ zfs set quota=5G compression=lz4 tank/a
$ zfs get -Ho value,source quota,compression tank/a
5G→local
lz4→local
$ zfs set org.x:y=z tank/a tank/none
! cannot open 'tank/none': dataset does not exist
= 1
$ zfs get -Ho source org.x:y tank/a tank/a/b
local
inherited from tank/a
$ zfs set used=1 tank/a
! cannot set property for 'tank/a': 'used' is readonly
= 1
$ zfs set bogus=1 tank/a
! cannot set property for 'tank/a': invalid property 'bogus'
= 1
$ zfs set quota=10K tank/a
! cannot set property for 'tank/a': size is less than current used or reserved space
= 1
$ zfs inherit compression tank/a
$ zfs inherit org.x:y tank/a
$ zfs inherit org.x:never tank/a
$ zfs get -Ho value,source compression,org.x:y tank/a
off→default
-→-
`)
}

func TestZfsSnapshotCloneAndDestroy(t *testing.T) {
	// zfs_do_snapshot, zfs_do_clone, zfs_do_destroy.
	session(t, zfsTx(t), `$ zfs create tank/a
$ zfs create tank/a/b
$ zfs snapshot -r -o org.x:why=test tank/a@s
$ zfs list -H -o name,org.x:why -t snapshot
tank/a@s→test
tank/a/b@s→test
$ zfs snapshot tank/a@s
! cannot create snapshot 'tank/a@s': dataset already exists
= 1
$ zfs snapshot tank/a@t tank/a/b@s
! cannot create snapshot 'tank/a/b@s': dataset already exists
! no snapshots were created
= 1
$ zfs snapshot tank/none@s
! cannot open 'tank/none': dataset does not exist
! usage
= 2
$ zfs clone -o sledctl:instance=1 tank/a@s tank/c
$ zfs get -Ho value,source origin,mounted,sledctl:instance tank/c
tank/a@s→-
yes→-
1→local
$ zfs clone tank/a@s tank/c
! cannot create 'tank/c': dataset already exists
= 1
$ zfs clone tank/a@none tank/d
! cannot open 'tank/a@none': dataset does not exist
= 1
$ zfs destroy tank/a
! cannot destroy 'tank/a': filesystem has children
! use '-r' to destroy the following datasets:
! tank/a/b@s
! tank/a/b
! tank/a@s
= 1
$ zfs destroy -r tank/a
! cannot destroy 'tank/a': filesystem has dependent clones
! use '-R' to destroy the following datasets:
! tank/c
= 1
$ zfs destroy tank/a@s
! cannot destroy 'tank/a@s': snapshot has dependent clones
! use '-R' to destroy the following datasets:
! tank/c
= 1
$ zfs destroy tank@s
! could not find any snapshots to destroy; check snapshot names.
= 1
$ zfs destroy tank
! cannot destroy 'tank': operation does not apply to pools
! use 'zfs destroy -r tank' to destroy all datasets in the pool
! use 'zpool destroy tank' to destroy the pool itself
= 1
$ zfs destroy tank/c
$ zfs destroy -r tank/a
$ zfs list -H -o name -r tank
tank
`)
}

func TestZfsMountAndUnmount(t *testing.T) {
	// share_mount and unshare_unmount.
	session(t, zfsTx(t), `$ zfs create tank/a
$ zfs create -o canmount=noauto tank/n
$ zfs create -o mountpoint=legacy tank/l
$ zfs mount tank/a
! cannot mount 'tank/a': filesystem already mounted
= 1
$ zfs mount tank/l
! cannot mount 'tank/l': legacy mountpoint
! use mount(8) to mount this filesystem
= 1
$ zfs unmount tank/a
$ zfs unmount tank/a
! cannot unmount 'tank/a': not currently mounted
= 1
$ zfs mount -a
$ zfs get -Ho value mounted tank/a tank/n
yes
no
`)
}

func TestZfsKeys(t *testing.T) {
	// load_unload_keys: it returns -1 when a key fails, so the exit code is 255.
	tx := zfsTx(t)
	key := strings.Repeat("k", 32)
	create := cli.Call{Tool: "zfs", Zone: world.GlobalZone, Stdin: []byte(key), Args: strings.Fields(
		"create -o encryption=aes-256-gcm -o keyformat=raw -o keylocation=file:///dev/stdin tank/e")}
	if r := storage.Zfs(tx, create); r.Exit != 0 {
		t.Fatal(r.Stderr)
	}
	session(t, tx, `$ zfs get -Ho value encryption,keyformat,keylocation,keystatus,encryptionroot tank/e
aes-256-gcm
raw
file:///dev/stdin
available
tank/e
$ zfs load-key tank/e
! Key load error: Key already loaded for 'tank/e'.
= 255
$ zfs unload-key tank/e
! Key unload error: 'tank/e' is busy.
= 255
$ zfs unmount tank/e
$ zfs unload-key tank/e
$ zfs mount tank/e
! cannot mount 'tank/e': encryption key not loaded
= 1
$ zfs load-key -L file:///etc/release tank/e
! Key load error: Raw key too short (expected 32).
= 255
$ zfs change-key tank
! Key change error: Dataset not encrypted.
= 255
`)
	load := cli.Call{Tool: "zfs", Args: []string{"load-key", "tank/e"}, Stdin: []byte(key), Zone: world.GlobalZone}
	if diff := cmp.Diff(cli.Reply{}, storage.Zfs(tx, load)); diff != "" {
		t.Error(diff)
	}
}

// manyDatasets adds n instances' datasets, half of them snapshots.
func manyDatasets(tx *world.Tx, n int) {
	for i := range n / 2 {
		name := fmt.Sprintf("tank/propolis_instance_%06d", i)
		tx.State.Datasets[name] = &world.Dataset{Name: name, Type: "filesystem", GUID: uint64(1000 + i), Created: uint64(i + 10), Used: 1 << 20,
			Mounted: "/tank/" + strings.TrimPrefix(name, "tank/"), Local: map[string]string{"sledctl:instance": "x"}}
		snapshot := fmt.Sprintf("%s@s%d", name, i)
		tx.State.Datasets[snapshot] = &world.Dataset{Name: snapshot, Type: "snapshot", GUID: uint64(1000000 + i), Created: uint64(i + 11)}
	}
}

func BenchmarkListingTenThousandDatasets(b *testing.B) {
	tx := zfsTx(b)
	manyDatasets(tx, 10000)
	c := cli.Call{Tool: "zfs", Zone: world.GlobalZone, Args: []string{"get", "-Hp", "-r", "-o", "name,property,value,source",
		"type,guid,mountpoint,mounted,origin,used,available,quota,reservation,compression,canmount,sledctl:instance", "tank"}}
	for b.Loop() {
		if r := storage.Zfs(tx, c); r.Exit != 0 || len(r.Stdout) < 100000 {
			b.Fatal(r.Stderr)
		}
	}
}
