package instance

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/operation/operationtest"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/illumos/ipadm"
	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zone"
)

// imagesUp is the bring-up where the zone's own service makes the address and
// starts Propolis.
func imagesUp() []string {
	return []string{
		"vnic.create G", "vnic.create C", "zfs.create D", "zone.configure Z", "zone.install Z", "smf.write-profile Z",
		"zone.boot Z", "vnic.set-limits G", "smf.await Z", "smf.await web1", "ipadm.await-address C/omicron6",
		"propolis.await-http web1", "propolis.ensure web1", "propolis.run web1", "propolis.await-state web1",
	}
}

func TestWhatImagesMakeIsNotMadeAgain(t *testing.T) {
	c := imaged()
	r := made(t, c, oneNIC())
	if r.Incarnation.Base != "" || r.Incarnation.BaseDataset != "" || r.Incarnation.Brand != packaging.Brand || r.Spec.Address.Prefix != prefix("fd00:1::2/64") {
		t.Errorf("%+v, %s", r.Incarnation, r.Spec.Address)
	}
	from := func(first string) []string { return imagesUp()[slices.Index(imagesUp(), first):] }
	for name, s := range map[string]struct {
		point  int
		change func(*scene)
		want   []string
	}{
		"nothing was made yet":            {atNothing, nil, imagesUp()},
		"the zone is configured":          {atConfigured, nil, from("zone.install Z")},
		"the zone is installed":           {atInstalled, nil, from("smf.write-profile Z")},
		"the zone boots":                  {atBooted, nil, from("vnic.set-limits G")},
		"its service is not known yet":    {atSettled, nil, from("smf.await web1")},
		"its service is starting":         {atSettled, func(s *scene) { s.seen.Inside.Services[packaging.Service] = "offline*" }, from("smf.await web1")},
		"its service was switched off":    {atSettled, func(s *scene) { s.seen.Inside.Services[packaging.Service] = "disabled" }, append([]string{"smf.enable web1"}, from("smf.await web1")...)},
		"Propolis answers":                {atOnline, routed, from("propolis.ensure web1")},
		"the machine runs":                {atRunning, routed, nil},
		"the machine runs, with no route": {atRunning, nil, []string{"ipadm.add-route default of Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			old := half(r)
			here := prepared().bring(c, old, s.point)
			if s.point >= atAddress {
				here.seen.Inside.Addresses = append(here.seen.Inside.Addresses, ipadm.Address{Object: old.Incarnation.Control.Name + "/ll", State: "ok"})
			}
			if s.change != nil {
				s.change(here)
			}
			d, _, err := here.decide(t, c, operationtest.Book(t, kept(t, old)...), EnsureRequest{Wanted: oneNIC()})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(s.want, told(t, d, old.Incarnation)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A brand that does not destroy its zones' datasets leaves that to us, also in
// a zone that is half made.
func TestTheDatasetOfAnImageIsDestroyedBehindItsZone(t *testing.T) {
	c := imaged()
	r := made(t, c, oneNIC())
	for state, want := range map[zone.State][]string{
		zone.Running:    {"zone.halt Z", "zone.uninstall Z", "zone.delete Z", "vnic.delete G", "vnic.delete C", "zfs.destroy D"},
		zone.Incomplete: {"zone.discard Z", "vnic.delete G", "vnic.delete C", "zfs.destroy D"},
		zone.Configured: {"zone.delete Z", "vnic.delete G", "vnic.delete C", "zfs.destroy D"},
		"":              {"vnic.delete G", "vnic.delete C", "zfs.destroy D"},
	} {
		here := prepared().bring(c, r, atRunning)
		here.seen.Inside = Inside{Services: map[string]string{}}
		if state == "" {
			here.dropZone(r.Incarnation.Zone)
		} else {
			here.zone(r.Incarnation.Zone).State = state
		}
		d := operation.Decision{Plan: plan.Plan{Actions: teardown(c, r, here.look(), moment("down"), StopTime)}}
		got := told(t, d, r.Incarnation)
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", state, diff)
		}
		if rows, err := d.Plan.Rows(); err != nil || rows[len(rows)-1].Verb != "zfs.destroy" {
			t.Errorf("%s: %v, %+v", state, err, rows)
		}
	}
}

func TestWhatAnImageCannotDoIsRefused(t *testing.T) {
	for name, s := range map[string]struct {
		settings func(*Settings)
		wanted   Wanted
		here     func(*scene)
		says     string
	}{
		"an IPv4 address":     {func(c *Settings) { c.Underlay = prefix("10.77.0.0/24"); c.Gateway = netip.Addr{} }, oneNIC(), nil, `address "10.77.0.1/24": want an IPv6 address`},
		"no gateway":          {func(c *Settings) { c.Gateway = netip.Addr{} }, oneNIC(), nil, `address "fd00:1::1/64": want an IPv6 address, e.g. fd00::5/64, with a gateway`},
		"another length":      {func(c *Settings) { c.Underlay = prefix("fd00:1::/48") }, oneNIC(), nil, `address "fd00:1::2/48": want`},
		"DHCP":                {func(c *Settings) { c.Underlay = netip.Prefix{} }, oneNIC(), nil, `address "dhcp": want`},
		"addrconf":            {func(*Settings) {}, Wanted{Ref: "web1", Address: &record.Address{Mode: record.Addrconf}}, nil, `address "addrconf": want`},
		"another MTU":         {func(c *Settings) { c.MTU = 1500 }, oneNIC(), nil, `network.mtu "1500": want 9000 or 0`},
		"a link that is none": {func(*Settings) {}, oneNIC(), func(s *scene) { s.Links[1].MTU = 1500 }, "the control link stub0 has an MTU of 1500, and control VNICs need 9000"},
		"no image":            {func(*Settings) {}, oneNIC(), func(s *scene) { s.seen.Packaging.Image = []string{"/opt/image.tar.gz"} }, "image lacks /opt/image.tar.gz"},
	} {
		c, here := imaged(), prepared()
		s.settings(&c)
		if s.here != nil {
			s.here(here)
		}
		d, _, err := here.decide(t, c, operationtest.Book(t), EnsureRequest{Wanted: s.wanted})
		if err == nil || !strings.Contains(err.Error(), s.says) || !d.Plan.Empty() {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A way that is configured again counts for lives that begin, not for those that
// are there.
func TestARunKeepsItsPackaging(t *testing.T) {
	c := settings()
	r := made(t, c, oneNIC())
	here := prepared().bring(c, half(r), atAddress)
	c.Propolis.Packaging.Kind = packaging.Image
	d, next, err := here.decide(t, c, operationtest.Book(t, kept(t, half(r))...), EnsureRequest{Wanted: oneNIC()})
	if err != nil || next.Incarnation.Zone != r.Incarnation.Zone {
		t.Fatalf("%v, %+v", err, next.Incarnation)
	}
	if diff := cmp.Diff(from("smf.enable web1"), told(t, d, r.Incarnation)); diff != "" {
		t.Error(diff)
	}
}
