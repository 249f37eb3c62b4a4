package commands_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/engine/ledger"
	names "github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/storage"
)

// Until 2026-11 the disks that instances write to stood under the keys of the
// physical disks, and a sled with one did not come up again. Its ledger is
// read: the sled comes up, and the disk is its instance's until that gives it up.
func TestABootstrapReadsReservationsOfDisksAsTheyWere(t *testing.T) {
	s := newSled(t, small(), "")
	s.run("bootstrap")
	s.command("zfs create -V 1g rpool/v1")
	s.run("instance ensure web1 --disk rpool/v1")

	now, old := names.KeyAttached+"%2Fdev%2Fzvol%2Frdsk%2Frpool%2Fv1", names.KeyDisk+"%2Fdev%2Fzvol%2Frdsk%2Frpool%2Fv1"
	places := ledger.Places{Lock: "/var/run/sledctl/ledger.lock", Witness: storage.Witness{Host: s.Host()}}
	for _, pool := range s.pools("oxi_") {
		places.Locations = append(places.Locations, ledger.OnPool(strings.TrimPrefix(pool, "oxi_")))
	}
	book, err := ledger.Open(t.Context(), s.Host().Files(), places)
	if err != nil {
		t.Fatal(err)
	}
	_, err = book.Update(t.Context(), func(view ledger.View) ([]ledger.Fact, error) {
		id, ok := view.Get(now)
		if !ok {
			t.Fatalf("web1 has no %s", now)
		}
		return []ledger.Fact{{Key: now}, {Key: old, Value: json.RawMessage(id)}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}

	s.run("storage list")
	if a := s.try("instance ensure web2 --disk rpool/v1"); a.exit != 5 || !strings.Contains(a.errs, `in use by instance "web1"`) {
		t.Errorf("the disk of web1 for web2: %+v", a)
	}
	if err := s.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.run("bootstrap")
	s.run("instance ensure web1")
	s.run("instance delete web1")
	s.run("instance ensure web2 --disk rpool/v1")
	s.run("storage check")
}
