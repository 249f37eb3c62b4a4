package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest"
)

const (
	testZone = "propolis_instance_8c4a2b1e-6a57-4a5c-9d3e-000000000001"
	u2       = "oxp_e4b4dc87-ab46-49fb-a4b4-d361ae214c03"
	m2       = "oxi_a462a7f7-b628-40fe-80ff-4e4189e2d62b"
)

func moment() time.Time { return time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC) }

func TestIDsSayWhenAndWhy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.UnixMilli(rapid.Int64Range(0, 4e12).Draw(t, "time")).UTC()
		cause := rapid.SampledFrom([]Cause{Failed, StaleZone, Orphan, Removed, Requested}).Draw(t, "cause")
		gotAt, gotCause, ok := parseID(ID(at, cause, rapid.String().Draw(t, "seed")))
		if !ok || !gotAt.Equal(at) || gotCause != cause {
			t.Errorf("%v %v %v", gotAt, gotCause, ok)
		}
	})
	if at, _, ok := parseID("20250301T120000Z-failed-01234567"); !ok || !at.Equal(moment()) {
		t.Errorf("an id of whole seconds is %v, %v", at, ok)
	}
	for _, bad := range []string{"", "x", "20250301T120000.5Z-failed-01234567", "20250301T120000Z-failed", "20250301T120000Z-failed-0123456g", "20251301T120000Z-failed-01234567", "20250301T120000Z--01234567",
		"20250301T120000Z-../-01234567", "../20250301T120000Z-failed-01234567"} {
		if _, _, ok := parseID(bad); ok {
			t.Errorf("%q is an id", bad)
		}
	}
}

