package top

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/illumos/kstat"
)

// counted is forty VMs that run, each in a zone and with two VNICs, after two readings that
// are 2 s apart: VM n has used n % of a processor, and moved n KiB in and 2 n KiB out.
func counted(width int) *model {
	m := shown(width, 24)
	vms := forty()
	first, second := kstat.Usage{CPU: map[string]time.Duration{}, Links: map[string]kstat.Bytes{}}, kstat.Usage{CPU: map[string]time.Duration{}, Links: map[string]kstat.Bytes{}}
	for i := range vms {
		vms[i].Zone, vms[i].Since = fmt.Sprint("zone", i), m.now.Add(-17*time.Minute)
		first.CPU[vms[i].Zone], second.CPU[vms[i].Zone] = time.Hour, time.Hour+time.Duration(2*i)*10*time.Millisecond
		for _, name := range []string{fmt.Sprint("control", i), fmt.Sprint("guest", i)} {
			vms[i].VNICs = append(vms[i].VNICs, api.VNIC{Name: name})
			first.Links[name], second.Links[name] = kstat.Bytes{In: 7, Out: 9}, kstat.Bytes{In: 7 + uint64(i)<<10, Out: 9 + uint64(2*i)<<10}
		}
	}
	m.count(reading{m.now, first})
	m.list(vms)
	m.count(reading{m.now.Add(2 * time.Second), second})
	m.list(vms)
	return m
}

func TestWhatVMsUse(t *testing.T) {
	m := counted(80)
	if got, known := m.load(m.vms[10]); !known || int(got.cpu+0.5) != 10 || got.in != 10<<10 || got.out != 20<<10 {
		t.Errorf("%+v, %v", got, known)
	}
	text := strings.Join(m.draw(plain), "\n")
	if !strings.Contains(text, " NAME   STATE    CPU%  CPUS  MEMORY  NET in/out  SINCE  REASON\n") || !strings.Contains(text, " web10  running    10     4      8G   10K / 20K  ") {
		t.Errorf("shows\n%s", text)
	}
	if wide := strings.Join(counted(140).draw(plain), "\n"); !strings.Contains(wide, "NET in/out  ADDRESS     SINCE") {
		t.Errorf("shows\n%s", wide)
	}
	for key, first := range map[string]string{byCPU: "web39", byNet: "web39", "": "web00"} {
		for sorts[m.sort] != key {
			typed(m, "o")
		}
		if m.list(m.sorted(forty2(m))); m.vms[0].Name != first || strings.Contains(strings.Join(m.listing(), " "), "%") {
			t.Errorf("by %q the first is %s; it lists by %q", key, m.vms[0].Name, m.listing())
		}
	}
}

// forty2 are the VMs of a model by name, as a list gives them.
func forty2(m *model) []cli.Instance {
	all := forty()
	for i := range all {
		for _, vm := range m.vms {
			if vm.Name == all[i].Name {
				all[i] = vm
			}
		}
	}
	return all
}

// Where the counters do not tell, nothing is invented.
func TestWhatIsNotCounted(t *testing.T) {
	m := counted(80)
	m.is.CPU["zone3"] = time.Second // it has booted since
	delete(m.was.CPU, "zone4")
	delete(m.is.CPU, "zone5")
	for _, at := range []int{3, 4, 5} {
		if cpu, net := m.cpuOf(m.vms[at]), m.netOf(m.vms[at]); cpu != "-" || net != "-" {
			t.Errorf("VM %d: %s, %s", at, cpu, net)
		}
	}
	delete(m.was.Links, "guest6")
	if got, _ := m.load(m.vms[6]); got.in != 3<<10 {
		t.Errorf("a VNIC that is new counts: %d", got.in)
	}
	before := m.is.at
	if m.count(reading{before.Add(least / 2), kstat.Usage{}}); m.is.at != before {
		t.Error("readings that are too near are compared")
	}
	m.count(reading{})
	if text := strings.Join(m.draw(plain), "\n"); strings.Contains(text, "CPU%") || strings.Contains(text, "NET") || !strings.Contains(text, "ADDRESS") {
		t.Errorf("a kernel that does not tell: shows\n%s", text)
	}
}

// With the columns no line is too wide, either.
func TestTheColumnsFit(t *testing.T) {
	for width := 40; width <= 160; width += 5 {
		for _, l := range counted(width).draw(plain) {
			if ansi.StringWidth(l) > width {
				t.Fatalf("%d: %q", width, l)
			}
		}
	}
}

// drawing is the most that it takes to draw forty VMs, so that top at rest stays below 1 % of
// a processor.
const drawing = 2 * time.Millisecond

func TestAScreenIsDrawnSoon(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector, which runs with -short, takes several times as long")
	}
	m, least := counted(140), time.Hour
	for range 20 { // what comes on top of the least is not the program's
		start := time.Now()
		m.draw(plain)
		least = min(least, time.Since(start))
	}
	t.Logf("forty VMs are drawn in %v", least)
	if least > drawing {
		t.Errorf("forty VMs are drawn in %v, more than %v", least, drawing)
	}
}

// With many VMs it looks more rarely, so that a look at each costs no more in the end. What
// asks no VM is looked at as often as ever.
func TestItLooksMoreRarelyAtMany(t *testing.T) {
	began := time.Unix(0, 0)
	for name, c := range map[string]struct {
		vms    int
		view   view
		opened *page
		after  time.Duration
		due    bool
	}{
		"forty":                    {40, viewVMs, nil, 2 * time.Second, true},
		"forty, a tick comes soon": {40, viewVMs, nil, 1990 * time.Millisecond, true},
		"forty, looked just now":   {40, viewVMs, nil, 900 * time.Millisecond, false},
		"a thousand":               {1000, viewVMs, nil, 17 * time.Second, false},
		"a thousand, later":        {1000, viewVMs, nil, 20 * time.Second, true},
		"a thousand, at work":      {1000, viewWork, nil, 2 * time.Second, true},
		"a thousand, one opened":   {1000, viewVMs, &page{}, 2 * time.Second, true},
	} {
		l := loop{m: &model{now: began.Add(c.after), view: c.view, opened: c.opened}, began: began}
		l.m.verdict.vms = c.vms
		if l.due() != c.due {
			t.Errorf("%s: due is %v", name, !c.due)
		}
	}
	if forty, many := verdictRest(40), verdictRest(1000); forty != 10*time.Second || many != time.Minute {
		t.Errorf("it asks how the sled is every %v with 40 VMs, every %v with 1000", forty, many)
	}
}

// A clock that ticks has nothing else drawn again.
func TestATickDrawsTheClockOnly(t *testing.T) {
	m := &model{width: 80, height: 24, now: time.Unix(0, 0), vms: []cli.Instance{{Name: "web1", State: "running"}}}
	before := strings.Join(m.draw(plain), "\n")
	m.vms[0].Name, m.now, m.still = "web2", m.now.Add(time.Second), true
	after := strings.Join(m.draw(plain), "\n")
	if after == before || !strings.Contains(after, "web1") {
		t.Errorf("from\n%s\nto\n%s", before, after)
	}
	m.still = false
	if again := strings.Join(m.draw(plain), "\n"); !strings.Contains(again, "web2") {
		t.Errorf("never again: %s", again)
	}
}
