package naming

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// anyPrefixes are prefixes that Validate accepts, often close to each other.
func anyPrefixes() *rapid.Generator[Prefixes] {
	word := func(alphabet string) *rapid.Generator[string] {
		return rapid.StringMatching(`[a-c][` + alphabet + `]{0,12}`)
	}
	return rapid.OneOf(
		rapid.Just(DefaultPrefixes()),
		rapid.Just(Prefixes{Zone: "oxz_propolis-server_", Base: "oxz_base", VNIC: "oxControlInstance", Guest: "oxGuestInstance"}),
		rapid.Just(others()),
		rapid.Custom(func(t *rapid.T) Prefixes {
			return Prefixes{
				Zone:  word(`a-c0-1_.-`).Draw(t, "zone"),
				Base:  word(`a-c0-1_.-`).Draw(t, "base"),
				VNIC:  word(`a-c0-1_`).Draw(t, "vnic"),
				Guest: word(`a-c0-1_`).Draw(t, "guest"),
			}
		}).Filter(func(p Prefixes) bool { return p.Validate() == nil }),
	)
}

// others are the default prefixes on a sled whose configuration gives sledctl what
// the sled agent of today names (oxidecomputer/omicron, illumos-utils).
func others() Prefixes {
	p := DefaultPrefixes()
	p.OtherZone, p.OtherVNIC = "oxz_propolis-server_", "oxControlInstance"
	return p
}

func anyUUID() *rapid.Generator[uuid.UUID] {
	return rapid.Custom(func(t *rapid.T) uuid.UUID {
		return uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "uuid"))
	})
}

func anyPool() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.Just("rpool"),
		rapid.StringMatching(`[a-z][a-z0-9_:. -]{0,20}`),
		rapid.Map(anyUUID(), func(id uuid.UUID) string { return "oxp_" + id.String() }),
	)
}

