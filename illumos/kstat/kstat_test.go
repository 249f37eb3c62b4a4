package kstat

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/hosttest"
)

func TestParse(t *testing.T) {
	got, err := Parse("link:0:net0:obytes64\t10\nlink:0:net0:rbytes64\t20\n" +
		"zones:3:propolis_instance_78479771-502:nsec_sys\t3000000000\nzones:3:propolis_instance_78479771-502:nsec_user\t500000000\n" +
		"zones:3:propolis_instance_78479771-502:zonename\tpropolis_instance_78479771-502f-5f93-b67f-47e188336ec2\n" +
		"zones:4:began:nsec_sys\t7\n")
	want := Usage{
		CPU:   map[string]time.Duration{"propolis_instance_78479771-502f-5f93-b67f-47e188336ec2": 3500 * time.Millisecond},
		Links: map[string]Bytes{"net0": {In: 20, Out: 10}},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, %s", err, diff)
	}
	for _, out := range []string{"x\n", "a:b:c\t1\n", "a:b:c:d:e\t1\n", "link:0:net0:obytes64\tmany\n", "link:0:net0:obytes64\t-1\n"} {
		if _, err := Parse(out); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %v", out, err)
		}
	}
}

// What is read fits what the simulated sled prints.
func TestTheSimulatedSled(t *testing.T) {
	sled := sim.New(sim.Options{}, hosttest.Files)
	defer sled.Close()
	before := time.Now()
	booted, err := Booted(t.Context(), sled.Host())
	if err != nil || booted.After(before) || before.Sub(booted) > time.Minute {
		t.Errorf("booted %v, %v", booted, err)
	}
	usage, err := Query(t.Context(), sled.Host())
	if _, global := usage.CPU["global"]; !global || len(usage.Links) == 0 || err != nil {
		t.Errorf("%+v, %v", usage, err)
	}
}

func TestAHostThatDoesNotTell(t *testing.T) {
	for name, result := range map[string]host.Result{"nothing fits": {Exit: 1}, "nonsense": {Stdout: []byte("x")}, "two": {Stdout: []byte("unix:0:system_misc:boot_time\t1\nunix:0:system_misc:boot_time\t1\n")}, "no number": {Stdout: []byte("unix:0:system_misc:boot_time\tx\n")}} {
		h := says(result)
		if _, err := Booted(t.Context(), h); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := Query(t.Context(), h); err == nil && name != "two" {
			t.Errorf("%s: no error of Query", name)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("zones:3:a:zonename\ta\nzones:3:a:nsec_sys\t3\n")
	f.Add(strings.Repeat("link:0:a:obytes64\t18446744073709551615\n", 2))
	f.Fuzz(func(t *testing.T, out string) {
		if u, err := Parse(out); err == nil && (u.CPU == nil || u.Links == nil) {
			t.Errorf("%q: %+v", out, u)
		}
	})
}

// says is a host whose commands all end so.
type says host.Result

func (s says) Run(context.Context, host.Command) (host.Result, error) { return host.Result(s), nil }

func (says) Dial(context.Context, string, string) (net.Conn, error) { panic("nothing to dial") }

func (says) DeviceVersion(context.Context, host.Device) (int, error) { return 0, fs.ErrNotExist }

func (says) Files() host.Files { panic("no files are read") }
