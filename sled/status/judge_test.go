package status

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/illumos/disk"
	"github.com/sledctl/sledctl/illumos/reservoir"
	"github.com/sledctl/sledctl/sled/base"
	"github.com/sledctl/sledctl/sled/image"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/storage"
	"github.com/sledctl/sledctl/sled/volume"
	"github.com/sledctl/sledctl/zone"
)

const (
	uuid1  = "6eb758c7-ee2e-4e47-ae36-2884c421fb31"
	uuid2  = "343b36ca-70aa-4241-b7c3-69c1a71c6148"
	pool1  = "oxp_" + uuid1
	pool2  = "oxp_" + uuid2
	m2     = "oxi_" + uuid1
	closed = "5d1f0c3e-2b7e-4c53-9a1b-0c7d8e9fa0b1"
)

var now = time.Date(2026, 11, 23, 6, 44, 10, 0, time.UTC)

// vm is an instance that is wanted running, with its zone on a pool.
func vm(name, state, reason, pool string) instance.Instance {
	return instance.Instance{
		Record: record.Record{ID: "id-" + name, Name: name, Wanted: record.WantedRunning, Incarnation: &record.Incarnation{Dataset: pool + "/crypt/zone/z"}},
		Status: instance.Status{State: state, Reason: reason},
	}
}

// well is a sled on which nothing is wrong: one VM on one pool.
func well() Seen {
	return Seen{
		Sled:      Sled{Name: "s1", Time: now},
		Instances: []instance.Instance{vm("web1", "running", "", pool1)},
		Items: []storage.Item{
			{Kind: "disk", Name: "c1", On: "u2:3", Serial: "S1", State: "ready", Pool: pool1},
			{Kind: "disk", Name: "c2", On: "m2:17", Serial: "S2", State: "ready", Pool: m2},
			{Kind: "pool", Name: pool1, State: "ready", Size: 1000 << 30, Free: 900 << 30},
			{Kind: "pool", Name: m2, State: "ready", Size: 100 << 30, Free: 90 << 30},
		},
		Disks: []storage.Record{
			{Name: "c1", Kind: disk.U2, Slot: 3, Serial: "S1", Pool: pool1},
			{Name: "c2", Kind: disk.M2, Slot: 17, Serial: "S2", Pool: m2},
		},
		Ledger: ledger.Examination{Places: []ledger.Examined{{Location: ledger.OnPool(uuid1), Copy: "a", Verdict: ledger.IsMember}}},
	}
}

