package commands_test

import (
	"strings"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/sledtest"
)

// again is a sled on which web1 has been running when the power went, and the names of
// what it had.
type again struct {
	*sledtest.Operator
	zone, root, dataset, base string
	mounted                   bool // the zone's root
}

func rebootedSled(t *testing.T) again {
	t.Helper()
	s := again{Operator: sledtest.New(t, sledtest.Small(), "")}
	s.Run("bootstrap")
	s.Run("instance ensure web1 --nic over=net0")
	s.find()
	s.WriteFile(s.root+"/etc/written-by-the-first-life", "x")
	if err := s.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// find finds the zone that web1 has now.
func (s *again) find() {
	s.T.Helper()
	got := s.Run("instance get web1 -o json")
	s.zone = between(got, `"zone":"`, `"`)
	pool := between(got, `"pool":"`, `"`)
	s.dataset = pool + "/crypt/zone/" + s.zone
	s.root = "/pool/ext/" + strings.TrimPrefix(pool, "oxp_") + "/crypt/zone/" + s.zone + "/root"
	s.base = "propolis_base_" + between(s.Run("zone list -H -o name"), "propolis_base_", "\n")
}

// writeInto changes a file of the zone while it does not run.
func (s again) writeInto() {
	s.T.Helper()
	if !s.mounted {
		s.Command("mount -F zfs " + s.dataset + "/ROOT/zbe " + s.root)
	}
	s.WriteFile(s.root+"/etc/passwd", "evil::0:0::/:/bin/sh\n")
}

// tampering changes something of a zone that does not run.
type tampering struct {
	tamper func(again)
	why    string // why it cannot be proven to be as it was cloned; empty: a rollback undoes it
}

func tamperings() map[string]tampering {
	return map[string]tampering{
		"nothing":           {func(again) {}, ""},
		"files in its root": {func(s again) { s.writeInto() }, ""},
		"its configuration, in what sledctl sets": {func(s again) {
			s.Command("zonecfg -z " + s.zone + " add attr ; set name=x ; set type=string ; set value=y ; end")
		}, "its zone's configuration differs"},
		"its configuration, in what sledctl does not look at": {func(s again) {
			s.Command("zonecfg -z " + s.zone + " set bootargs=\"-m verbose\"")
		}, "are not those of then"},
		"its snapshots, made again with other contents": {func(s again) {
			s.writeInto()
			s.Command("zfs destroy -r " + s.dataset + "@sledctl-clean")
			s.Command("zfs snapshot -r " + s.dataset + "@sledctl-clean")
		}, "are not those of then"},
		"its snapshots, destroyed": {func(s again) {
			s.Command("zfs destroy -r " + s.dataset + "@sledctl-clean")
		}, "are not those of then"},
		"a later snapshot of somebody's": {func(s again) {
			s.Command("zfs snapshot " + s.dataset + "/ROOT/zbe@mine")
		}, "are not those of then"},
		"its state": {func(s again) {
			s.Command("zoneadm -z " + s.zone + " mark incomplete")
		}, "its zone is incomplete"},
		"another file system in it": {func(s again) {
			s.Command("zfs create -o mountpoint=legacy " + s.dataset + "/ROOT/zbe/more")
		}, "are not those of then"},
		"the mark of its dataset": {func(s again) {
			s.Command("zfs set sledctl:instance=another " + s.dataset)
		}, "has lost its mark"},
		"the mark of its base": {func(s again) {
			s.Command("zfs set sledctl:base=another " + strings.Replace(s.dataset, s.zone, s.base, 1))
		}, "its base is not the one that zones are cloned from now"},
	}
}

// TestAZoneThatWasTamperedWithIsNotBootedAsCloned changes something while the sled is
// off: what ensures says why it does not believe in the zone any more, and clones it.
func TestAZoneThatWasTamperedWithIsNotBootedAsCloned(t *testing.T) {
	t.Parallel()
	for name, c := range tamperings() {
		t.Run(name, func(t *testing.T) {
			sledtest.Sample(t, name)
			s := rebootedSled(t)
			macs := s.Run("instance get web1 -o json")
			s.Run("bootstrap") // only then can anybody get at what is on the pool
			c.tamper(s)
			told := s.Run("instance ensure web1 --dry-run")
			kept := strings.Contains(s.Run("reap -n -H"), s.zone+"\tin use\t-\tinstance web1; it is as it was cloned, and the next ensure boots it")
			s.Run("instance ensure web1")
			cloned := strings.Contains(s.Run("trace"), " clone ")
			switch {
			case c.why == "" && (!kept || cloned || !strings.Contains(told, `would boot the zone of instance "web1" again`)):
				t.Errorf("kept %v, cloned %v, and said %s", kept, cloned, told)
			case c.why != "" && (kept || !cloned):
				t.Errorf("kept %v, cloned %v, and said %s", kept, cloned, told)
			}
			if mac := between(macs, `"mac":"`, `"`); !strings.Contains(s.Run("instance get web1 -o json"), mac) {
				t.Errorf("the MAC %s is lost", mac)
			}
			s.untouched(t)
		})
	}
}

// untouched holds that nothing of the life before the reboot is in the zone that runs.
func (s again) untouched(t *testing.T) {
	t.Helper()
	s.find()
	if _, err := s.Host().Files().Stat(s.root + "/etc/written-by-the-first-life"); err == nil {
		t.Error("what the first life has written is there")
	}
	if data, err := host.ReadFile(s.Host().Files(), s.root+"/etc/passwd"); err == nil && strings.Contains(string(data), "evil") {
		t.Error("what was written while the sled was off is there")
	}
}

func between(text, from, to string) string {
	_, rest, _ := strings.Cut(text, from)
	found, _, _ := strings.Cut(rest, to)
	return found
}
