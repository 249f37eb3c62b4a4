package zfs

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
)

// pools is a host with imported pools, by name, and answers for commands that
// change something: by subcommand, one after the other.
type pools struct {
	guids   map[string]string
	answers map[string][]poolAnswer
	ran     []string
}

type poolAnswer struct {
	exit   int
	stderr string
	err    error
	then   func(*pools)
}

// Dial is part of host.Host.
func (p *pools) Dial(context.Context, string, string) (net.Conn, error) { panic("nobody dials") }

// DeviceVersion is part of host.Host.
func (*pools) DeviceVersion(context.Context, host.Device) (int, error) { return 0, fs.ErrNotExist }

// Files is part of host.Host.
func (p *pools) Files() host.Files { panic("no files") }

// Run is part of host.Host.
func (p *pools) Run(ctx context.Context, c host.Command) (host.Result, error) {
	if err := ctx.Err(); err != nil {
		return host.Result{}, err
	}
	name := c.Args[len(c.Args)-1]
	if c.Args[0] == "list" {
		guid, there := p.guids[name]
		if !there {
			return host.Result{Exit: 1, Stderr: []byte("cannot open '" + name + "': no such pool\n")}, nil
		}
		return host.Result{Stdout: []byte(name + "\t" + guid + "\n")}, nil
	}
	p.ran = append(p.ran, c.Shell())
	a := poolAnswer{}
	if queue := p.answers[c.Args[0]]; len(queue) > 0 {
		a, p.answers[c.Args[0]] = queue[0], queue[1:]
	}
	if a.then != nil {
		a.then(p)
	}
	return host.Result{Exit: a.exit, Stderr: []byte(a.stderr)}, a.err
}

func has(name, guid string) func(*pools) {
	return func(p *pools) { p.guids[name] = guid }
}

func lost(name string) func(*pools) {
	return func(p *pools) { delete(p.guids, name) }
}

