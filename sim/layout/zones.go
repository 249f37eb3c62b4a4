package layout

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
	"github.com/sledctl/sledctl/sim/world/scf"
	"github.com/sledctl/sledctl/sim/world/smf"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// zones are the zones of zoneadm list, with the configurations of zonecfg export.
func (l *layout) zones() error {
	for n, f := range parsable(l.output("zoneadm list -cp", "zoneadm list -cip"), 7) {
		if f[1] == world.GlobalZone {
			continue
		}
		export := l.output("zonecfg -z " + f[1] + " export")
		if export == "" {
			l.note("zone %s: its configuration", f[1])
		}
		c := configuration(export)
		c.Zonepath, c.Brand = f[3], f[5]
		if len(f) > 7 && f[7] != "" {
			c.SetGlobal("debugid", f[7])
		}
		if f[6] == "excl" {
			c.IPType = "exclusive"
		}
		if !slices.Contains(states(), f[2]) {
			l.note("zone %s: what its state %s is", f[1], f[2])
		}
		z := &world.Zone{Name: f[1], State: f[2], UUID: f[4], Config: c}
		l.tx.State.Zones = append(l.tx.State.Zones, z)
		if f[0] != "-" {
			if err := l.kernel(z, f[0], n); err != nil {
				return err
			}
		}
		if err := zones.SaveZone(l.tx, z); err != nil {
			return fmt.Errorf("lay out zone %s: %w", z.Name, err)
		}
	}
	return nil
}

// states are those that a zone can have.
func states() []string {
	return []string{world.ZoneConfigured, world.ZoneIncomplete, world.ZoneInstalled, world.ZoneReady, world.ZoneMounted, world.ZoneRunning,
		world.ZoneShuttingDown, world.ZoneDown}
}

// kernel lays out a zone that the kernel knows. They are listed in the order of their boots.
func (l *layout) kernel(z *world.Zone, id string, n int) error {
	k := &world.Kernel{ID: int(number(id)), State: z.State, Config: z.Config.Clone(), Booted: l.tx.State.Booted.Add(time.Duration(n))}
	z.State, z.Kernel = world.ZoneInstalled, k
	if k.State != world.ZoneRunning {
		l.note("zone %s: why it is %s", z.Name, k.State)
	}
	for l.tx.State.Counters["zone id"] < uint64(k.ID) {
		l.tx.Count("zone id")
	}
	for _, r := range z.Config.All("net") {
		for _, link := range l.tx.State.Links {
			if link.Name == r.Get("physical") && link.Class == "vnic" {
				link.Zone = z.Name
			}
		}
	}
	if z.Config.IPType == "exclusive" {
		network.StartStack(l.tx, z.Name)
	}
	if err := l.directory(z.Root() + "/etc/svc/volatile"); err != nil {
		return err
	}
	l.tx.TouchServices(z.Name)
	l.tx.State.Services[z.Name] = &world.Repository{Door: l.tx.State.Booted, Instances: map[string]*world.Service{}}
	return l.services(z.Name, l.output("svcs -z "+z.Name+" -a -H -o state,fmri"))
}

// configuration reads what zonecfg export prints.
func configuration(export string) world.Config {
	c := world.Config{IPType: "shared"}
	var r *world.Resource
	for line := range strings.Lines(export) {
		line = strings.TrimSpace(line)
		verb, rest, _ := strings.Cut(line, " ")
		key, value, assigned := strings.Cut(rest, "=")
		value = strings.Trim(value, `"`)
		switch {
		case verb == "end" && r != nil:
			c.Resources = append(c.Resources, *r)
			r = nil
		case verb == "add" && r == nil:
			r = &world.Resource{Type: rest}
		case verb == "add": // one of several values
			key, value, _ = strings.Cut(rest, " ")
			r.Set(key, append(slices.Clone(r.Values(key)), strings.Trim(value, `"`))...)
		case verb != "set" || !assigned:
		case r != nil:
			if key == "physical" && r.Type == "capped-memory" {
				value = strconv.FormatUint(units(value), 10)
			}
			r.Set(key, value)
		case key == "brand":
			c.Brand = value
		case key == "zonepath":
			c.Zonepath = value
		case key == "autoboot":
			c.Autoboot = value == "true"
		case key == "ip-type":
			c.IPType = value
		default:
			c.SetGlobal(key, value)
		}
	}
	return c
}

