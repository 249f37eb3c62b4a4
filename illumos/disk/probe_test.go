package disk

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest"
)

const vdev = "/var/tmp/u2_0.vdev"

// looked is a host whose fstyp ends like this, with one file of that content.
func looked(t *testing.T, data []byte, r host.Result) (*printer, Disk) {
	t.Helper()
	files := hosttest.Memory()
	if err := host.MkdirAll(files, "/var/tmp", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := host.WriteFile(files, vdev, data, 0o600); err != nil {
		t.Fatal(err)
	}
	d := Disk{Name: "u2_0", Kind: U2, Device: vdev, PoolDevice: vdev, Size: uint64(len(data))}
	return &printer{results: map[string]host.Result{"fstyp": r}, files: files}, d
}

// with puts a byte into zeros.
func with(size, at int) []byte {
	data := make([]byte, size)
	data[at] = 1
	return data
}

func TestProbe(t *testing.T) {
	const size = 4 << 20
	zeros := make([]byte, size)
	nothing := host.Result{Exit: 1, Stderr: []byte(noMatch)}
	label := host.Result{Stdout: []byte("zfs\nversion: 5000\nname: 'oxp_1'\npool_guid: 7\n")}
	oxp := Pool{Name: "oxp_1", GUID: "7", Devices: []string{vdev}}
	imported, other, elsewhere := oxp, oxp, oxp
	data := Content{State: Other, Other: "data that fstyp does not know", Device: vdev}
	imported.Imported, other.GUID, elsewhere.Devices = true, "8", []string{"/var/tmp/u2_1.vdev"}
	for name, c := range map[string]struct {
		data  []byte
		fstyp host.Result
		pools []Pool
		want  Content
		fails bool
	}{
		"zeros":                             {zeros, nothing, nil, Content{State: Blank, Device: vdev}, false},
		"zeros, and pools elsewhere":        {zeros, nothing, []Pool{elsewhere}, Content{State: Blank, Device: vdev}, false},
		"a small file of zeros":             {zeros[:4096], nothing, nil, Content{State: Blank, Device: vdev}, false},
		"a byte at the beginning":           {with(size, 0), nothing, nil, data, false},
		"a byte in the second label":        {with(size, labels-1), nothing, nil, data, false},
		"a byte in the last label":          {with(size, size-1), nothing, nil, data, false},
		"a byte in the third label":         {with(size, size-labels), nothing, nil, data, false},
		"a file system":                     {zeros, host.Result{Stdout: []byte("ufs\n")}, nil, Content{State: Other, Other: "a file system: ufs", Device: vdev}, false},
		"a label":                           {zeros, label, nil, Content{State: HasPool, Pool: oxp, Device: vdev}, false},
		"a label of a pool that was found":  {zeros, label, []Pool{elsewhere, oxp}, Content{State: HasPool, Pool: oxp, Device: vdev}, false},
		"an imported pool, whatever fstyp":  {zeros, nothing, []Pool{imported}, Content{State: HasPool, Pool: imported, Device: vdev}, false},
		"a label of another than was found": {zeros, label, []Pool{other}, Content{}, true},
		"no label of what was found":        {zeros, nothing, []Pool{oxp}, Content{}, true},
		"an empty file":                     {nil, nothing, nil, Content{}, true},

		// None of these is an answer.
		"cannot open":            {zeros, host.Result{Exit: 7, Stderr: []byte("unknown_fstyp (cannot open device)\n")}, nil, Content{}, true},
		"the words, and exit 2":  {zeros, host.Result{Exit: 2, Stderr: []byte(noMatch)}, nil, Content{}, true},
		"exit 1, and no words":   {zeros, host.Result{Exit: 1}, nil, Content{}, true},
		"exit 1, and more words": {zeros, host.Result{Exit: 1, Stderr: []byte("fstyp: I/O error\n" + noMatch)}, nil, Content{}, true},
		"the words, and exit 0":  {zeros, host.Result{Stderr: []byte(noMatch)}, nil, Content{}, true},
		"many matches":           {zeros, host.Result{Exit: 2, Stderr: []byte("unknown_fstyp (multiple matches)\n")}, nil, Content{}, true},
		"nothing at all":         {zeros, host.Result{}, nil, Content{}, true},
		"half a label":           {zeros, host.Result{Stdout: []byte("zfs\nname: 'a'\n")}, nil, Content{}, true},
	} {
		p, d := looked(t, c.data, c.fstyp)
		got, err := Probe(t.Context(), p, d, c.pools)
		byName := cmp.Transformer("pool", func(p Pool) string { return p.Name + p.GUID })
		if diff := cmp.Diff(c.want, got, byName); diff != "" || (err != nil) != c.fails {
			t.Errorf("%s: %v: %s", name, err, diff)
		}
		words := strings.TrimSpace(string(c.fstyp.Stderr))
		if c.fails && c.fstyp.Exit > 1 && !strings.Contains(err.Error(), words) {
			t.Errorf("%s: the host's words are lost: %v", name, err)
		}
	}
}

func TestWhatCannotBeReadIsNotBlank(t *testing.T) {
	nothing := host.Result{Exit: 1, Stderr: []byte(noMatch)}
	for name, spoil := range map[string]func(*printer, *Disk){
		"it cannot be opened": func(p *printer, _ *Disk) {
			p.files.(*hosttest.MemoryFiles).Fail(func(string, string) error { return syscall.EIO })
		},
		"it is gone":            func(p *printer, _ *Disk) { _ = p.files.Remove(vdev) },
		"fstyp does not run":    func(p *printer, _ *Disk) { p.err = host.ErrNoCommand },
		"it is said to be gone": func(_ *printer, d *Disk) { d.Absent = true },
		"it has become short":   func(_ *printer, d *Disk) { d.Size *= 100 },
	} {
		p, d := looked(t, make([]byte, 4<<20), nothing)
		spoil(p, &d)
		if got, err := Probe(t.Context(), p, d, nil); err == nil || got.State != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	p, d := looked(t, nil, nothing)
	d.Absent = true
	if _, err := Probe(t.Context(), p, d, nil); !errors.Is(err, host.ErrNotFound) {
		t.Error(err)
	}
}
