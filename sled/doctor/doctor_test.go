package doctor

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/system"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/hosttest"
)

// Every check has an id of its own, a page, and questions that exist.
func TestEveryCheckIsComplete(t *testing.T) {
	page, err := os.ReadFile("../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	ids, known := map[string]bool{}, asks()
	asked := map[Question]bool{}
	for _, c := range Checks() {
		if ids[c.ID] || c.Group == "" || c.About == "" || c.Judge == nil || len(c.Asks) == 0 {
			t.Errorf("%+v", c)
		}
		ids[c.ID] = true
		if !strings.Contains(string(page), "\n### "+c.ID+"\n") {
			t.Errorf("docs/doctor.md has no heading for %s", c.ID)
		}
		for _, q := range c.Asks {
			if asked[q] = true; known[q] == nil {
				t.Errorf("%s asks %q, which is no question", c.ID, q)
			}
		}
	}
	for q := range known {
		if !asked[q] {
			t.Errorf("no check asks %q", q)
		}
	}
}

// judged is a case of one check: what was seen, and what it comes to.
type judged struct {
	id   string
	seen Seen
	want Verdict
	says string // part of the evidence, or of the repair
}

func judgeAll(t *testing.T, cases map[string]judged) {
	t.Helper()
	for name, c := range cases {
		found := false
		for _, check := range Checks() {
			if check.ID != c.id {
				continue
			}
			found = true
			got := judge([]Check{check}, c.seen)[0]
			if got.Verdict != c.want || !strings.Contains(got.Evidence+"; "+got.Repair(), c.says) {
				t.Errorf("%s: %s, %q, %q; want %s, %q", name, got.Verdict, got.Evidence, got.Repair(), c.want, c.says)
			}
		}
		if !found {
			t.Errorf("%s: no check %s", name, c.id)
		}
	}
}

func TestTheSystem(t *testing.T) {
	kernel := func(version string) Seen { return Seen{Release: "X 1", Kernel: system.ParseKernel(version)} }
	judgeAll(t, map[string]judged{
		"OmniOS":          {"release", kernel("omnios-r151058-1"), OK, "X 1"},
		"SmartOS":         {"release", kernel("joyent_20240111T000000Z"), OK, "NIC records only"},
		"another":         {"release", kernel("illumos-5a1b2c"), Warn, "X 1 is not a distribution"},
		"new":             {"kernel", kernel("omnios-r151058-1"), OK, ""},
		"bloody":          {"kernel", kernel("omnios-master-1"), OK, ""},
		"r151056":         {"kernel", kernel("omnios-r151056-1"), Warn, "2dc64374"},
		"r151050":         {"kernel", kernel("omnios-r151050-1"), Warn, "2dc64374"},
		"r151048":         {"kernel", kernel("omnios-r151048-1"), Fail, "upgrade the system"},
		"Helios":          {"kernel", kernel("helios-2.0.23000"), OK, ""},
		"in the global":   {"global-zone", Seen{Zone: "global"}, OK, ""},
		"in a zone":       {"global-zone", Seen{Zone: "z1"}, Fail, "log in to the global zone, then run: pfexec sledctl doctor"},
		"all":             {"privileges", Seen{Privileges: system.Privileges{Effective: "all"}}, OK, ""},
		"a zone's":        {"privileges", Seen{Privileges: system.Privileges{Effective: "zone"}}, Fail, "are zone"},
		"not asked":       {"privileges", Seen{Unknown: map[Question]error{askPrivileges: errors.New("no")}}, Warn, "could not ask: no"},
		"not asked, page": {"privileges", Seen{Unknown: map[Question]error{askPrivileges: errors.New("no")}}, Warn, "read docs/doctor.md#privileges"},
	})
}

func TestTheWorstComeFirstAndAreTheVerdict(t *testing.T) {
	all := []Check{
		{ID: "a", Judge: func(Seen) Finding { return fine("a") }},
		{ID: "b", Judge: func(Seen) Finding { return warns("b") }},
		{ID: "c", Judge: func(Seen) Finding { return fails("c").then("x", "y") }},
	}
	r := Result{Checks: judge(all, Seen{}), Ignored: []string{"d"}, Verdict: Fail}
	if got := r.Checks[0].ID + r.Checks[1].ID + r.Checks[2].ID; got != "cba" {
		t.Error(got)
	}
	if got := r.Line(); got != "1 fail, 1 warn, 1 ok, 1 ignored" {
		t.Error(got)
	}
	err := r.Err()
	failed, ok := errors.AsType[*FailedError](err)
	if !ok || err.Error() != "check failed: c: c" || failed.Hint() != "run: x && y" || fault.Of(err) != fault.Refused {
		t.Errorf("%v", err)
	}
	r.Checks = judge(append(all, all[2]), Seen{})
	if got := r.Err().Error(); got != "2 checks failed: c, c" {
		t.Error(got)
	}
	if (Result{Verdict: Warn}).Err() != nil {
		t.Error("a warning is no failure")
	}
}

// A result is kept and read again; one that cannot be read is told.
func TestTheLastResultIsKept(t *testing.T) {
	sled := sim.New(sim.Options{}, hosttest.Files)
	t.Cleanup(sled.Close)
	files, s := sled.Host().Files(), Settings{RunDir: "/var/run/sledctl"}
	if last, err := Last(files, s.RunDir); last != nil || err != nil {
		t.Errorf("%+v, %v", last, err)
	}
	at := time.Date(2026, 11, 26, 3, 0, 0, 0, time.UTC)
	r, err := s.Examine(t.Context(), sled.Host(), func() time.Time { return at }, []string{"kernel"})
	if err != nil || r.Verdict != OK || !r.Time.Equal(at) || len(r.Checks) != len(Checks())-1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := s.Keep(t.Context(), files, r); err != nil {
		t.Fatal(err)
	}
	lock, err := files.Lock(t.Context(), "/var/run/sledctl/doctor.lock", host.LockExclusive)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Keep(t.Context(), files, Result{Verdict: Fail}); err != nil {
		t.Error(err)
	}
	if err := lock.Unlock(); err != nil {
		t.Error(err)
	}
	last, err := Last(files, s.RunDir)
	if err != nil || last.Line() != r.Line() || !last.Time.Equal(at) {
		t.Errorf("%+v, %v", last, err)
	}
	if err := host.WriteFile(files, "/var/run/sledctl/doctor.json", []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Last(files, s.RunDir); err == nil {
		t.Error("half a result was read")
	}
}

func TestACheckToIgnoreMustExist(t *testing.T) {
	_, err := Settings{}.Examine(t.Context(), nil, time.Now, []string{"kernal"})
	if unknown, ok := errors.AsType[*UnknownCheckError](err); !ok || unknown.ID != "kernal" || fault.Of(err) != fault.Usage {
		t.Errorf("%v", err)
	}
}
