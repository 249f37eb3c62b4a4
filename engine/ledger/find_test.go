package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest"
)

func TestWhereTheLedgerMayLie(t *testing.T) {
	disk := ledger.OnPool("1a2b")
	for name, c := range map[string]struct {
		configured string
		there      []string
		want       []string
	}{
		"nowhere":                      {want: nil},
		"on an M.2":                    {there: []string{disk.Directory}, want: []string{disk.Directory}},
		"in the package's directory":   {there: []string{"/var/opt/ooce/sledctl"}, want: []string{"/var/opt/ooce/sledctl"}},
		"in that of SmartOS":           {there: []string{"/opt/custom/sledctl"}, want: []string{"/opt/custom/sledctl"}},
		"where it is configured":       {configured: "/kept/", there: []string{"/var/opt/ooce/sledctl"}, want: []string{"/kept"}},
		"the package's, and on an M.2": {there: []string{"/var/opt/ooce/sledctl", disk.Directory}, want: []string{"/var/opt/ooce/sledctl", disk.Directory}},
	} {
		files := hosttest.Files()
		for _, dir := range c.there {
			if err := host.MkdirAll(files, dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for _, at := range ledger.Find(files, c.configured) {
			got = append(got, at.Directory)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
