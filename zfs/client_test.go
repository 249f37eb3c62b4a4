package zfs

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
)

// printer is a host whose every command ends like this.
type printer struct {
	result host.Result
	err    error
	asked  []string
}

// Run is part of host.Host.
func (p *printer) Run(_ context.Context, c host.Command) (host.Result, error) {
	p.asked = append(p.asked, c.Shell())
	return p.result, p.err
}

// Dial is part of host.Host.
func (p *printer) Dial(context.Context, string, string) (net.Conn, error) { panic("nobody dials") }

// DeviceVersion is part of host.Host.
func (*printer) DeviceVersion(context.Context, host.Device) (int, error) { return 0, fs.ErrNotExist }

// Files is part of host.Host.
func (p *printer) Files() host.Files { panic("no files") }

func TestListIsOneCommand(t *testing.T) {
	f := newFake(t, tankA())
	got, err := List(t.Context(), f, []string{"tank/a"}, []string{"x:y", "x:y"})
	if err != nil || f.asked != 1 {
		t.Fatalf("%d queries, %v", f.asked, err)
	}
	if diff := cmp.Diff([]Dataset{tankA()}, got); diff != "" {
		t.Error(diff)
	}
}

func TestListOfNothingAsksNothing(t *testing.T) {
	p := &printer{err: errors.New("asked")}
	if got, err := List(t.Context(), p, nil, nil); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestQueriesThatFailAreNoAbsence(t *testing.T) {
	gone := host.Result{Exit: 1, Stderr: []byte("cannot open 'tank/a': dataset does not exist\n")}
	other := host.Result{Exit: 1, Stderr: []byte("cannot open 'tank/b': dataset does not exist\n")}
	part := host.Result{Exit: 1, Stdout: []byte("tank\ttype\tfilesystem\t-\n")}
	for name, c := range map[string]struct {
		p        printer
		notFound bool
	}{
		"the dataset is gone":     {printer{result: gone}, true},
		"another dataset is gone": {printer{result: other}, false},
		"a part, and exit 1":      {printer{result: part}, false},
		"there is no command":     {printer{err: host.ErrNoCommand}, false},
		"cut off":                 {printer{result: host.Result{Stdout: []byte("tank/a\ttype")}}, false},
		"nothing":                 {printer{}, false},
	} {
		if _, err := Get(t.Context(), &c.p, "tank/a"); err == nil || errors.Is(err, host.ErrNotFound) != c.notFound {
			t.Errorf("get, %s: %v", name, err)
		}
		if name == "nothing" {
			continue
		}
		got, err := List(t.Context(), &c.p, []string{"tank/a"}, nil)
		if got != nil || err == nil || errors.Is(err, host.ErrNotFound) != c.notFound {
			t.Errorf("list, %s: %v, %v", name, got, err)
		}
		if pools, err := Pools(t.Context(), &c.p); pools != nil || err == nil || errors.Is(err, host.ErrNotFound) {
			t.Errorf("pools, %s: %v, %v", name, pools, err)
		}
	}
}

func TestListRefusesWhatZFSWouldMisread(t *testing.T) {
	for _, c := range []struct{ roots, user []string }{
		{[]string{"-t"}, nil}, {[]string{"tank@a"}, nil}, {[]string{""}, nil},
		{[]string{"tank"}, []string{"quota"}}, {[]string{"tank"}, []string{"x:y,guid"}}, {[]string{"tank"}, []string{""}},
	} {
		p := &printer{}
		_, err := List(t.Context(), p, c.roots, c.user)
		if _, ok := errors.AsType[*NameError](err); !ok || len(p.asked) > 0 {
			t.Errorf("%q, %q: %v, ran %q", c.roots, c.user, err, p.asked)
		}
	}
}