func put(t *testing.T, f host.Files, name, data string) {
	t.Helper()
	if err := host.WriteFile(f, name, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

func take(n int) Take {
	return Take{Zone: testZone, Zonepath: "/zone/z", ID: ID(moment().Add(time.Duration(n)*time.Second), Failed, fmt.Sprint(n)), Reason: "its instance had failed",
		Dir: "/bundles", Max: DefaultMax, Lock: "/run/lock/bundle"}
}

func bundles(t *testing.T, h host.Host) []Bundle {
	t.Helper()
	all, err := List(h.Files(), []Place{{Dir: "/bundles"}})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// open reads a bundle.
func open(t *testing.T, h host.Host, b Bundle) (Metadata, map[string]string) {
	t.Helper()
	data, err := host.ReadFile(h.Files(), b.Path)
	if err != nil {
		t.Fatal(err)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(unzipped)
	files := map[string]string{}
	for {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[head.Name] = string(text)
	}
	var about Metadata
	if err := json.Unmarshal([]byte(files[metadataName]), &about); err != nil {
		t.Fatal(err)
	}
	delete(files, metadataName)
	return about, files
}

func TestABundleOfAZoneThatDoesNotRun(t *testing.T) {
	h := newSled(t)
	if err := take(0).Do(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	all := bundles(t, h)
	if len(all) != 1 || all[0].Zone != testZone || all[0].Cause != Failed || !all[0].Time.Equal(moment()) {
		t.Fatalf("%+v", all)
	}
	about, files := open(t, h, all[0])
	want := map[string]string{
		"zone.xml": "<zone/>", "root/var/svc/log/system-propolis:default.log": "it fell over\n", "root/var/adm/messages": "panic\n",
	}
	if d := cmp.Diff(want, files); d != "" {
		t.Error(d)
	}
	if len(about.Problems) != 0 || about.Reason != "its instance had failed" || about.Zone != testZone || len(about.Files) != len(want) {
		t.Errorf("%+v", about)
	}
	for name, content := range want {
		got, err := Read(h.Files(), all[0], func(n string) bool { return n == name })
		if d := cmp.Diff([]File{{name, []byte(content)}}, got); d != "" || err != nil {
			t.Errorf("%s: %s, %v", name, d, err)
		}
	}
	if got, err := Read(h.Files(), all[0], func(n string) bool { return n == "root/etc/shadow" }); got != nil || err != nil {
		t.Errorf("a file that it does not have: %q, %v", got, err)
	}
	info, err := h.Files().Stat(all[0].Path)
	if err != nil || info.Mode.Perm() != 0o600 {
		t.Errorf("%v, %v: logs are nobody else's business", info.Mode, err)
	}
}

func TestWhatCannotBeHadIsAProblemAndNoFailure(t *testing.T) {
	h := newSled(t)
	s := take(0)
	s.Zonepath, s.Zone = "/zone/nowhere", "z9"
	if err := s.Do(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	about, files := open(t, h, bundles(t, h)[0])
	if len(files) != 0 || len(about.Problems) != 2 {
		t.Errorf("%v, %v", files, about.Problems)
	}
}

// A running zone is asked; what does not answer is noted in its place.
func TestARunningZoneIsAsked(t *testing.T) {
	h := newSled(t)
	s := take(0)
	s.Running = true
	var mu sync.Mutex
	asked := map[string]bool{}
	answers := answering{Host: h, answer: func(c host.Command) (host.Result, error) {
		mu.Lock()
		asked[c.Program] = c.ReadOnly
		mu.Unlock()
		switch c.Program {
		case "svcs":
			return host.Result{Stdout: []byte("online svc:/milestone/single-user:default\n")}, nil
		case "ps":
			return host.Result{}, host.ErrNoCommand
		}
		return host.Result{Exit: 1, Stderr: []byte("no\n")}, nil
	}}
	if err := s.Do(t.Context(), answers); err != nil {
		t.Fatal(err)
	}
	_, files := open(t, h, bundles(t, h)[0])
	if !strings.Contains(files["services.txt"], "# svcs -z "+testZone+" -a\nonline svc:/milestone") {
		t.Errorf("%q", files["services.txt"])
	}
	if !strings.Contains(files["processes.txt"], "# not answered: command not found") {
		t.Errorf("%q", files["processes.txt"])
	}
	if !strings.Contains(files["addresses.txt"], "# exit 1") || !strings.Contains(files["addresses.txt"], "no\n") {
		t.Errorf("%q", files["addresses.txt"])
	}
	for program, readOnly := range asked {
		if !readOnly {
			t.Errorf("%s may change something", program)
		}
	}
}

type answering struct {
	host.Host
	answer func(host.Command) (host.Result, error)
}

func (a answering) Run(_ context.Context, c host.Command) (host.Result, error) { return a.answer(c) }

// What a guest may have planted in the root is not followed and not opened.
func TestNothingButFilesOfTheRootIsRead(t *testing.T) {
	f := hosttest.Memory()
	for _, dir := range []string{"/zone/z/root/var/svc/log/dir", "/etc"} {
		if err := host.MkdirAll(f, dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(t, f, "/etc/shadow", "secret")
	put(t, f, "/zone/z/root/var/svc/log/real.log", "log")
	for link, to := range map[string]string{
		"/zone/z/root/var/svc/log/a.log": "/etc/shadow", "/zone/z/root/var/svc/log/b.log": "../../../../../../etc/shadow", "/zone/z/root/var/log": "/etc",
		"/zone/z/root/var/adm": "../../../../etc",
	} {
		if err := f.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	var c collection
	c.logs(f, "/zone/z/root")
	for _, m := range c.members {
		if m.Name != "root/var/svc/log/real.log" || strings.Contains(string(m.data), "secret") {
			t.Errorf("%s: %s", m.Name, m.data)
		}
	}
	if len(c.members) != 1 {
		t.Errorf("%d members, problems: %q", len(c.members), c.problems)
	}
}

func TestOfALongLogTheEndIsKept(t *testing.T) {
	f := hosttest.Memory()
	put(t, f, "/log", strings.Repeat("a", memberMax)+"the end")
	m, err := end(f, "/log")
	if err != nil {
		t.Fatal(err)
	}
	if len(m.data) != memberMax || !bytes.HasSuffix(m.data, []byte("the end")) || m.Of != memberMax+7 {
		t.Errorf("%d bytes of %d", len(m.data), m.Of)
	}
	var c collection
	for range totalMax/memberMax + 3 {
		c.add(m)
	}
	if c.total != totalMax || len(c.problems) != 3 {
		t.Errorf("%d bytes, %d problems", c.total, len(c.problems))
	}
}

// Wherever it is killed, what is listed is whole, and the next one leaves
// nothing half-written.
func TestABundleIsWholeOrNotThere(t *testing.T) {
	points := 0
	for _, mode := range []host.CrashMode{host.CrashBefore, host.CrashAfter, host.CrashDuring} {
		for point := 1; ; point++ {
			h := newSled(t)
			if err := take(0).Do(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			size := bundles(t, h)[0].Size
			dying := host.Crash(h, point, mode)
			s := take(1)
			s.Max = size + size/2 // the first must go
			err := s.Do(t.Context(), dying)
			dying.Wait()
			if !dying.Crashed() {
				if err != nil {
					t.Fatal(err)
				}
				break
			}
			points++
			for _, b := range bundles(t, h) {
				open(t, h, b)
			}
			if err := take(2).Do(t.Context(), h); err != nil {
				t.Fatalf("at %d: %v", point, err)
			}
			infos, err := h.Files().ReadDir("/bundles/bundle/zone/" + testZone)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range infos {
				if !strings.HasSuffix(i.Name, suffix) {
					t.Errorf("at %d: %s is left", point, i.Name)
				}
			}
		}
	}
	t.Logf("%d cases", points)
	if points < 15 {
		t.Errorf("%d cases", points)
	}
}

func TestBadValuesNeverBecomeFileNames(t *testing.T) {
	h := newSled(t)
	for _, change := range []func(*Take){
		func(s *Take) { s.Zone = "../../etc" }, func(s *Take) { s.Zone = "" }, func(s *Take) { s.ID = "../x" },
	} {
		s := take(0)
		change(&s)
		if s.Do(t.Context(), h) == nil {
			t.Errorf("%+v was taken", s)
		}
	}
}

// What is explained is what happens.
func TestWhatIsExplainedIsDone(t *testing.T) {
	h := newSled(t)
	var done, explained []string
	traced := host.Trace(h, func(e host.Event) {
		if e.Line.Mutates() {
			done = append(done, e.Line.Text)
		}
	})
	if err := take(0).Do(t.Context(), traced); err != nil {
		t.Fatal(err)
	}
	for _, l := range take(0).Explain() {
		if l.Mutates() {
			explained = append(explained, l.Text)
		}
	}
	if d := cmp.Diff(explained, done); d != "" {
		t.Error(d)
	}
}
