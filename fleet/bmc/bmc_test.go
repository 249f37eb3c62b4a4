package bmc_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/fleet/bmc"
	"github.com/sledctl/sledctl/fleet/bmc/bmctest"
)

const (
	mine   = "4c4c4544-0039-4a10-8054-b7c04f583532"
	others = "4c4c4544-0039-4a10-8054-b7c04f583533"
)

// each has a BMC of each protocol, and how it is reached.
func each(t *testing.T, play func(*testing.T, *bmctest.Sled, bmc.Config)) {
	t.Run("redfish", func(t *testing.T) {
		s := &bmctest.Sled{ID: mine}
		r := bmctest.StartRedfish(s)
		t.Cleanup(r.Close)
		play(t, s, bmc.Config{Protocol: bmc.Redfish, Address: r.Address, Fingerprint: r.Fingerprint, Username: bmctest.Username, Password: bmctest.Password})
	})
	t.Run("ipmi", func(t *testing.T) {
		s := &bmctest.Sled{ID: mine}
		i, err := bmctest.StartIPMI(s)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = i.Close() })
		play(t, s, bmc.Config{Protocol: bmc.IPMI, Address: i.Address, Username: bmctest.Username, Password: bmctest.Password})
	})
}

func open(t *testing.T, c bmc.Config) bmc.BMC {
	t.Helper()
	b, err := bmc.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func state(t *testing.T, c bmc.Config, want bmc.State) {
	t.Helper()
	if r, err := open(t, c).Power(t.Context()); err != nil || r.State != want {
		t.Fatalf("%+v, %v, want %s", r, err, want)
	}
}

func TestPowerIsReadAndCut(t *testing.T) {
	each(t, func(t *testing.T, s *bmctest.Sled, c bmc.Config) {
		cuts := 0
		s.Cut = func() { cuts++ }
		c.UUID = strings.ToUpper(mine)
		state(t, c, bmc.On)
		for range 2 { // a request whose answer was lost is repeated
			if err := open(t, c).PowerOff(t.Context()); err != nil {
				t.Fatal(err)
			}
			state(t, c, bmc.Off)
		}
		if cuts != 1 || s.Asked() != 2 {
			t.Errorf("the power was cut %d times, and that was asked for %d times", cuts, s.Asked())
		}
		s.On()
		state(t, c, bmc.On)
	})
}

func TestTheBMCOfAnotherSledIsRefused(t *testing.T) {
	each(t, func(t *testing.T, s *bmctest.Sled, c bmc.Config) {
		c.UUID = others
		b := open(t, c)
		if _, err := b.Power(t.Context()); !errors.As(err, new(*bmc.MistakenError)) {
			t.Errorf("its power is read: %v", err)
		}
		if err := b.PowerOff(t.Context()); !errors.As(err, new(*bmc.MistakenError)) || s.Asked() > 0 {
			t.Errorf("it is powered off: %v", err)
		}
	})
}

func TestABMCThatRefusesOrDoesNotAnswerIsAnError(t *testing.T) {
	each(t, func(t *testing.T, s *bmctest.Sled, c bmc.Config) {
		s.Fail(bmctest.Faults{Refuses: true})
		if err := open(t, c).PowerOff(t.Context()); err == nil || !strings.Contains(err.Error(), "privilege") {
			t.Errorf("it refuses: %v", err)
		}
		state(t, c, bmc.On)
		s.Fail(bmctest.Faults{Ignores: true})
		if err := open(t, c).PowerOff(t.Context()); err != nil {
			t.Error(err)
		}
		state(t, c, bmc.On)
		wrong := c
		wrong.Password = "guessed"
		if r, err := open(t, wrong).Power(t.Context()); err == nil {
			t.Errorf("by a wrong password: %+v", r)
		}
		s.Fail(bmctest.Faults{Slow: 50 * time.Millisecond})
		state(t, c, bmc.On)
		s.Fail(bmctest.Faults{Gone: true})
		ctx, done := context.WithTimeout(t.Context(), time.Second)
		defer done()
		start := time.Now()
		if r, err := open(t, c).Power(ctx); err == nil || time.Since(start) > 5*time.Second {
			t.Errorf("it does not answer: %+v, %v after %v", r, err, time.Since(start))
		}
	})
}

func TestTheCertificateIsChecked(t *testing.T) {
	r := bmctest.StartRedfish(&bmctest.Sled{ID: mine})
	t.Cleanup(r.Close)
	c := bmc.Config{Protocol: bmc.Redfish, Address: r.Address, Username: bmctest.Username, Password: bmctest.Password}
	if _, err := open(t, c).Power(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an authority that is not known: %v", err)
	}
	signed, printed, other := c, c, c
	signed.CA = r.CA
	state(t, signed, bmc.On)
	printed.Fingerprint = r.Fingerprint
	state(t, printed, bmc.On)
	other.Fingerprint = strings.Repeat("0", 64)
	if _, err := open(t, other).Power(t.Context()); err == nil || !strings.Contains(err.Error(), r.Fingerprint) {
		t.Errorf("another fingerprint: %v", err)
	}
}

func TestAWrongFieldIsNamed(t *testing.T) {
	good := bmc.Config{Protocol: bmc.Redfish, Address: "10.0.0.5", Username: "a", Password: "b"}
	lan := bmc.Config{Protocol: bmc.IPMI, Address: "10.0.0.5:623", Username: "a", Password: "b"}
	for _, c := range []struct {
		field string
		from  bmc.Config
		spoil func(*bmc.Config)
	}{
		{"protocol", good, func(c *bmc.Config) { c.Protocol = "telnet" }},
		{"address", good, func(c *bmc.Config) { c.Address = "" }},
		{"address", good, func(c *bmc.Config) { c.Address = "https://10.0.0.5" }},
		{"address", lan, func(c *bmc.Config) { c.Address = "10.0.0.5:lan" }},
		{"system", good, func(c *bmc.Config) { c.System = "Self" }},
		{"system", lan, func(c *bmc.Config) { c.System = "/redfish/v1/Systems/1" }},
		{"uuid", good, func(c *bmc.Config) { c.UUID = "sled1" }},
		{"username", good, func(c *bmc.Config) { c.Username = "" }},
		{"username", lan, func(c *bmc.Config) { c.Username = strings.Repeat("a", 17) }},
		{"password", lan, func(c *bmc.Config) { c.Password = strings.Repeat("a", 21) }},
		{"password", good, func(c *bmc.Config) { c.Password = "" }},
		{"fingerprint", good, func(c *bmc.Config) { c.Fingerprint = "00ff" }},
		{"fingerprint", lan, func(c *bmc.Config) { c.Fingerprint = "00ff" }},
		{"ca.crt", good, func(c *bmc.Config) { c.CA = []byte("none") }},
		{"ca.crt", lan, func(c *bmc.Config) { c.CA = []byte("none") }},
	} {
		c.spoil(&c.from)
		_, err := bmc.Open(c.from)
		if is := new(bmc.InputError); !errors.As(err, &is) || is.Field != c.field {
			t.Errorf("%s of %+v: %v", c.field, c.from, err)
		}
	}
	for _, address := range []string{"10.0.0.5", "10.0.0.5:8443", "[fd00::5]:443", "fd00::5", "[fd00::5]", "bmc1.rack"} {
		good.Address = address
		if _, err := bmc.Open(good); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}