func TestAWellSledHasNoProblem(t *testing.T) {
	s := Judge(well())
	if s.Verdict != IsOK || len(s.Problems) != 0 {
		t.Errorf("%s: %v", s.Verdict, s.Problems)
	}
	if got, want := s.Line(), "s1 OK | vms=1 up=1 wanted=1 failed=0 disks=2/2 copies=1/1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// setState sets the state of an item, and leaves out others of its name.
func setState(s *Seen, kind, name, state string) {
	for i := range s.Items {
		if s.Items[i].Kind == kind && s.Items[i].Name == name {
			s.Items[i].State = state
		}
	}
}

// Each code comes with its text and with the command to type; no other problem is told.
func TestEachProblem(t *testing.T) {
	missing := &ledger.MissingError{Missing: []ledger.Member{{MemberRef: ledger.MemberRef{Copy: "a", Pool: uuid1}, Err: errors.New("input/output error")}}}
	for name, c := range map[string]struct {
		do   func(*Seen)
		want []string
	}{
		"the ledger's disk is absent": {func(s *Seen) {
			s.Ledger.Faults = []error{missing}
			setState(s, "disk", "c2", "absent")
			setState(s, "pool", m2, "unavail")
		}, []string{"! ledger-copy-missing: a copy of the ledger is missing: disk c2 (m2:17, S2) is absent > put it back, then: zpool clear " + m2}},
		"the ledger's pool does not answer": {func(s *Seen) {
			s.Ledger.Faults = []error{missing}
			setState(s, "pool", m2, "unavail")
		}, []string{"! ledger-copy-missing: a copy of the ledger is missing: pool " + m2 + " is UNAVAIL > zpool clear " + m2}},
		"the ledger's dataset is not mounted": {func(s *Seen) { s.Ledger.Faults = []error{missing} },
			[]string{"! ledger-copy-missing: a copy of the ledger is missing: input/output error > sledctl bootstrap"}},
		"the ledger was given up a copy": {func(s *Seen) {
			s.Ledger.Faults = []error{fmt.Errorf("%w: it is kept without copy b", ledger.ErrMissing)}
		},
			[]string{"! ledger-copy-missing: a copy of the ledger is missing: it is kept without copy b > sledctl ledger heal"}},
		"the ledger is unsound": {func(s *Seen) { s.Ledger.Faults = []error{ledger.ErrForked, ledger.ErrTwins} },
			[]string{"! ledger-unsound: copies of the ledger disagree > sledctl ledger check"}},
		"the ledger is unconfirmed": {func(s *Seen) { s.Ledger.Warnings = []string{ledger.Unconfirmed + "a seq is not on a copy", "other"} },
			[]string{"! ledger-unconfirmed: the end of the ledger is not confirmed: a seq is not on a copy > sledctl bootstrap"}},
		"there is no ledger": {func(s *Seen) {
			s.NoLedger = &ledger.AbsentError{}
			s.Drifts = []storage.Drift{{Kind: "pool", Name: pool2, Property: "imported", RepairedBy: "bootstrap"}}
		},
			[]string{"! sled-unprepared: the sled is not prepared: it has no ledger yet > sledctl bootstrap"}},
		"the ledger is gone, and the disks record that there was one": {func(s *Seen) { s.NoLedger = &ledger.AbsentError{Tag: &ledger.EpochTag{Ledger: "l", N: 2}} },
			[]string{"! ledger-unsound: no copy of the ledger: no place to look for one; but the sled's disks record ledger l, epoch 2 > sledctl bootstrap"}},
		"a newer sledctl has written the ledger": {func(s *Seen) {
			s.NoLedger = &ledger.AbsentError{Places: []ledger.Absence{{File: "/l", Err: &ledger.BrokenError{File: "/l", Reason: "the file has format 2", Newer: true}}}}
		}, []string{"! ledger-unsound: a newer sledctl has written the ledger: /l: the file has format 2 > install.sh rollback"}},
		"a disk with a VM is absent": {func(s *Seen) {
			setState(s, "disk", "c1", "absent")
			setState(s, "pool", pool1, "unavail")
			s.Instances = append(s.Instances, vm("web2", "failed", "x", pool1))
		}, []string{"! disk-absent: disk c1 (u2:3, S1) is absent; 1 VM runs on, without its pool; 1 VM cannot start without its pool > put it back, then: zpool clear " + pool1}},
		"a disk without a pool is absent": {func(s *Seen) {
			s.Items = append(s.Items, storage.Item{Kind: "disk", Name: "c3", State: "absent"})
		}, []string{"~ disk-absent: disk c3 is absent > put it back, then: sledctl bootstrap"}},
		"a disk is absent whose pool was never imported": {func(s *Seen) {
			s.Items = append(s.Items, storage.Item{Kind: "disk", Name: "c3", State: "absent"})
			s.Disks = append(s.Disks, storage.Record{Name: "c3", Kind: disk.U2, Slot: 1, Serial: "S3", Pool: pool2})
			s.Instances = append(s.Instances, vm("db1", "absent", "sled was rebooted", pool2))
		}, []string{"! disk-absent: disk c3 (u2:1, S3) is absent; 1 VM cannot start without its pool > put it back, then: sledctl bootstrap"}},
		"a pool does not answer": {func(s *Seen) { setState(s, "pool", pool1, "suspended") },
			[]string{"! pool-unavail: pool " + pool1 + " is SUSPENDED; 1 VM runs on, without it > zpool clear " + pool1}},
		"a pool is not imported": {func(s *Seen) {
			s.Drifts = []storage.Drift{{Kind: "pool", Name: pool2, Property: "imported", RepairedBy: "bootstrap"}}
		}, []string{"~ pool-unavail: pool " + pool2 + " is not imported > sledctl bootstrap"}},
		"a pool is locked": {func(s *Seen) {
			s.Items = append(s.Items, storage.Item{Kind: "dataset", Name: pool1 + "/crypt", Pool: pool1, State: "locked"})
			s.Drifts = []storage.Drift{{Kind: "dataset", Name: pool1 + "/crypt", Property: "key"}, {Kind: "dataset", Name: pool1 + "/crypt/zone", Property: "existence"}}
		}, []string{"! pool-locked: pool " + pool1 + " is locked: its key is not loaded; 1 VM runs on, without it > sledctl bootstrap"}},
		"a VM failed": {func(s *Seen) {
			s.Instances = append(s.Instances, vm("db1", "failed", "its zone propolis_instance_"+closed+" was removed", pool1))
		}, []string{"! vm-failed: db1 failed: its zone was removed > sledctl instance ensure db1"}},
		"VMs failed for one reason, and one for another": {func(s *Seen) {
			s.Instances = append(s.Instances, vm("db10", "absent", "sled was rebooted", pool1), vm("db2", "absent", "sled was rebooted", pool1), vm("db3", "unknown", "mute", pool1))
		}, []string{"! vm-absent: 2 VMs are absent: sled was rebooted > sledctl instance ensure --all", "! vm-unknown: db3 cannot be asked: mute > sledctl instance ensure db3"}},
		"the sled was rebooted, and not brought up": {func(s *Seen) {
			s.Unprepared = true
			s.Instances = []instance.Instance{vm("db1", "absent", "sled was rebooted while it ran; its zone is missing", pool1), vm("db2", "absent", "sled was rebooted while it ran; x", pool1)}
			s.Items = append(s.Items, storage.Item{Kind: "dataset", Name: pool1 + "/crypt", Pool: pool1, State: "locked"})
			s.Drifts = []storage.Drift{{Kind: "pool", Name: pool2, Property: "imported", RepairedBy: "bootstrap"}, {Kind: "dataset", Name: "x", Property: "mounted", RepairedBy: "bootstrap"}}
		}, []string{"! sled-unprepared: the sled was rebooted, and is not prepared; 2 VMs are absent > sledctl bootstrap && sledctl instance ensure --all"}},
		"the sled was not prepared": {func(s *Seen) { s.Unprepared, s.Instances = true, nil }, []string{"! sled-unprepared: the sled is not prepared > sledctl bootstrap"}},
		"the sled was rebooted, and brought up": {func(s *Seen) {
			s.Instances = append(s.Instances, vm("db1", "absent", "sled was rebooted while it ran; its zone is missing", pool1), vm("db2", "absent", "sled was rebooted while it ran; x", pool1))
		}, []string{"! vm-absent: 2 VMs are absent: sled was rebooted > sledctl instance ensure --all"}},
		"a guest has shut itself down": {func(s *Seen) { s.Instances = append(s.Instances, vm("db1", "stopped", "", pool1)) },
			[]string{"! vm-failed: db1 is stopped, and wanted running > sledctl instance ensure db1"}},
		"a VM was stopped": {func(s *Seen) {
			stopped := vm("db1", "stopped", "", pool1)
			stopped.Wanted = record.WantedStopped
			s.Instances = append(s.Instances, stopped)
		}, nil},
		"a process is at work on a VM": {func(s *Seen) {
			s.Instances = append(s.Instances, vm("db1", "failed", "x", pool1))
			s.AtWork = []operation.Holder{{Subject: record.Subject("id-db1"), PID: 7, Verb: "instance ensure", Since: now.Add(-time.Minute)}}
			s.Open = []operation.OpenIntent{{Intent: operation.Intent{Subject: record.Subject("id-db1")}}}
		}, nil},
		"an operation was killed": {func(s *Seen) {
			s.Instances = append(s.Instances, vm("db1", "creating", "x", pool1))
			s.Open = []operation.OpenIntent{{Intent: operation.Intent{Verb: "instance ensure", Subject: record.Subject("id-db1"), Time: now}}}
		}, []string{"! operation-died: instance ensure of db1 was killed, and did not finish > sledctl instance ensure db1"}},
		"a copy, a rollback and a snapshot were killed": {func(s *Seen) {
			s.Instances = append(s.Instances, vm("a", "creating", "x", pool1), vm("b", "stopped", "", pool1))
			s.Instances[len(s.Instances)-1].Wanted = record.WantedStopped
			s.Open = []operation.OpenIntent{
				{Intent: operation.Intent{Verb: "instance copy", Subject: record.Subject("id-a"), Time: now}},
				{Intent: operation.Intent{Verb: "instance snapshot rollback", Subject: record.Subject("id-b"), Time: now, Changes: []operation.Object{{Kind: "snapshot", Name: "monday"}}}},
				{Intent: operation.Intent{Verb: "instance snapshot create", Subject: "snapshot/id-b/tuesday", Time: now}},
			}
		}, []string{"! operation-died: instance copy of a was killed, and did not finish > sledctl instance ensure a",
			"! operation-died: instance snapshot rollback of b was killed, and did not finish > sledctl instance snapshot rollback b monday",
			"! operation-died: instance snapshot create of b@tuesday was killed, and did not finish > sledctl reap"}},
		"an operation on nothing known was killed": {func(s *Seen) {
			s.Open = []operation.OpenIntent{
				{Intent: operation.Intent{Verb: "instance ensure", Subject: record.Subject("gone"), Time: now}},
				{Intent: operation.Intent{Verb: "base ensure", Subject: "base/" + pool1, Time: now}},
			}
		}, []string{"! operation-died: instance ensure was killed, and did not finish > sledctl reap",
			"! operation-died: base ensure of " + pool1 + " was killed, and did not finish > sledctl bootstrap"}},
		"a departure and an arrival are stuck": {func(s *Seen) {
			out, in := vm("a", "migrating", "", pool1), vm("b", "creating", "", pool1)
			out.Migration, in.Migration = &record.Migration{Target: []string{"sled2"}}, &record.Migration{Source: "10.0.0.1:12400"}
			s.Instances = append(s.Instances, out, in)
		}, []string{"! migration-stuck: a: it departs by a migration to sled2, and no process is at work on it > sledctl instance migrate a",
			"! migration-stuck: b: it arrives by a migration from 10.0.0.1:12400, and no process is at work on it > sledctl instance ensure b"}},
		"a migration and its operation were killed": {func(s *Seen) {
			out := vm("a", "migrating", "", pool1)
			out.Migration = &record.Migration{Target: []string{"sledctl", "--host", "sim:/tmp/sled2"}}
			s.Instances = append(s.Instances, out)
			s.Open = []operation.OpenIntent{{Intent: operation.Intent{Verb: "instance migrate", Subject: record.Subject(out.ID), Time: now}}}
		}, []string{"! migration-stuck: a: it departs by a migration to sled2, and no process is at work on it > sledctl instance migrate a"}},
		"an operation takes long": {func(s *Seen) {
			s.AtWork = []operation.Holder{{Subject: "reap", PID: 7, Verb: "reap", Since: now.Add(-time.Hour), Command: "zoneadm halt"}, {Subject: "sled", PID: 8, Since: now}}
		}, []string{"~ operation-long: reap has been at work for 60 minutes (pid 7): zoneadm halt > ps -fp 7"}},
		"a VM was changed": {func(s *Seen) { s.Instances[0].Changed = []string{"its VNIC v is gone", "b"} },
			[]string{"~ vm-changed: web1 runs, and its VNIC v is gone; b > sledctl instance get web1 --diff"}},
		"a pool is nearly full": {func(s *Seen) { s.Items[2].Free = 200 << 30 },
			[]string{"~ pool-full: pool " + pool1 + " is 80% full: 200.0G free > sledctl storage list --pool " + pool1}},
		"a pool with VMs is full": {func(s *Seen) { s.Items[2].Free, s.Items[2].State = 50<<30, "full" },
			[]string{"! pool-full: pool " + pool1 + " is 95% full: 50.0G free > sledctl storage list --pool " + pool1}},
		"a pool without VMs is full": {func(s *Seen) { s.Items[3].Free = 512 << 20 },
			[]string{"~ pool-full: pool " + m2 + " is 99% full: 512M free > sledctl storage list --pool " + m2}},
		"memory is nearly full": {func(s *Seen) {
			s.Reservoir = &reservoir.State{Allocated: 50 << 30, Transient: 35 << 30, Limit: 100 << 30}
		},
			[]string{"~ memory-full: 85% of the memory for guests is in use: 15.0G free > sledctl instance list"}},
		"memory is full": {func(s *Seen) { s.Reservoir = &reservoir.State{Allocated: 96 << 30, Limit: 100 << 30} },
			[]string{"! memory-full: 96% of the memory for guests is in use: 4.0G free > sledctl instance list"}},
		"a disk is blank": {func(s *Seen) {
			s.Drifts = []storage.Drift{{Kind: "disk", Name: "c9", Property: "contents", Is: "blank", RepairedBy: "operator"}}
		}, []string{"~ disk-blank: disk c9 is blank: the sled does not use it > sledctl storage format c9"}},
		"a dataset differs": {func(s *Seen) {
			s.Drifts = []storage.Drift{{Kind: "dataset", Name: pool1 + "/crypt", Property: "atime", Is: "on", Wanted: "off", RepairedBy: "bootstrap"}}
		}, []string{"~ dataset-differs: dataset " + pool1 + "/crypt: atime is on, wanted off > sledctl bootstrap"}},
		"two things differ that only an operator can repair": {func(s *Seen) {
			s.Drifts = []storage.Drift{{Kind: "disk", Name: "c1", Property: "pool", RepairedBy: "operator"}, {Kind: "disk", Name: "c2", Property: "pool", RepairedBy: "operator"}}
		}, []string{"~ dataset-differs: 2 disks, pools or datasets are not as they must be > sledctl storage check"}},
		"zones are in no record": {func(s *Seen) {
			s.Unrecorded = []zone.Zone{{Name: "a", State: zone.Running}, {Name: "b", State: zone.Running}, {Name: "c", State: zone.Installed}}
		}, []string{"~ vm-unrecorded: 2 zones of sledctl run and are in no record > sledctl instance adopt --all --dry-run",
			"~ reap: 1 zone of sledctl does not run and is in no record > sledctl reap --dry-run"}},
		"spares are in no record": {func(s *Seen) {
			s.LostSpares = []zone.Zone{{Name: "a", State: zone.Running}, {Name: "b", State: zone.Installed}}
		},
			[]string{"~ reap: 2 spares are in no record > sledctl reap --dry-run"}},
		"a base is invalid": {func(s *Seen) {
			s.Bases = []base.Status{{Record: base.Record{Zone: "base1", Pool: pool1}, Reason: "its zone is gone"}, {Record: base.Record{Zone: "base2", Pool: pool2}}}
			s.Items = append(s.Items, storage.Item{Kind: "disk", Name: "c3", State: "absent"})
			s.Disks = append(s.Disks, storage.Record{Name: "c3", Kind: disk.U2, Slot: 1, Serial: "S3", Pool: pool2})
		}, []string{"~ disk-absent: disk c3 (u2:1, S3) is absent > put it back, then: sledctl bootstrap", "~ base-invalid: base base1: its zone is gone > sledctl bootstrap"}},
		"volumes and an image are gone": {func(s *Seen) {
			record := volume.Record{ID: "1", Name: "db1", Pool: pool1}
			s.Volumes = []volume.Status{
				{Record: record, State: volume.Missing, Reason: "dataset x is gone", Instances: []string{"web1"}}, {Record: record, State: volume.Differs, Reason: "its size is 1G, not 2G"},
				{Record: record, State: volume.Ready}, {Record: record, State: volume.Unseen}, {Record: record, State: volume.Arrives},
			}
			s.Images = []image.Status{{Record: image.Record{Name: "deb", Pool: pool1}, State: image.Missing}, {Record: image.Record{Name: "old", Pool: pool1}, State: image.Ready}}
		}, []string{"! volume-missing: volume db1: dataset x is gone; a disk of web1 > sledctl volume get db1", "~ volume-differs: volume db1: its size is 1G, not 2G > sledctl volume get db1",
			"~ image-missing: image deb is gone from its pool > sledctl image delete deb"}},
		"the agent does not run, and the control plane needs it": {func(s *Seen) { s.Nexus = "http://nexus" },
			[]string{"! agent-down: the agent does not run: the control plane is not notified > svcadm enable sledctl/agent"}},
		"the agent does not run on a simulated sled": {func(s *Seen) { s.Nexus, s.Sled.Simulated = "http://nexus", true },
			[]string{"! agent-down: the agent does not run: the control plane is not notified > sledctl agent"}},
		"the agent has run for long": {func(s *Seen) {
			s.Nexus, s.AtWork = "http://nexus", []operation.Holder{{Subject: "agent", Verb: "agent", PID: 9, Since: now.Add(-time.Hour)}}
		}, nil},
		"the key is public": {func(s *Seen) { s.DevelopmentKey = true },
			[]string{"~ key-development: disks are encrypted with the public development key > set storage.key, then: sledctl storage rekey"}},
		"the key is public, on a simulated sled": {func(s *Seen) { s.DevelopmentKey, s.Sled.Simulated = true, true }, nil},
		"a fault is armed": {func(s *Seen) { s.Faults = []string{`fail "zoneadm clone"`} },
			[]string{`~ fault-armed: simulated sled: 1 fault is armed (fail "zoneadm clone") > sledctl sim fault list`}},
	} {
		t.Run(name, func(t *testing.T) {
			seen := well()
			c.do(&seen)
			var got []string
			for _, p := range Judge(seen).Problems {
				next := strings.Join(p.Next, " && ")
				if p.Hands != "" {
					next = p.Hands + ", then: " + next
				}
				got = append(got, p.Severity.Sign()+" "+p.Code+": "+p.Text+" > "+next)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The most urgent problem comes first, and the verdict is its.
func TestTheOrderOfUrgency(t *testing.T) {
	seen := well()
	seen.Faults = []string{"x"}
	seen.Instances[0].Changed = []string{"c"}
	seen.Items[3].Free = 1
	if got := Judge(seen).Verdict; got != IsAttention {
		t.Errorf("verdict %s", got)
	}
	seen.Instances = append(seen.Instances, vm("db2", "failed", "x", pool1), vm("db10", "failed", "y", pool1))
	seen.Ledger.Faults = []error{ledger.ErrForked}
	s := Judge(seen)
	var got []string
	for _, p := range s.Problems {
		got = append(got, p.Code+" "+p.Subject.Name)
	}
	want := []string{"ledger-unsound ", "vm-failed db2", "vm-failed db10", "pool-full " + m2, "vm-changed web1", "fault-armed "}
	if s.Verdict != IsTrouble || !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", s.Verdict, got, want)
	}
	if got, want := s.Line(), "s1 TROUBLE ledger-unsound vm-failed=2 pool-full vm-changed fault-armed | vms=3 up=1 wanted=3 failed=2 disks=2/2 copies=1/1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	seen.Unknown = []error{errors.New("zpool did not answer within 5 s")}
	if s := Judge(seen); s.Verdict != IsUnknown || !slices.Equal(s.Unknown, []string{"zpool did not answer within 5 s"}) {
		t.Errorf("%s: %v", s.Verdict, s.Unknown)
	}
}

// A VM that failed has the time when it did, or one after which it did. VMs of one reason have
// the earliest of theirs.
func TestWhenVMsFailed(t *testing.T) {
	earlier, later := now.Add(-time.Hour), now.Add(-time.Minute)
	at := func(state string, since, updated time.Time) instance.Instance {
		i := vm("db1", state, "x", pool1)
		i.Since, i.Updated = since, updated
		return i
	}
	for name, c := range map[string]struct {
		vms              []instance.Instance
		since, notBefore *time.Time
	}{
		"it is known":              {[]instance.Instance{at("failed", later, earlier)}, &later, nil},
		"the record is older":      {[]instance.Instance{at("failed", time.Time{}, earlier)}, nil, &earlier},
		"of two":                   {[]instance.Instance{at("failed", later, later), at("failed", earlier, earlier)}, &earlier, nil},
		"of two, one is not known": {[]instance.Instance{at("failed", earlier, earlier), at("failed", time.Time{}, later)}, nil, &earlier},
		"nothing is known":         {[]instance.Instance{at("failed", time.Time{}, time.Time{})}, nil, nil},
		"one that has not failed":  {[]instance.Instance{at("absent", time.Time{}, earlier)}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			seen := well()
			seen.Instances = c.vms
			p := Judge(seen).Problems[0]
			if diff := cmp.Diff([]*time.Time{c.since, c.notBefore}, []*time.Time{p.Since, p.NotBefore}); diff != "" || p.Reason != "x" {
				t.Errorf("%s, reason %q", diff, p.Reason)
			}
		})
	}
}