func TestStepsOfPools(t *testing.T) {
	const notMounted = "cannot mount '/pool/ext/1/a': directory is not empty\n"
	taking := ImportPool{Name: "p", GUID: "7"}
	exported := []string{"zpool import 7", "zpool export p"}
	for name, c := range map[string]struct {
		step interface {
			Do(context.Context, host.Host) error
		}
		there   map[string]string
		answers map[string][]poolAnswer
		ran     []string
		kind    error // of the failure; nil: none
		left    bool
	}{
		"a pool is made": {
			step: CreatePool{Name: "p", Device: "c1t0d0"}, ran: []string{"zpool create p c1t0d0"},
		},
		"its device has one": {
			step: CreatePool{Name: "p", Device: "/d"}, ran: []string{"zpool create p /d"}, kind: ErrInUse,
			answers: map[string][]poolAnswer{"create": {{exit: 1, stderr: "invalid vdev specification\nuse '-f' to override the following errors:\n" +
				"/d is part of exported or potentially active ZFS pool q. Please see zpool(8).\n"}}},
		},
		"it is made, and zpool fails": {
			step: CreatePool{Name: "p", Device: "/d"}, ran: []string{"zpool create p /d"}, kind: host.ErrState, left: true,
			answers: map[string][]poolAnswer{"create": {{exit: 1, stderr: "cannot mount 'p': no mountpoint set\n", then: has("p", "7")}}},
		},
		"it fails, and nothing is made": {
			step: CreatePool{Name: "p", Device: "/d"}, ran: []string{"zpool create p /d"}, kind: ErrIO,
			answers: map[string][]poolAnswer{"create": {{exit: 1, stderr: "cannot create 'p': I/O error\n"}}},
		},
		"it ends after sledctl": {
			step: CreatePool{Name: "p", Device: "/d"}, ran: []string{"zpool create p /d"}, kind: host.ErrStillRunning,
			answers: map[string][]poolAnswer{"create": {{err: host.ErrStillRunning}}},
		},
		"a pool is imported": {
			step: taking, ran: []string{"zpool import 7"},
			answers: map[string][]poolAnswer{"import": {{then: has("p", "7")}}},
		},
		"it is, and a mountpoint is taken": {
			step: taking, ran: []string{"zpool import 7"},
			answers: map[string][]poolAnswer{"import": {{exit: 1, stderr: notMounted + notMounted, then: has("p", "7")}}},
		},
		"it is not, whatever zpool says about mountpoints": {
			step: taking, ran: []string{"zpool import 7"}, kind: host.ErrNotFound,
			answers: map[string][]poolAnswer{"import": {{exit: 1, stderr: notMounted}}},
		},
		"it is, and something else went wrong": {
			step: taking, ran: exported, kind: ErrIO,
			answers: map[string][]poolAnswer{
				"import": {{exit: 1, stderr: notMounted + "cannot import 'p': I/O error\n", then: has("p", "7")}},
				"export": {{then: lost("p")}},
			},
		},
		"another one came": {
			step: taking, ran: []string{"zpool import 7"}, kind: host.ErrRefused, left: true,
			answers: map[string][]poolAnswer{"import": {{then: has("p", "8")}}},
		},
		"it was imported before": {
			step: taking, ran: []string{"zpool import 7"}, kind: host.ErrExists, there: map[string]string{"p": "7"},
			answers: map[string][]poolAnswer{"import": {{exit: 1, stderr: "cannot import '7': a pool with that name is already created/imported,\n" +
				"and no additional pools with that name were found\n"}}},
		},
		"another system has it": {
			step: taking, ran: []string{"zpool import 7"}, kind: ErrInUse,
			answers: map[string][]poolAnswer{"import": {{exit: 1, stderr: "cannot import 'p': pool was previously in use from another system.\n"}}},
		},
		"a pool is exported": {
			step: ExportPool{Name: "p", GUID: "7"}, ran: []string{"zpool export p"}, there: map[string]string{"p": "7"},
		},
		"it is busy for a while": {
			step: ExportPool{Name: "p", GUID: "7"}, there: map[string]string{"p": "7"},
			ran: []string{"zpool export p", "zpool export p", "zpool export p"},
			answers: map[string][]poolAnswer{"export": {
				{exit: 1, stderr: "cannot unmount '/pool/ext/1/a': Device busy\n"}, {exit: 1, stderr: "cannot export 'p': pool is busy\n"},
			}},
		},
		"it goes while it is busy": {
			step: ExportPool{Name: "p", GUID: "7"}, there: map[string]string{"p": "7"}, ran: []string{"zpool export p"},
			answers: map[string][]poolAnswer{"export": {{exit: 1, stderr: "cannot export 'p': pool is busy\n", then: lost("p")}}},
		},
		"it is another one": {
			step: ExportPool{Name: "p", GUID: "7"}, there: map[string]string{"p": "8"}, kind: host.ErrRefused,
		},
		"it is missing": {step: ExportPool{Name: "p"}, kind: host.ErrNotFound},
		"a property is set": {
			step: SetPool{Pool: "p", Name: "failmode", Value: "continue"}, ran: []string{"zpool set failmode=continue p"},
		},
		"a property of no pool": {
			step: SetPool{Pool: "p", Name: "failmode", Value: "continue"}, ran: []string{"zpool set failmode=continue p"}, kind: host.ErrNotFound,
			answers: map[string][]poolAnswer{"set": {{exit: 1, stderr: "cannot open 'p': no such pool\n"}}},
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := &pools{guids: map[string]string{}, answers: c.answers}
			for k, v := range c.there {
				h.guids[k] = v
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := c.step.Do(ctx, h)
			if c.kind == nil && err != nil || c.kind != nil && !errors.Is(err, c.kind) {
				t.Errorf("%s: %v, want %v", name, err, c.kind)
			}
			if _, left := errors.AsType[*host.LeftoverError](err); left != c.left {
				t.Errorf("%s: left something %v: %v", name, left, err)
			}
			if diff := cmp.Diff(c.ran, h.ran); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		})
	}
}

func TestExportOfABusyPoolEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := make([]poolAnswer, 1000)
		for i := range busy {
			busy[i] = poolAnswer{exit: 1, stderr: "cannot export 'p': pool is busy\n"}
		}
		h := &pools{guids: map[string]string{"p": "7"}, answers: map[string][]poolAnswer{"export": busy}}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err := ExportPool{Name: "p"}.Do(ctx, h)
		if !errors.Is(err, host.ErrBusy) || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

func TestStepsOfPoolsRefuseWhatZpoolWouldMisread(t *testing.T) {
	for _, s := range []interface {
		Do(context.Context, host.Host) error
	}{
		CreatePool{Name: "-f", Device: "d"}, CreatePool{Name: "p", Device: "mirror"}, CreatePool{Name: "p", Device: "d", Properties: []Property{{"-x", "1"}}},
		SetPool{Pool: "p/a", Name: "failmode", Value: "x"}, SetPool{Pool: "p", Name: "", Value: "x"},
		ImportPool{Name: "p", GUID: "all"}, ImportPool{Name: "p"}, ImportPool{Name: "p", GUID: "1", Dir: "vdev"}, ImportPool{Name: "p", GUID: "1", Dir: "/a/.."},
		ExportPool{Name: "-a"},
	} {
		h := &pools{}
		if err := s.Do(t.Context(), h); err == nil || len(h.ran) > 0 {
			t.Errorf("%+v: %v, ran %q", s, err, h.ran)
		}
	}
}

