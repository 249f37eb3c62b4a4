package secrets

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/zfs"
)

// Where the secrets of a record lie, and when they are written again.
func TestKeeping(t *testing.T) {
	const u2 = "oxp_e4b4dc87-ab46-49fb-a4b4-d361ae214c03"
	const crypt, plain = "/pool/ext/e4b4dc87-ab46-49fb-a4b4-d361ae214c03/crypt/sledctl", "/var/sledctl/sledctl-secrets"
	key := []byte("key")
	machine := func(request string) spec.InstanceSpec {
		return spec.InstanceSpec{Components: spec.Components{"disk": spec.CrucibleStorage{Request: request}}}
	}
	sealed, held := machine("one").Seal(key)
	_, others := machine("two").Seal(key)
	had := func(file string) Vault { return Vault{File: file, Key: key, Held: held} }
	for name, c := range map[string]struct {
		machine *spec.InstanceSpec
		pool    string
		vault   Vault
		fresh   map[string]string
		mounted bool
		want    string // the file
		writes  bool
		refused bool
	}{
		"no machine":               {nil, u2, had(crypt + "/id.old"), nil, true, "", false, false},
		"new, on a U.2":            {&sealed, u2, Vault{Key: key}, held, true, crypt + "/id.now", true, false},
		"new, elsewhere":           {&sealed, "rpool", Vault{Key: key}, held, true, plain + "/id.now", true, false},
		"as they are":              {&sealed, u2, had(crypt + "/id.old"), nil, true, crypt + "/id.old", false, false},
		"given again":              {&sealed, u2, had(crypt + "/id.old"), held, true, crypt + "/id.old", false, false},
		"on another pool":          {&sealed, "rpool", had(crypt + "/id.old"), nil, true, plain + "/id.now", true, false},
		"of another machine":       {&sealed, u2, Vault{File: crypt + "/id.old", Key: key, Held: others}, held, true, crypt + "/id.now", true, false},
		"lost":                     {&sealed, u2, Vault{File: crypt + "/id.old", Err: errors.New("gone")}, nil, true, crypt + "/id.old", false, false},
		"a U.2 that is not opened": {&sealed, u2, Vault{Key: key}, held, false, "", false, true},
	} {
		inv := inventory.Of(inventory.Listings{Datasets: []zfs.Dataset{{Name: u2 + "/crypt", Mounted: c.mounted}}})
		r := record.Record{ID: "id", Name: "web1", Secrets: c.vault.File, Spec: record.Spec{Pool: c.pool, Machine: c.machine}}
		got, ahead, err := Keeping(plain, r, c.vault, inv, c.fresh, operation.Stamp{ID: "now"})
		switch {
		case (err != nil) != c.refused || c.refused && !errors.Is(err, host.ErrRefused):
			t.Errorf("%s: %v", name, err)
		case err == nil && (got.Secrets != c.want || (len(ahead) > 0) != c.writes):
			t.Errorf("%s: in %q, with %d actions", name, got.Secrets, len(ahead))
		}
	}
	// Nothing is sent whose secrets are not known; what sends nothing does not need them.
	r := record.Record{Name: "web1", Secrets: "/lost", Spec: record.Spec{Machine: &sealed}}
	sends := []plan.Action{{Step: propolis.Ensure{Request: spec.EnsureRequest{Init: spec.Init{Spec: &sealed}}}}}
	for _, c := range []struct {
		actions []plan.Action
		lost    bool
	}{{sends, true}, {nil, false}} {
		err := Check(netip.Prefix{}, r, Vault{}, nil, c.actions)
		if _, lost := errors.AsType[*LostError](err); lost != c.lost {
			t.Errorf("%d actions: %v", len(c.actions), err)
		}
	}
	if all := Dropping("web1", "/c", "/b", "/c", "", "/a", "/b"); len(all) != 1 || !slices.Equal(all[0].Step.(Drop).Files, []string{"/a", "/b"}) {
		t.Errorf("dropping: %+v", all)
	}
}

// What is next to the secrets that a record names is found, and each directory is read once.
func TestOthersAreThoseThatNoRecordNames(t *testing.T) {
	const dir = "/var/sledctl/sledctl-secrets"
	files := hosttest.Files()
	if err := host.MkdirAll(files, dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.now", "a.old", "b.now", "c.old"} {
		if err := host.WriteFile(files, dir+"/"+name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	others := Others(files)
	for id, want := range map[string]bool{"a": true, "b": false, "c": true, "d": false} {
		r := record.Record{ID: id, Secrets: dir + "/" + id + ".now"}
		if others(r) != want || HasOthers(files, r) != want {
			t.Errorf("%s: %v", id, !want)
		}
	}
	if others(record.Record{ID: "a"}) {
		t.Error("one without secrets has others")
	}
	if err := host.WriteFile(files, dir+"/b.old", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if b := (record.Record{ID: "b", Secrets: dir + "/b.now"}); others(b) || !HasOthers(files, b) {
		t.Error("the directory is read again, or not at all")
	}
}
