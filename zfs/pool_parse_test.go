package zfs

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The shapes are those of print_list_stats in usr/src/cmd/zpool/zpool_main.c:
// with the state of 2022 and later, and without.
func TestParsePools(t *testing.T) {
	out := "rpool\t137438953472\t91529478144\t45909475328\tONLINE\t123\twait\n" +
		"\t/dev/dsk/c1t1d0s1\t137438953472\t91529478144\t45909475328\t-\t-\t3\t66\t-\tONLINE\n" +
		"oxp_1\t-\t-\t-\tUNAVAIL\t18446744073709551615\t-\n" +
		"\t7043917232103245123\t-\t-\t-\t-\t-\t-\t-\t-\tUNAVAIL\n" +
		"my pool\t3\t2\t1\tDEGRADED\t7\tcontinue\n" +
		"\tmirror-0\t3\t2\t1\t-\t-\t0\t66\t-\tDEGRADED\n" +
		"\t/vdev/a b\t-\t-\t-\t-\t-\t-\t-\t-\tFAULTED\n" +
		"\t/vdev/b\t-\t-\t-\t-\t-\t-\t-\t-\tONLINE\n" +
		" logs            -      -      -        -         -      -      -      -         -\n" +
		"\t/vdev/log\t1\t0\t1\t-\t-\t0\t0\t-\tONLINE\n" +
		" spare           -      -      -        -         -      -      -      -         -\n" +
		"\t/vdev/spare\t-\t-\t-\t-\t-\t-\t-\t-\tAVAIL\n" +
		"old\t3\t2\t1\tONLINE\t8\tpanic\n" +
		"\t/vdev/c\t3\t2\t1\t-\t-\t0%\t66%\n" +
		"log      -      -      -         -      -      -\n" +
		"\t/vdev/d\t3\t2\t1\t-\t-\t0%\t66%\n"
	got, err := ParsePools([]byte(out))
	if err != nil {
		t.Fatal(err)
	}
	want := []Pool{
		{
			Name: "rpool", GUID: "123", Health: "ONLINE", Size: 137438953472, Allocated: 91529478144, Free: 45909475328, Failmode: "wait",
			Devices: []Device{{Name: "/dev/dsk/c1t1d0s1", State: "ONLINE"}},
		},
		{Name: "oxp_1", GUID: "18446744073709551615", Health: "UNAVAIL", Devices: []Device{{Name: "7043917232103245123", State: "UNAVAIL"}}},
		{
			Name: "my pool", GUID: "7", Health: "DEGRADED", Size: 3, Allocated: 2, Free: 1, Failmode: "continue",
			Devices: []Device{
				{Name: "/vdev/a b", State: "FAULTED"}, {Name: "/vdev/b", State: "ONLINE"},
				{Name: "/vdev/log", State: "ONLINE", Use: "log"}, {Name: "/vdev/spare", State: "AVAIL", Use: "spare"},
			},
		},
		{
			Name: "old", GUID: "8", Health: "ONLINE", Size: 3, Allocated: 2, Free: 1, Failmode: "panic",
			Devices: []Device{{Name: "/vdev/c"}, {Name: "/vdev/d", Use: "log"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParsePoolsRefuses(t *testing.T) {
	const pool = "rpool\t1\t2\t3\tONLINE\t9\twait\n"
	for _, out := range []string{
		"\n", "rpool\n", "rpool\t1\t2\t3\tONLINE\n", "rpool\t1\t2\t3\tONLINE\t9\twait", "rpool\t1G\t2\t3\tONLINE\t9\twait\n", "rpool\t1\t2\t3\tonline\t9\twait\n",
		"rpool\t1\t2\t3\tONLINE\t9\n", "rpool\t1\t2\t3\tONLINE\t9\tmaybe\n",
		"rpool\t1\t2\t3\tONLINE\tx\twait\n", "no pools available\n", "tank/a\t1\t2\t3\tONLINE\t9\twait\n",
		"\t/vdev/a\t3\t2\t1\t-\t-\t0%\t66%\n", pool + "\t/vdev/a\n", pool + "\t\t3\t2\t1\t-\t-\t0%\t66%\n",
		pool + "\t/vdev/a\t3\t2\t1\t-\t-\t0\t66\t-\tfine\n", pool + "\t/vdev/a\t3\t2\t1\t-\t-\t0\t66\t-\tONLINE",
	} {
		if got, err := ParsePools([]byte(out)); !errors.Is(err, ErrSyntax) || got != nil {
			t.Errorf("%q: %v, %v", out, got, err)
		}
	}
}

// What illumos prints: show_import and print_import_config in
// usr/src/cmd/zpool/zpool_main.c.
const importable = `   pool: oxp_1
     id: 3237232271474377096
  state: ONLINE
 status: Some supported features are not enabled on the pool.
 action: The pool can be imported using its name or numeric identifier, though
	some features will not be available without an explicit 'zpool upgrade'.
comment: pool: not one
 config:

	oxp_1       ONLINE
	  c1t0d0    ONLINE

   pool: away
     id: 18446744073709551615
  state: UNAVAIL
 status: One or more devices are missing from the system.
 action: The pool cannot be imported. Attach the missing
	devices and try again.
   see: http://illumos.org/msg/ZFS-8000-3C
 config:

	away                   UNAVAIL  insufficient replicas
	  mirror-0             UNAVAIL  insufficient replicas
	    /vdev/with  blank  ONLINE
	    1234567890         UNAVAIL  cannot open
	cache
	  c5t0d0
	logs	
	  c6t0d0               ONLINE

	Additional devices are known to be part of this pool, though their
	exact configuration cannot be determined.

   pool: theirs
     id: 5
  state: ONLINE
 status: The pool was last accessed by another system.
 action: The pool can be imported using its name or numeric identifier and
	the '-f' flag.
   see: http://illumos.org/msg/ZFS-8000-EY
 config:

	theirs      ONLINE
	  c1t1d0s5  ONLINE
`

// What zfs-fuse 0.7.0 printed.
const importableOnLinux = `  pool: tank
    id: 3237232271474377096
 state: ONLINE
action: The pool can be imported using its name or numeric identifier.
config:

	tank              ONLINE
	  /var/t/d0.img   ONLINE
`

func TestParseImportable(t *testing.T) {
	got, err := ParseImportable([]byte(importable))
	if err != nil {
		t.Fatal(err)
	}
	want := []Importable{
		{
			Name: "oxp_1", GUID: "3237232271474377096", State: "ONLINE", Status: "Some supported features are not enabled on the pool.",
			Devices: []Device{{Name: "c1t0d0", State: "ONLINE"}},
		},
		{
			Name: "away", GUID: "18446744073709551615", State: "UNAVAIL", Status: "One or more devices are missing from the system.",
			Devices: []Device{
				{Name: "/vdev/with  blank", State: "ONLINE"}, {Name: "1234567890", State: "UNAVAIL"},
				{Name: "c5t0d0", Use: "cache"}, {Name: "c6t0d0", State: "ONLINE", Use: "log"},
			},
		},
		{
			Name: "theirs", GUID: "5", State: "ONLINE", Status: "The pool was last accessed by another system.", Foreign: true,
			Devices: []Device{{Name: "c1t1d0s5", State: "ONLINE"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got, err = ParseImportable([]byte(importableOnLinux))
	if err != nil {
		t.Fatal(err)
	}
	want = []Importable{{Name: "tank", GUID: "3237232271474377096", State: "ONLINE", Devices: []Device{{Name: "/var/t/d0.img", State: "ONLINE"}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What zfs-fuse 0.7.0 printed, and of a second pool what illumos does.
const status = `  pool: tank
 state: ONLINE
 scrub: none requested
config:

	NAME              STATE     READ WRITE CKSUM
	tank              ONLINE       0     0     0
	  /var/t/d0.img   ONLINE       0     0     0

errors: No known data errors

  pool: two
 state: DEGRADED
status: One or more devices has been removed by the administrator.
	Sufficient replicas exist for the pool to continue functioning in a
	degraded state.
action: Online the device using 'zpool online' or replace the device with
	'zpool replace'.
  scan: none requested
config:

	NAME        STATE     READ WRITE CKSUM
	two         DEGRADED     0     0     0
	  mirror-0  DEGRADED     0     0     0
	    c1t0d0  ONLINE       0     0     0
	    c1t1d0  REMOVED      0     0     0

errors: No known data errors
`

func TestParsePlainPools(t *testing.T) {
	got, err := parsePlainPools([]byte("tank\t3237232271474377096\tONLINE\twait\ntwo\t8\tDEGRADED\tcontinue\nnew\t9\tONLINE\twait\n"), []byte(status))
	want := []Pool{
		{Name: "tank", GUID: "3237232271474377096", Health: "ONLINE", Failmode: "wait", Devices: []Device{{Name: "/var/t/d0.img", State: "ONLINE"}}},
		{
			Name: "two", GUID: "8", Health: "DEGRADED", Failmode: "continue",
			Devices: []Device{{Name: "c1t0d0", State: "ONLINE"}, {Name: "c1t1d0", State: "REMOVED"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
	for _, list := range []string{"tank\n", "tank\tx\tONLINE\twait\n", "tank\t1\tonline\twait\n", "a/b\t1\tONLINE\twait\n", "tank\t1\tONLINE\twait"} {
		if got, err := parsePlainPools([]byte(list), []byte(status)); !errors.Is(err, ErrSyntax) || got != nil {
			t.Errorf("%q: %v, %v", list, got, err)
		}
	}
	if got, err := parsePlainPools(nil, []byte("no pools available\n")); !errors.Is(err, ErrSyntax) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestParseImportableRefuses(t *testing.T) {
	const head = "   pool: a\n     id: 1\n  state: ONLINE\n"
	for name, out := range map[string]string{
		"cut off":               importable[:len(importable)-1],
		"cut off after a line":  head,
		"no device":             head + " config:\n\n\ta  ONLINE\n",
		"no id":                 "   pool: a\n  state: ONLINE\n config:\n\n\ta  ONLINE\n\t  c1t0d0  ONLINE\n",
		"no state":              "   pool: a\n     id: 1\n config:\n\n\ta  ONLINE\n\t  c1t0d0  ONLINE\n",
		"a device, no pool":     "\t  c1t0d0  ONLINE\n",
		"a field, no pool":      "     id: 1\n",
		"another language":      "nichts gefunden\n",
		"a device and no state": head + " config:\n\n\ta  ONLINE\n\t  c1t0d0\n",
		"a name of none":        "   pool: a/b\n     id: 1\n",
	} {
		if got, err := ParseImportable([]byte(out)); !errors.Is(err, ErrSyntax) || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestNamesOfDevices(t *testing.T) {
	for name, want := range map[string]string{
		"/dev/dsk/c1t0d0s0": "c1t0d0", "/dev/dsk/c1t0d0s5": "c1t0d0s5", "/dev/dsk/c1t0d0": "c1t0d0", "c1t0d0": "c1t0d0", "c1t0d0s0": "c1t0d0",
		"/var/tmp/u2_s0": "/var/tmp/u2_s0", "7043917232103245123": "7043917232103245123",
	} {
		if got := ShortDevice(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for _, good := range []string{"c1t0d0", "/dev/dsk/c1t0d0s5", "/var/tmp/u2_0.vdev"} {
		if err := validateDevice(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "-f", "mirror", "mirror-0", "raidz2", "a/b", "/a b", "/a\n", "spare"} {
		if _, ok := errors.AsType[*NameError](validateDevice(bad)); !ok {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestNamesOfPools(t *testing.T) {
	for _, good := range []string{"rpool", "oxp_8a1f2c3d-0000-4000-8000-000000000001", "a:b.c"} {
		if err := ValidatePool(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "-f", "1a", "a/b", "a@b", "mirrored", "raidz", "logs", "spare1"} {
		if _, ok := errors.AsType[*NameError](ValidatePool(bad)); !ok {
			t.Errorf("%q is taken", bad)
		}
	}
}

func FuzzParsePools(f *testing.F) {
	f.Add([]byte("rpool\t3\t2\t1\tONLINE\t1\n"))
	f.Add([]byte("rpool 10000    6000 \t\t\t 4000 ONLINE 1\n\t/a\t3\t2\t1\t-\t-\t0%\t66%\n"))
	f.Add([]byte("a\t3\t2\t1\tONLINE\t1\n log  -  -  -  -  -  -\n\t/a\t-\t-\t-\t-\t-\t-\t-\t-\tONLINE\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		got, err := ParsePools(out)
		if err != nil {
			if !errors.Is(err, ErrSyntax) || got != nil {
				t.Errorf("%v, %v", got, err)
			}
			return
		}
		seen := 0
		for _, p := range got {
			seen += 1 + len(p.Devices)
			if p.Name == "" || p.Health == "" || p.GUID == "" {
				t.Errorf("%+v of %q", p, out)
			}
			for _, d := range p.Devices {
				if d.Name == "" || !strings.Contains(string(out), "\t"+d.Name+"\t") {
					t.Errorf("%+v of %q", d, out)
				}
			}
		}
		if seen > strings.Count(string(out), "\n") {
			t.Errorf("%d pools and devices in %q", seen, out)
		}
	})
}

func FuzzParseImportable(f *testing.F) {
	f.Add([]byte(importable))
	f.Add([]byte(importableOnLinux))
	f.Fuzz(func(t *testing.T, out []byte) {
		got, err := ParseImportable(out)
		if err != nil {
			if !errors.Is(err, ErrSyntax) || got != nil {
				t.Errorf("%v, %v", got, err)
			}
			return
		}
		for _, p := range got {
			if p.Name == "" || p.GUID == "" || p.State == "" || len(p.Devices) == 0 {
				t.Errorf("%+v of %q", p, out)
			}
		}
	})
}