func TestAFailedLookForPoolsIsNoAbsence(t *testing.T) {
	const found = "   pool: a\n     id: 1\n  state: ONLINE\n config:\n\n\ta  ONLINE\n\t  c1t0d0  ONLINE\n"
	for name, c := range map[string]struct {
		p       printer
		pools   int
		refused bool
	}{
		"found":                            {p: printer{result: host.Result{Stdout: []byte(found)}}, pools: 1},
		"none, as illumos says it":         {p: printer{result: host.Result{Exit: 1}}},
		"only destroyed ones":              {p: printer{result: host.Result{Stderr: []byte("no pools available to import\n")}}},
		"none, as Linux says it":           {p: printer{result: host.Result{Exit: 1, Stderr: []byte("no pools available to import\n")}}},
		"not even an exit code of failure": {p: printer{}, refused: true},
		"no privileges":                    {p: printer{result: host.Result{Exit: 1, Stderr: []byte("cannot discover pools: permission denied\n")}}, refused: true},
		"a missing directory":              {p: printer{result: host.Result{Exit: 1, Stderr: []byte("cannot open '/d': No such file or directory\n")}}, refused: true},
		"found, and words":                 {p: printer{result: host.Result{Stdout: []byte(found), Stderr: []byte("I/O error\n")}}, refused: true},
		"a part, and exit 1":               {p: printer{result: host.Result{Exit: 1, Stdout: []byte(found)}}, refused: true},
		"usage":                            {p: printer{result: host.Result{Exit: 2}}, refused: true},
		"a signal":                         {p: printer{result: host.Result{Exit: 139}}, refused: true},
		"cut off":                          {p: printer{result: host.Result{Stdout: []byte(found[:20])}}, refused: true},
		"no command":                       {p: printer{err: host.ErrNoCommand}, refused: true},
	} {
		got, err := FindImportable(t.Context(), &c.p, "/d")
		if len(got) != c.pools || (err != nil) != c.refused {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// forgetful is a host whose zfs has no encryption; it remembers as real ones do.
type forgetful struct {
	*host.Illumos
	asked []string
}

// Run is part of host.Host.
func (f *forgetful) Run(_ context.Context, c host.Command) (host.Result, error) {
	f.asked = append(f.asked, c.Shell())
	if len(f.asked) > 20 {
		return host.Result{}, errors.New("asked again and again")
	}
	properties := strings.Split(c.Args[len(c.Args)-2], ",")
	for _, p := range properties {
		if p == "keystatus" || p == "encryption" || p == "encryptionroot" || p == "keyformat" {
			return host.Result{Exit: 2, Stderr: []byte("bad property list: invalid property '" + p + "'\nusage:\n\tget …\n")}, nil
		}
	}
	var out strings.Builder
	for _, p := range properties {
		out.WriteString("tank\t" + p + "\t" + printed(Dataset{Name: "tank", Type: TypeFilesystem, GUID: "1"}, p) + "\t-\n")
	}
	return host.Result{Stdout: []byte(out.String())}, nil
}

func TestWhatZFSLacksIsFoundOutOnce(t *testing.T) {
	f := &forgetful{Illumos: host.NewIllumos(host.IllumosOptions{})}
	for i := range 3 {
		got, err := List(t.Context(), f, []string{"tank"}, append(Extended(), "x:y"))
		if err != nil || len(got) != 1 || got[0].Encryption != "" || got[0].Type != TypeFilesystem {
			t.Fatalf("%v, %v", got, err)
		}
		if want := 5 + i; len(f.asked) != want {
			t.Errorf("time %d: asked %d times, want %d", i, len(f.asked), want)
		}
	}
}

// TestAZpoolWithoutExactListingsIsAskedAnotherWay is how zfs-fuse 0.7.0 answers.
func TestAZpoolWithoutExactListingsIsAskedAnotherWay(t *testing.T) {
	f := &zpoolOfLinux{Illumos: host.NewIllumos(host.IllumosOptions{})}
	for range 2 {
		got, err := Pools(t.Context(), f)
		if err != nil || len(got) != 1 || got[0].GUID != "7" || got[0].Size != 0 || len(got[0].Devices) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	want := []string{"list -HpvP", "list -H", "status", "list -H", "status"}
	for i, c := range f.asked {
		if !strings.HasPrefix(c, "zpool "+want[i]) {
			t.Errorf("asked %q", f.asked)
		}
	}
}

type zpoolOfLinux struct {
	*host.Illumos
	asked []string
}

// Run is part of host.Host.
func (f *zpoolOfLinux) Run(_ context.Context, c host.Command) (host.Result, error) {
	f.asked = append(f.asked, c.Shell())
	switch {
	case c.Args[0] == "status":
		return host.Result{Stdout: []byte(strings.Split(status, "\n  pool: two")[0])}, nil
	case c.Args[1] == "-H":
		return host.Result{Stdout: []byte("tank\t7\tONLINE\twait\n")}, nil
	}
	return host.Result{Exit: 2, Stderr: []byte("invalid option 'p'\nusage:\n\tlist [-H] …\n")}, nil
}
