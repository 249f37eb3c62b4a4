package instance

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// Without its own link the global zone would wait in vain for Propolis.
func TestTheGlobalZoneNeedsItsWay(t *testing.T) {
	c := settings()
	c.GZVNIC = "gz0"
	_, _, err := prepared().decide(t, c, operationtest.Book(t), EnsureRequest{Wanted: oneNIC()})
	if is, ok := errors.AsType[*NotPreparedError](err); !ok || is.Link != "gz0" {
		t.Errorf("error: %v", err)
	}
}

// A machine that runs is not powered off because something differs.
func TestARunningMachineThatDiffersIsAConflict(t *testing.T) {
	c := settings()
	r := made(t, c, oneNIC())
	cpus := 8
	more := oneNIC()
	more.CPUs = &cpus
	edited := func(s *scene) {
		config := s.Configs[r.Incarnation.Zone]
		config.Limitpriv = "default"
		s.Configs[r.Incarnation.Zone] = config
	}
	for name, s := range map[string]struct {
		change func(*scene)
		wanted Wanted
		field  string
	}{
		"in what is wanted":                  {func(*scene) {}, more, "cpus"},
		"in what is wanted, and is starting": {func(s *scene) { s.seen.Inside.VM.State = "Starting" }, more, "cpus"},
		"in what is wanted, its zone edited": {edited, more, "cpus"},
		"in its zone's configuration":        {edited, oneNIC(), "zone's limitpriv"},
		"in a VNIC that was deleted":         {func(s *scene) { s.dropLink(r.Incarnation.Guests[0].Name) }, oneNIC(), "VNIC " + r.Incarnation.Guests[0].Name},
		"in a VNIC of another MAC":           {func(s *scene) { s.Links[2].MAC = "02:08:20:ff:ff:ff" }, oneNIC(), "VNIC " + r.Incarnation.Guests[0].Name},
	} {
		t.Run(name, func(t *testing.T) {
			here := prepared().bring(c, r, atRunning)
			s.change(here)
			view := operationtest.Book(t, kept(t, r)...)
			_, _, err := here.decide(t, c, view, EnsureRequest{Wanted: s.wanted})
			conflict, ok := errors.AsType[*ConflictError](err)
			if !ok || !conflict.Recreate || conflict.Differences[0].Field != s.field {
				t.Fatalf("error: %v", err)
			}
			d, next, err := here.decide(t, c, view, EnsureRequest{Wanted: s.wanted, Recreate: true})
			if err != nil || next.Incarnation.Zone == r.Incarnation.Zone {
				t.Fatalf("recreated: %v, %+v", err, next.Incarnation)
			}
			if lines := told(t, d, next.Incarnation, r.Incarnation); lines[0] != "propolis.power-off web1" {
				t.Errorf("does not begin with the power-off: %q", lines)
			}
		})
	}
}

