package top

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/illumos/kstat"
	"github.com/sledctl/sledctl/sled/status"
)

// reading is what the kernel's counters were at some time; zero: they were not read.
type reading struct {
	at time.Time
	kstat.Usage
}

// load is what a VM uses of its sled.
type load struct {
	cpu     float64 // in percent of one processor
	in, out uint64  // bytes in a second, of all its VNICs: a migration's are among them
}

// least is how far apart two readings are that are compared: with less time between them
// a counter that moves in steps would show bursts.
const least = time.Second

// count takes a reading; a sled that tells nothing has no such columns.
func (m *model) count(r reading) {
	switch {
	case r.at.IsZero() || m.is.at.IsZero():
		m.was, m.is = reading{}, r
	case r.at.Sub(m.is.at) >= least:
		m.was, m.is = m.is, r
	}
}

// load is what a VM has used between the last two readings. There is none where its zone
// is in one of them only, or has booted since: its counters began at 0 then.
func (m *model) load(vm cli.Instance) (l load, known bool) {
	seconds := m.is.at.Sub(m.was.at).Seconds()
	before, was := m.was.CPU[vm.Zone]
	now, is := m.is.CPU[vm.Zone]
	if !was || !is || now < before {
		return load{}, false
	}
	l.cpu = (now - before).Seconds() / seconds * 100
	for _, v := range vm.VNICs {
		before, was := m.was.Links[v.Name]
		if now := m.is.Links[v.Name]; was && now.In >= before.In && now.Out >= before.Out {
			l.in += uint64(float64(now.In-before.In) / seconds)
			l.out += uint64(float64(now.Out-before.Out) / seconds)
		}
	}
	return l, true
}

func (m *model) cpuOf(vm cli.Instance) string {
	l, known := m.load(vm)
	if !known {
		return "-"
	}
	return strconv.Itoa(int(l.cpu + 0.5))
}

func (m *model) netOf(vm cli.Instance) string {
	l, known := m.load(vm)
	if !known {
		return "-"
	}
	return terminal.FormatSize(l.in) + " / " + terminal.FormatSize(l.out)
}

// The keys of sorts that no list knows: by what VMs use, the most first.
const (
	byCPU = "-cpu%"
	byNet = "-net"
)

// sorted is VMs in the order of what they use, if that was picked; else as they are.
func (m *model) sorted(vms []cli.Instance) []cli.Instance {
	if key := sorts[m.sort]; key != byCPU && key != byNet {
		return vms
	}
	weight := func(vm cli.Instance) float64 {
		l, known := m.load(vm)
		switch {
		case !known:
			return -1
		case sorts[m.sort] == byCPU:
			return l.cpu
		}
		return float64(l.in + l.out)
	}
	all := slices.Clone(vms)
	slices.SortStableFunc(all, func(a, b cli.Instance) int { return cmp.Compare(weight(b), weight(a)) })
	return all
}

// counters reads those of the kernel. If it cannot, there are none.
func (l *loop) counters(ctx context.Context) reading {
	_, h, err := l.Env.Reach()
	if err != nil {
		return reading{}
	}
	ctx, cancel := context.WithTimeout(ctx, status.Patience)
	defer cancel()
	usage, err := kstat.Query(ctx, h)
	if err != nil {
		return reading{}
	}
	return reading{l.Env.Now(), usage}
}