func TestNamesAndObjectsAreABijection(t *testing.T) {
	zoneName := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	linkName := regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,29}[0-9]$`)
	rapid.Check(t, func(t *rapid.T) {
		p := anyPrefixes().Draw(t, "prefixes")
		n := rapid.IntRange(0, MaxNumber).Draw(t, "number")
		generation := rapid.IntRange(1, MaxNumber).Draw(t, "generation")
		id, pool := anyUUID().Draw(t, "id"), anyPool().Draw(t, "pool")

		zone, base := p.ZoneName(id), p.BaseName(pool, generation)
		if !zoneName.MatchString(zone) || !zoneName.MatchString(base) {
			t.Errorf("no zone can be called %q or %q", zone, base)
		}
		if got, ok := p.ParseZoneName(zone); !ok || got != id {
			t.Errorf("%s is read as %s, %v", zone, got, ok)
		}
		if got, ok := p.ParseBaseName(base); !ok || got != (Base{Pool: PoolKey(pool), Generation: generation}) {
			t.Errorf("%s is read as %v, %v", base, got, ok)
		}
		if _, ok := p.ParseBaseName(zone); ok {
			t.Errorf("%s is a base zone's name too", zone)
		}
		if _, ok := p.ParseZoneName(base); ok {
			t.Errorf("%s is an instance's name too", base)
		}
		for name, want := range map[string]Role{p.ControlVNIC(n): RoleControl, p.GuestVNIC(n): RoleGuest} {
			if !linkName.MatchString(name) {
				t.Errorf("no link can be called %q", name)
			}
			if role, number, ok := p.ParseVNIC(name); !ok || role != want || number != n {
				t.Errorf("%s is read as %s %d, %v", name, role, number, ok)
			}
		}
	})
}

func TestWhatIsReadIsWrittenTheSame(t *testing.T) {
	p := DefaultPrefixes()
	near := rapid.Custom(func(t *rapid.T) string {
		stem := rapid.SampledFrom([]string{p.Zone, p.Base, p.VNIC, p.Guest, p.Base + "_rpool_", p.Zone + "54f1cc77-68f1-42ab-acac-5c4f64f5d6e", ""}).Draw(t, "stem")
		return stem + rapid.StringMatching(`[0-9a-fA-F_x+ -]{0,5}`).Draw(t, "rest")
	})
	rapid.Check(t, func(t *rapid.T) {
		name := near.Draw(t, "name")
		if id, ok := p.ParseZoneName(name); ok && p.ZoneName(id) != name {
			t.Errorf("zone %q is written %q", name, p.ZoneName(id))
		}
		if b, ok := p.ParseBaseName(name); ok && p.BaseName(b.Pool, b.Generation) != name {
			t.Errorf("base %q is written %q", name, p.BaseName(b.Pool, b.Generation))
		}
		switch role, n, _ := p.ParseVNIC(name); role {
		case RoleControl:
			if p.ControlVNIC(n) != name {
				t.Errorf("VNIC %q is written %q", name, p.ControlVNIC(n))
			}
		case RoleGuest:
			if p.GuestVNIC(n) != name {
				t.Errorf("VNIC %q is written %q", name, p.GuestVNIC(n))
			}
		}
	})
}

func TestGuestVNICsAreNotControlVNICs(t *testing.T) {
	p := others()
	for name, want := range map[string]Role{
		"vnic_propolis0":           RoleControl,
		"vnic_propolis12":          RoleControl,
		"vnic_propolis_guest0":     RoleGuest,
		"vnic_propolis_guest12":    RoleGuest,
		"oxControlInstance3":       RoleControl,
		"vnic_propolis":            RoleNone,
		"vnic_propolis_guest":      RoleNone,
		"vnic_propolis_guests0":    RoleNone,
		"vnic_propolis00":          RoleNone,
		"vnic_propolis1a":          RoleNone,
		"vnic_propolis+1":          RoleNone,
		"vnic_propolis1000000000":  RoleNone,
		"myvnic_propolis0":         RoleNone,
		"oxControlService0":        RoleNone,
		"vnic_propolis\u0661":      RoleNone,
		"vnic_propolis_guest00001": RoleNone,
	} {
		if role, _, ok := p.ParseVNIC(name); role != want || ok != (want != RoleNone) {
			t.Errorf("%s is %q", name, role)
		}
	}
	if _, _, ok := DefaultPrefixes().ParseVNIC("oxControlInstance3"); ok {
		t.Error("an object of the sled agent counts as sledctl's without a setting")
	}
}

func TestZoneNamesOfTheSledAgentAreReadIfTheConfigurationSaysSo(t *testing.T) {
	const id = "3c7f5393-7c69-4c7c-bc81-cb7aca031ff1"
	p := others()
	for name, want := range map[string]bool{
		"propolis_instance_" + id:                    true,
		"oxz_propolis-server_" + id:                  true,
		"propolis_instance_" + strings.ToUpper(id):   false,
		"propolis_instance_{" + id + "}":             false,
		"propolis_instance_urn:uuid:" + id:           false,
		"propolis_instance_" + id[:35]:               false,
		"oxz_nexus_" + id:                            false,
		"propolis_instance_" + id + "x":              false,
		"propolis_instance_3c7f53937c694c7cbc81cb7a": false,
	} {
		got, ok := p.ParseZoneName(name)
		if ok != want || want && got.String() != id {
			t.Errorf("%s: %s, %v", name, got, ok)
		}
	}
	if _, ok := DefaultPrefixes().ParseZoneName("oxz_propolis-server_" + id); ok {
		t.Error("an object of the sled agent counts as sledctl's without a setting")
	}
}

func TestBaseNames(t *testing.T) {
	p := DefaultPrefixes()
	for pool, want := range map[string]string{
		"rpool": "propolis_base_rpool_1",
		"oxp_e4b4dc87-ab46-49fb-a4b4-d361ae214c03": "propolis_base_e4b4dc87_1",
		"data:pool with blanks":                    "propolis_base_data-poo_1",
		"t_1_2":                                    "propolis_base_t_1_2_1",
	} {
		if got := p.BaseName(pool, 1); got != want {
			t.Errorf("%s: %s, want %s", pool, got, want)
		}
	}
	for _, bad := range []string{
		"propolis_base", "propolis_base_", "propolis_base_rpool", "propolis_base_rpool_", "propolis_base_rpool_0",
		"propolis_base_rpool_01", "propolis_base__1", "propolis_base_ninechars_1", "propolis_base_a b_1", "propolis_base_rpool_1x",
	} {
		if b, ok := p.ParseBaseName(bad); ok {
			t.Errorf("%s is read as %v", bad, b)
		}
	}
}

// What a probe makes is known by its name, whatever the configured prefixes are, and no instance's
// zone or VNIC has such a name.
func TestProbesNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPrefixes().Draw(t, "prefixes")
		id, n := uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id")), rapid.IntRange(0, MaxNumber).Draw(t, "number")
		zone, vnic := p.Probe().ZoneName(id), p.Probe().ControlVNIC(n)
		if got, ok := p.ParseZoneName(zone); !ok || got != id || !IsProbe(zone) || IsProbe(DefaultPrefixes().ZoneName(id)) {
			t.Errorf("%s is %v, %v", zone, got, ok)
		}
		if role, number, ok := p.ParseVNIC(vnic); !ok || role != RoleControl || number != n {
			t.Errorf("%s is %v %d, %v", vnic, role, number, ok)
		}
		if err := p.Probe().Validate(); err != nil {
			t.Error(err)
		}
	})
	if IsProbe("sledctl_probe_") || IsProbe("sledctl_probe_7") {
		t.Error("half a name is taken for one")
	}
}

func TestPrefixesAreValidated(t *testing.T) {
	if err := DefaultPrefixes().Validate(); err != nil {
		t.Error(err)
	}
	for _, change := range []func(*Prefixes){
		func(p *Prefixes) { p.Zone = "" },
		func(p *Prefixes) { p.Guest = probeVNIC },
		func(p *Prefixes) { p.Zone = strings.Repeat("z", 28) },
		func(p *Prefixes) { p.Zone = "-z" },
		func(p *Prefixes) { p.Zone = "SUNW" },
		func(p *Prefixes) { p.Zone = "z/" },
		func(p *Prefixes) { p.Base = "" },
		func(p *Prefixes) { p.Base = strings.Repeat("z", 45) },
		func(p *Prefixes) { p.VNIC = "" },
		func(p *Prefixes) { p.VNIC = "vnic-" },
		func(p *Prefixes) { p.VNIC = "v1" },
		func(p *Prefixes) { p.VNIC = "1v" },
		func(p *Prefixes) { p.VNIC = strings.Repeat("v", 23) },
		func(p *Prefixes) { p.Guest = p.VNIC },
		func(p *Prefixes) { p.OtherVNIC, p.Guest = "oxControlInstance", "oxControlInstance" },
		func(p *Prefixes) { p.OtherVNIC = "ox1" },
		func(p *Prefixes) { p.OtherZone = "-z" },
		func(p *Prefixes) { p.Guest = "vnic.guest" },
	} {
		p := DefaultPrefixes()
		change(&p)
		if p.Validate() == nil {
			t.Errorf("%+v is accepted", p)
		}
	}
}

func TestInstanceIDs(t *testing.T) {
	here, there := NamespaceID("a"), NamespaceID("b")
	ids := []uuid.UUID{InstanceID(here, "web1"), InstanceID(here, "web2"), InstanceID(there, "web1"), InstanceID(here, "WEB1")}
	for i, id := range ids {
		if id.Version() != 5 || slices.Index(ids, id) != i {
			t.Errorf("%v is not of version 5, or not the only one", id)
		}
	}
	if InstanceID(NamespaceID("a"), "web1") != ids[0] {
		t.Error("the same name is another instance")
	}
	const id = "3C7F5393-7c69-4c7c-bc81-cb7aca031ff1"
	if got := InstanceID(here, id); got.String() != strings.ToLower(id) {
		t.Errorf("a UUID names %s", got)
	}
	if got := InstanceID(here, "{"+strings.ToLower(id)+"}"); got.Version() != 5 {
		t.Errorf("a name that only holds a UUID names %s", got)
	}
}

// These values are in ledgers: if one changes, instances lose their names. They
// agree with another implementation of RFC 9562 (Python's uuid.uuid5).
func TestInstanceIDsNeverChange(t *testing.T) {
	if got := NamespaceID("a").String(); got != "fbe7008f-18f1-5d2a-b99f-2a78c7c138a0" {
		t.Error(got)
	}
	if got := InstanceID(NamespaceID("a"), "web1").String(); got != "815da11a-70d9-525f-93ed-488725ae0679" {
		t.Error(got)
	}
}
