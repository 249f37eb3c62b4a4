package query

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sledctl/sledctl/host/fault"
)

type vm struct {
	name, pool string
	vlans      []string
	cpus       uint64
	memory     uint64
	updated    time.Time
	protected  bool
}

func fields() []Field[vm] {
	return []Field[vm]{
		{Key: "name", Text: func(v vm) []string { return []string{v.name} }},
		{Key: "pool", Text: func(v vm) []string { return []string{v.pool} }},
		{Key: "vlan", Text: func(v vm) []string { return v.vlans }},
		{Key: "cpus", Number: func(v vm) uint64 { return v.cpus }},
		{Key: "memory", Number: func(v vm) uint64 { return v.memory }, Size: true},
		{Key: "updated", Time: func(v vm) time.Time { return v.updated }},
		{Key: "protected", Flag: func(v vm) bool { return v.protected }},
	}
}

var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func sled() []vm {
	return []vm{
		{"web1", "oxp_a", []string{"100"}, 4, 8 << 30, now.Add(-time.Minute), false},
		{"web10", "oxp_b", nil, 4, 8 << 30, now.Add(-time.Hour), true},
		{"web2", "oxp_a", []string{"100", "200"}, 8, 16 << 30, now.Add(-3 * 24 * time.Hour), false},
		{"db", "oxp_b", []string{"200"}, 2, 1 << 30, time.Time{}, true},
	}
}

func TestParse(t *testing.T) {
	for expression, want := range map[string]string{
		"name=web1": "web1", "name != web1": "web10 web2 db", "name~^web": "web1 web10 web2", "name!~web1": "web2 db",
		"pool=oxp_b": "web10 db", "vlan=100": "web1 web2", "vlan=200": "web2 db", "vlan!=100": "web10 db",
		"cpus=4": "web1 web10", "cpus!=4": "web2 db", "cpus<4": "db", "cpus<=4": "web1 web10 db", "cpus>4": "web2", "cpus >= 4": "web1 web10 web2",
		"memory>=8G": "web1 web10 web2", "memory>8G": "web2", "memory=1024M": "db",
		"updated<1h": "web1", "updated<=1h": "web1 web10", "updated>2d": "web2",
		"protected": "web10 db", "protected=true": "web10 db", "protected=false": "web1 web2", "protected!=true": "web1 web2",
		"name~": "web1 web10 web2 db", "name=": "", "pool~a$|b$": "web1 web10 web2 db",
	} {
		holds, err := Parse(fields(), expression, now)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		var got []string
		for _, v := range sled() {
			if holds(v) {
				got = append(got, v.name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %s", expression, got, want)
		}
	}
}

func TestExpressionsThatCannotBeMeant(t *testing.T) {
	for expression, want := range map[string]string{
		"memroy>4G":      `--filter "memroy>4G": unknown key "memroy": did you mean "memory"?`,
		"colour=red":     `--filter "colour=red": unknown key "colour": want one of name, pool, vlan, cpus, memory, updated, protected`,
		"":               `--filter "": unknown key "": want one of name, pool, vlan, cpus, memory, updated, protected`,
		"name":           `--filter "name": want name, one of != !~ <= >= = ~ < >, and a value`,
		"name<web":       `--filter "name<web": name is a text, which has no <`,
		"name~(":         "--filter \"name~(\": \"(\" is no regular expression: error parsing regexp: missing closing ): `(`",
		"cpus~4":         `--filter "cpus~4": cpus is a number, which has no ~`,
		"cpus>four":      `--filter "cpus>four": "four" is not a whole number`,
		"memory>big":     `--filter "memory>big": size "big": want a number of bytes, or with K, M, G, T, P or E: 4G`,
		"updated<soon":   `--filter "updated<soon": updated is a time: want an age, e.g. updated<1h`,
		"updated~1h":     `--filter "updated~1h": updated is a time: want an age, e.g. updated<1h`,
		"protected>true": `--filter "protected>true": protected is true or false`,
		"protected=yes":  `--filter "protected=yes": protected is true or false`,
		"protected!":     `--filter "protected!": unknown key "protected!": did you mean "protected"?`,
	} {
		_, err := Parse(fields(), expression, now)
		if err == nil || err.Error() != want || fault.Of(err) != fault.Usage {
			t.Errorf("%s: got %v, want %s", expression, err, want)
		}
	}
}

// No expression makes Parse panic, and what it returns can be asked.
func TestParseTakesAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		expression := rapid.OneOf(rapid.String(), rapid.StringMatching(`(name|cpus|memory|updated|protected)[!=~<>]{0,2}[a-z0-9.*(]{0,6}`)).Draw(t, "expression")
		if holds, err := Parse(fields(), expression, now); err == nil {
			holds(sled()[0])
		}
	})
}

func TestOrder(t *testing.T) {
	for keys, want := range map[string]string{
		"name": "db web1 web2 web10", "-name": "web10 web2 web1 db", "cpus,name": "db web1 web10 web2", "-cpus,-name": "web2 web10 web1 db",
		"-memory, name": "web2 web1 web10 db", "updated": "db web2 web10 web1", "-protected,name": "db web10 web1 web2", "vlan,name": "web10 web1 web2 db",
	} {
		order, err := Order(fields(), keys)
		if err != nil {
			t.Errorf("%s: %v", keys, err)
			continue
		}
		all := sled()
		slices.SortStableFunc(all, order)
		var got []string
		for _, v := range all {
			got = append(got, v.name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %s", keys, got, want)
		}
	}
	if _, err := Order(fields(), "name,cpu"); err == nil || err.Error() != `--sort "name,cpu": unknown key "cpu": did you mean "cpus"?` || fault.Of(err) != fault.Usage {
		t.Errorf("got %v", err)
	}
}

func TestNatural(t *testing.T) {
	names := []string{"dev-10", "dev-2", "a", "dev-02", "10", "9", "dev", "dev-2b", "127.77.0.10", "127.77.0.9", "b1c10", "b1c9"}
	slices.SortFunc(names, Natural)
	if diff := cmp.Diff([]string{"9", "10", "127.77.0.9", "127.77.0.10", "a", "b1c9", "b1c10", "dev", "dev-02", "dev-2", "dev-2b", "dev-10"}, names); diff != "" {
		t.Error(diff)
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a0-2-]{0,6}`)
		a, b, c := name.Draw(t, "a"), name.Draw(t, "b"), name.Draw(t, "c")
		if Natural(a, b) != -Natural(b, a) || (Natural(a, b) == 0) != (a == b) {
			t.Fatalf("%q and %q: %d and %d", a, b, Natural(a, b), Natural(b, a))
		}
		if Natural(a, b) <= 0 && Natural(b, c) <= 0 && Natural(a, c) > 0 {
			t.Fatalf("%q, %q, %q are in no order", a, b, c)
		}
	})
}

func TestNames(t *testing.T) {
	n := Names{"web*", "db1", "c[ab]"}
	for name, want := range map[string]bool{"web1": true, "web": true, "db1": true, "db10": false, "ca": true, "cc": false} {
		if n.Fit(name, "some-id") != want {
			t.Errorf("%s: want %v", name, want)
		}
	}
	if !n.Patterns() || !slices.Equal(n.Plain(), []string{"db1"}) || n.Check() != nil {
		t.Errorf("%v, %v, %v", n.Patterns(), n.Plain(), n.Check())
	}
	if !(Names{}).Fit("any") || (Names{"a"}).Patterns() {
		t.Error("no names fit all")
	}
	if err := (Names{"a", "b["}).Check(); err == nil || fault.Of(err) != fault.Usage {
		t.Errorf("got %v", err)
	}
}