// units is a size such as 512M.
func units(s string) uint64 {
	digits := strings.TrimRight(s, "KMGT")
	shift := 10 * (1 + strings.Index("KMGT", s[len(digits):]))
	if digits == s {
		shift = 0
	}
	return number(digits) << shift
}

// routes are those of netstat -rn that have a gateway: the others are the interfaces'.
func (l *layout) routes() {
	if l.output("netstat -rn") == "" {
		l.gotRoute()
		return
	}
	stack := l.tx.State.Stacks[world.GlobalZone]
	for line := range strings.Lines(l.output("netstat -rn")) {
		f := strings.Fields(line)
		if len(f) < 5 || !strings.Contains(f[2], "G") {
			continue
		}
		gateway, err := netip.ParseAddr(f[1])
		if err != nil {
			continue
		}
		r := &world.Route{Destination: f[0], Gateway: f[1], Persistent: true}
		if len(f) > 5 {
			r.Interface, r.Bound = f[5], true
		}
		for _, a := range stack.Addresses {
			if p, err := netip.ParsePrefix(a.Address); err == nil && r.Interface == "" && p.Contains(gateway) {
				r.Interface, _, _ = strings.Cut(a.Object, "/")
			}
		}
		if a, err := netip.ParseAddr(f[0]); err == nil {
			length := a.BitLen()
			if !strings.Contains(f[2], "H") {
				length = classful(a)
			}
			r.Destination = netip.PrefixFrom(a, length).String()
		}
		stack.Routes = append(stack.Routes, r)
	}
}

// classful is the length of an IPv4 network: netstat does not tell it, and the zeros at
// its end are a guess.
func classful(a netip.Addr) int {
	length := a.BitLen()
	b := a.AsSlice()
	for i := len(b) - 1; i > 0 && b[i] == 0; i-- {
		length -= 8
	}
	return length
}

// services are the states of a zone's services. One that a simulated sled does not have is
// added: it has a state, and no methods.
func (l *layout) services(zone, out string) error {
	repository, err := smf.LoadRepository(l.tx, zone)
	if err != nil {
		return err
	}
	known := smf.Repository(l.tx, zone)
	if known == nil || out == "" {
		return nil
	}
	listed := map[string]bool{}
	legacy := 0
	for n, line := range slices.Collect(strings.Lines(out)) {
		f := strings.Fields(line)
		if len(f) != 2 {
			continue
		}
		fmri, ok := scf.ParseFMRI(f[1])
		if !ok || fmri.Instance == "" {
			legacy++
			continue
		}
		listed[f[1]] = true
		state, moving := strings.CutSuffix(f[0], "*")
		add(repository, fmri, state != smf.Disabled)
		s := known.Instances[f[1]]
		if s == nil {
			s = &world.Service{FMRI: f[1], Enabled: state != smf.Disabled}
		}
		if moving {
			state += ">" + smf.Online
		}
		s.Timeline = []world.Timepoint{{State: state, Generation: 1, From: l.tx.State.Booted.Add(time.Duration(n))}}
		known.Instances[f[1]] = s
		if state == "-" {
			delete(known.Instances, f[1])
		}
	}
	for _, s := range repository.Services {
		s.Instances = slices.DeleteFunc(s.Instances, func(i *scf.Instance) bool {
			gone := !listed[s.InstanceFMRI(i)]
			if gone {
				delete(known.Instances, s.InstanceFMRI(i))
			}
			return gone
		})
	}
	if legacy > 0 {
		l.note("zone %s: %d legacy services", zone, legacy)
	}
	return smf.SaveRepository(l.tx, zone, repository)
}

// add adds an instance that the repository does not have.
func add(r *scf.Repository, f scf.FMRI, enabled bool) {
	s := r.Service(f.Service)
	if s == nil {
		s = &scf.Service{Name: f.Service}
		r.Services = append(r.Services, s)
	}
	if s.Instance(f.Instance) != nil {
		return
	}
	s.Instances = append(s.Instances, &scf.Instance{Name: f.Instance, Groups: scf.Groups{{
		Name: "general", Type: "framework",
		Properties: []*scf.Property{{Name: "enabled", Type: "boolean", Values: []string{strconv.FormatBool(enabled)}}},
	}}})
}
