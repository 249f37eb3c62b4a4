package commands_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/engine/ledger"
	names "github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/storage"
	"github.com/sledctl/sledctl/test/sledtest"
)

// Until 2026-11 the disks that instances write to stood under the keys of the
// physical disks, and a sled with one did not come up again. Its ledger is
// read: the sled comes up, and the disk is its instance's until that gives it up.
func TestABootstrapReadsReservationsOfDisksAsTheyWere(t *testing.T) {
	t.Parallel()
	s := sledtest.New(t, sledtest.Small(), "")
	s.Run("bootstrap")
	s.Command("zfs create -V 1g rpool/v1")
	s.Run("instance ensure web1 --disk rpool/v1")

	now, old := names.KeyAttached+"%2Fdev%2Fzvol%2Frdsk%2Frpool%2Fv1", names.KeyDisk+"%2Fdev%2Fzvol%2Frdsk%2Frpool%2Fv1"
	places := ledger.Places{Lock: "/var/run/sledctl/ledger.lock", Witness: storage.Witness{Host: s.Host()}}
	for _, pool := range pools(s, "oxi_") {
		places.Locations = append(places.Locations, ledger.OnPool(strings.TrimPrefix(pool, "oxi_")))
	}
	book, _, err := ledger.Open(t.Context(), s.Host().Files(), places)
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

	s.Run("storage list")
	if a := s.Try("instance ensure web2 --disk rpool/v1"); a.Exit != 5 || !strings.Contains(a.Errs, `in use by instance "web1"`) {
		t.Errorf("the disk of web1 for web2: %+v", a)
	}
	if err := s.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Run("bootstrap")
	s.Run("instance ensure web1")
	s.Run("instance delete web1")
	s.Run("instance ensure web2 --disk rpool/v1")
	s.Run("storage check")
}