func TestWhatCannotBeIsRefusedBeforeAnythingIsChanged(t *testing.T) {
	number := func(n int) *int { return &n }
	size := func(n uint64) *uint64 { return &n }
	pool := func(s string) *string { return &s }
	address := func(s string) *record.Address { a, _ := record.ParseAddress(s); return &a }
	c := settings()
	other := made(t, c, Wanted{Ref: "web2", NICs: []record.NIC{{MAC: "02:08:20:00:00:07"}}})
	for name, s := range map[string]struct {
		wanted Wanted
		change func(*scene)
		field  string // of an InputError; else any error
	}{
		"no CPUs":                       {wanted: Wanted{CPUs: number(0)}, field: "cpus"},
		"no memory":                     {wanted: Wanted{Memory: size(0)}, field: "memory"},
		"parts of a MiB":                {wanted: Wanted{Memory: size(12345)}, field: "memory"},
		"a pool that does not exist":    {wanted: Wanted{Pool: pool("tank")}, field: "pool"},
		"no pool with a place":          {wanted: Wanted{Pool: pool("rpool")}, change: func(s *scene) { s.Datasets[1].Mounted = false }}, // it is not the operator's word that is wrong
		"an address of another network": {wanted: Wanted{Address: address("10.78.0.5/24")}, field: "address"},
		"the network's own address":     {wanted: Wanted{Address: address("10.77.0.0/24")}, field: "address"},
		"the broadcast address":         {wanted: Wanted{Address: address("10.77.0.255/24")}, field: "address"},
		"a reserved address":            {wanted: Wanted{Address: address("10.77.0.1/24")}},
		"a taken address":               {wanted: Wanted{Address: &other.Spec.Address}},
		"a taken MAC":                   {wanted: Wanted{NICs: []record.NIC{{MAC: "02:08:20:00:00:07"}}}},
		"a taken control MAC":           {wanted: Wanted{NICs: []record.NIC{{MAC: other.Control}}}},
		"a link's MAC":                  {wanted: Wanted{NICs: []record.NIC{{MAC: "02:08:20:00:00:08"}}}, change: func(s *scene) { s.Links[0].MAC = "02:08:20:00:00:08" }},
		"a link that does not exist":    {wanted: Wanted{NICs: []record.NIC{{Over: "net9"}}}, field: "nic over"},
		"a VNIC to lie over":            {wanted: Wanted{NICs: []record.NIC{{Over: "v0"}}}, change: func(s *scene) { s.Links[0].Name, s.Links[0].Class = "v0", "vnic" }, field: "nic over"},
		"a volume that does not exist":  {wanted: Wanted{Disks: []record.Disk{{Path: "/dev/zvol/rdsk/rpool/vol"}}}, field: "disk"},
		"a file system for a volume":    {wanted: Wanted{Disks: []record.Disk{{Path: "/dev/zvol/rdsk/rpool/zone"}}}, field: "disk"},
		"a file that does not exist":    {wanted: Wanted{Disks: []record.Disk{{Path: "/a"}}}, change: func(s *scene) { s.seen.Disks["/a"] = fs.ErrNotExist }, field: "disk"},
		"no control link":               {change: func(s *scene) { s.dropLink("stub0") }},
		"no Propolis on the host":       {change: func(s *scene) { s.seen.Missing = []string{"/opt/p/bin"} }},
		"a base that was reinstalled":   {change: func(s *scene) { s.Zones[1].UUID = "another" }},
		"a base that is gone":           {change: func(s *scene) { s.dropZone(baseZone().Zone) }},
		"a base of another mark":        {change: func(s *scene) { s.Datasets[2].User = nil }},
		"a name that another has":       {wanted: Wanted{Ref: "8c4a2b1e-6a57-4a5c-9d3e-0a1b2c3d4e00", Name: "web2"}},
		"a name that cannot be":         {wanted: Wanted{Ref: "8c4a2b1e-6a57-4a5c-9d3e-0a1b2c3d4e00", Name: "Web"}, field: "instance name"},
	} {
		t.Run(name, func(t *testing.T) {
			here := prepared()
			if s.change != nil {
				s.change(here)
			}
			if s.wanted.Ref == "" {
				s.wanted.Ref = "web1"
			}
			d, _, err := here.decide(t, c, operationtest.Book(t, kept(t, other)...), EnsureRequest{Wanted: s.wanted})
			input, ok := errors.AsType[*record.InputError](err)
			if err == nil || ok != (s.field != "") || ok && input.Field != s.field || !d.Plan.Empty() || len(d.OnStart) > 0 {
				t.Errorf("error: %v; plan: %v", err, d.Plan)
			}
		})
	}
}

func TestAnInstanceCannotUseItsControlMACForAGuest(t *testing.T) {
	c := settings()
	r := made(t, c, oneNIC())
	_, _, err := prepared().decide(t, c, operationtest.Book(t, kept(t, r)...), EnsureRequest{Wanted: Wanted{Ref: "web1", NICs: []record.NIC{{MAC: r.Control}}}})
	if _, ok := errors.AsType[*MACTakenError](err); !ok {
		t.Errorf("error: %v", err)
	}
}
