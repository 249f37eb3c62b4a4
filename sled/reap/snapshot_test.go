package reap

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/snapshot"
	"github.com/sledctl/sledctl/sled/volume"
	"github.com/sledctl/sledctl/zfs"
)

// What an instance's disks held stays, asked for everything too, unless its taking did not end.
func TestSnapshotsStayUnlessTheyWereNotTaken(t *testing.T) {
	const dataset, instance, id = "rpool/volume_db1", "4e5ab542-ec5f-47f7-9766-b746605e1098", "eaa96a47-00e9-5d1a-9403-05ef37555622"
	name := naming.Snapshot(dataset, "one")
	subject := snapshot.Subject(instance, "one")
	taken := snapshot.Record{Instance: instance, Of: "web1", Name: "one", Disks: []snapshot.Disk{{Volume: id, GUID: "guid of it"}}}
	half, other, removing := taken, taken, taken
	removing.Removing = true
	half.Disks, other.Disks = []snapshot.Disk{{Volume: id}}, []snapshot.Disk{{Volume: id, GUID: "guid of another"}}
	taking := operation.Intent{Verb: "instance snapshot create", Makes: []operation.Object{{Kind: KindSnapshot, Name: name}}}
	key, record, open := "snapshot "+name, "record "+subject, "record intent/of "+subject
	for what, c := range map[string]struct {
		there  bool
		record *snapshot.Record
		intent *operation.Intent
		living bool
		want   map[string]Verdict
		goes   bool
	}{
		"recorded":               {true, &taken, nil, false, map[string]Verdict{key: InUse}, false},
		"recorded as another":    {true, &other, nil, false, map[string]Verdict{key: Unknown}, false},
		"being taken":            {true, &half, &taking, true, map[string]Verdict{key: InProgress}, false},
		"half taken":             {true, &half, &taking, false, map[string]Verdict{key: Orphan, open: StaleRec}, true},
		"not taken":              {false, &half, &taking, false, map[string]Verdict{record: StaleRec, open: StaleRec}, true},
		"taken by a later one":   {true, &taken, &taking, false, map[string]Verdict{key: InUse}, false},
		"half deleted":           {true, &removing, nil, false, map[string]Verdict{key: Orphan}, true},
		"deleted, but on record": {false, &removing, nil, false, map[string]Verdict{record: StaleRec}, true},
		"unknown to the ledger":  {true, nil, nil, false, map[string]Verdict{key: Unknown}, false},
	} {
		t.Run(what, func(t *testing.T) {
			s := empty()
			s.dataset(dataset)
			s.Datasets[len(s.Datasets)-1].Type = zfs.TypeVolume
			s.Datasets[len(s.Datasets)-1].User = map[string]zfs.Value{naming.PropertyVolume: {Value: id, Source: zfs.Local}}
			if c.there {
				s.Datasets = append(s.Datasets, zfs.Dataset{Name: name, Type: zfs.TypeSnapshot, GUID: "guid of it", User: map[string]zfs.Value{naming.PropertySnapshot: {Value: instance, Source: zfs.Local}}})
			}
			s.fact(t, volume.Subject(id), volume.Record{ID: id, Name: "db1", Pool: "rpool", Dataset: dataset, GUID: "guid of " + dataset})
			if c.record != nil {
				s.fact(t, subject, c.record)
			}
			if c.intent != nil {
				s.intent(t, subject, c.living, *c.intent)
			}
			for _, all := range []bool{false, true} {
				f := s.judgeAs(t, Choice{All: all})
				got := verdicts(f)
				delete(got, "volume "+dataset)
				if d := cmp.Diff(c.want, got); d != "" {
					t.Error(d)
				}
				if goes := f.goes[key] || f.goes[record]; goes != c.goes {
					t.Errorf("all is %v: it goes is %v", all, goes)
				}
			}
		})
	}
}
