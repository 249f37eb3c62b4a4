package secrets

import (
	"testing"

	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// A volume stays as long as nothing that goes into it changes, whatever it is: a later sledctl may
// build another from the same.
func TestAVolumeStaysUntilItsDataChanges(t *testing.T) {
	key := []byte("key")
	was := record.Record{
		ID: "768c2a8b-de75-5e1b-9dd3-8bd4af7b3e3b", Name: "web1",
		Spec: record.Spec{NICs: []record.NIC{{MAC: "02:08:20:00:00:02"}}, CloudInit: &record.CloudInit{Hostname: "shop", Volume: spec.Digest(key, "as it was built then")}},
	}
	had := Vault{Key: key, Held: map[string]string{was.Spec.CloudInit.Volume: "as it was built then"}}
	for what, x := range map[string]struct {
		change func(*record.Record)
		stays  bool
	}{
		"nothing":  {func(*record.Record) {}, true},
		"CPUs":     {func(r *record.Record) { r.Spec.CPUs = 9 }, true},
		"hostname": {func(r *record.Record) { r.Spec.CloudInit.Hostname = "store" }, false},
		"MAC":      {func(r *record.Record) { r.Spec.NICs[0].MAC = "02:08:20:00:00:03" }, false},
		"name":     {func(r *record.Record) { r.Name = "web2" }, false},
	} {
		next := was
		told := *was.Spec.CloudInit
		next.Spec.CloudInit, next.Spec.NICs = &told, append([]record.NIC{}, was.Spec.NICs...)
		x.change(&next)
		fresh := map[string]string{}
		got, err := WithVolume(was, next, had, fresh)
		if err != nil || (got.Spec.CloudInit.Volume == was.Spec.CloudInit.Volume) != x.stays || len(fresh) != map[bool]int{true: 0, false: 1}[x.stays] {
			t.Errorf("%s: %+v %v %v", what, got.Spec.CloudInit, fresh, err)
		}
	}
}

// A digest that is not one of the instance is a mistake; one of its own whose secret is lost stays.
func TestADigestOfAnotherInstanceIsRefused(t *testing.T) {
	own, other := spec.Digest([]byte("key"), "own"), spec.Digest([]byte("key"), "other")
	was := record.Record{ID: "i", Spec: record.Spec{CloudInit: &record.CloudInit{UserData: own, Volume: spec.Digest([]byte("key"), "v")}}}
	if got, err := WithVolume(was, was, Vault{}, map[string]string{}); err != nil || got.Spec.CloudInit.Volume != was.Spec.CloudInit.Volume {
		t.Errorf("%+v %v", got.Spec.CloudInit, err)
	}
	next := was
	next.Spec.CloudInit = &record.CloudInit{UserData: other}
	if _, err := WithVolume(was, next, Vault{}, map[string]string{}); err == nil {
		t.Error("the digest of another instance was taken")
	}
}
