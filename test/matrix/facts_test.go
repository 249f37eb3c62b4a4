package matrix

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/test/sledtest"
)

// settled is what there is, with the names that a run draws replaced: the world,
// the instances, and what is recorded.
func (s *scene) settled() string {
	s.T.Helper()
	s.settle()
	facts := s.Ledger()
	var list struct{ Items []sledtest.Instance }
	if len(facts) > 0 {
		if err := json.Unmarshal([]byte(s.Run("instance list -o json")), &list); err != nil {
			s.T.Fatal(err)
		}
	}
	names := anonymous(s.T, facts, list.Items)
	drawn := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|propolis_base_[0-9a-f]{8}`)
	if s.name != "format" { // there a pool is named as it is drawn
		drawn = regexp.MustCompile(`$^`)
	}
	lines := sortedWorld(s.T, drawn.ReplaceAllString(names.Replace(s.world()), "UUID"))
	lines = unmounted(slices.DeleteFunc(inherited(lines), unkept))
	for _, i := range list.Items {
		lines = append(lines, fmt.Sprint(i.Name, " ", i.State, " ", i.Wanted, " ", i.CPUs, " ", i.Protected, " ", i.Address))
	}
	var keys []string
	for key := range facts {
		keys = append(keys, names.Replace(key+"\n"))
	}
	slices.Sort(keys)
	return drawn.ReplaceAllString(strings.Join(append(lines, keys...), "\n"), "UUID")
}

// unkept are the snapshots that keep how a zone was before its first boot: a run that
// resumes with an installed zone does not know whether it was booted, and takes none.
func unkept(line string) bool {
	return strings.Contains(line, `@sledctl-clean"`) || strings.Contains(line, `@sledctl-ready"`)
}

// unmounted leaves out whether the file systems of a spare's zone are mounted: they are in the
// boot in which it was cloned, and one that outlives that is mounted when it is taken.
func unmounted(lines []string) []string {
	mounted := regexp.MustCompile(`,"mounted":"[^"]*/propolis_instance_SPARE/root[^"]*"`)
	for i, line := range lines {
		lines[i] = mounted.ReplaceAllString(line, "")
	}
	return lines
}

// inherited leaves out the MTU of the global zone's VNIC where its link has the
// same: a run that goes on does not set it once more, and a sled does not tell
// the two apart.
func inherited(lines []string) []string {
	const same = `,"properties":{"mtu":"1500"}`
	over := regexp.MustCompile(`^links .*"over":"([^"]+)","mac":"GZMAC"`)
	for i, line := range lines {
		m := over.FindStringSubmatch(line)
		if m == nil || slices.ContainsFunc(lines, func(l string) bool {
			return strings.HasPrefix(l, `links {"name":"`+m[1]+`"`) && strings.Contains(l, `"mtu":"9000"`)
		}) {
			continue
		}
		lines[i] = strings.Replace(line, same, "", 1)
	}
	return lines
}

// sortedWorld has one line for each thing: what is drawn has given them their order.
func sortedWorld(t testing.TB, text string) (lines []string) {
	t.Helper()
	var world map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &world); err != nil {
		t.Fatal(err)
	}
	for _, kind := range slices.Sorted(maps.Keys(world)) {
		var things []json.RawMessage
		if json.Unmarshal(world[kind], &things) != nil {
			continue
		}
		var all []string
		for _, thing := range things {
			var line bytes.Buffer
			if err := json.Compact(&line, thing); err != nil {
				t.Fatal(err)
			}
			all = append(all, kind+" "+line.String())
		}
		slices.Sort(all)
		lines = append(lines, all...)
	}
	return lines
}

// anonymous replaces what differs from run to run: ids, and the names and
// addresses of VNICs.
func anonymous(t testing.TB, facts map[string]string, instances []sledtest.Instance) *strings.Replacer {
	t.Helper()
	var network struct {
		MAC string `json:"gz_mac"`
	}
	if text, ok := facts["network"]; ok {
		if err := json.Unmarshal([]byte(text), &network); err != nil {
			t.Fatal(err)
		}
	}
	var pairs []string
	if network.MAC != "" {
		pairs = append(pairs, network.MAC, "GZMAC", linkLocal(t, network.MAC), "GZLL")
	}
	for i, item := range instances {
		if item.PropolisID != "" {
			pairs = append(pairs, item.PropolisID, fmt.Sprint("PROPOLIS", i))
		}
		if _, id, found := strings.Cut(item.Zone, "propolis_instance_"); found && id != item.PropolisID { // it was booted again
			pairs = append(pairs, id, fmt.Sprint("PROPOLIS", i))
		}
		for n, v := range item.VNICs {
			name := fmt.Sprint("VNIC", i, n)
			pairs = append(pairs, v.MAC, fmt.Sprint("MAC", i, n), linkLocal(t, v.MAC), fmt.Sprint("LL", i, n), `"`+v.Name+`"`, `"`+name+`"`, v.Name+"/", name+"/", "/"+v.Name+"\n", "/"+name+"\n")
		}
	}
	for key := range facts {
		if id, ok := strings.CutPrefix(key, "spare/"); ok {
			pairs = append(pairs, id, "SPARE")
		}
		if id, ok := strings.CutPrefix(key, "image/"); ok {
			pairs = append(pairs, id, "IMAGE")
		}
		if mac, ok := strings.CutPrefix(key, "nic/"); ok { // of an instance that is stopped
			pairs = append(pairs, mac, "MAC")
		}
	}
	return strings.NewReplacer(pairs...)
}

// linkLocal is the address that an interface gets from its MAC (RFC 4291,
// appendix A).
func linkLocal(t testing.TB, mac string) string {
	t.Helper()
	m, err := net.ParseMAC(mac)
	if err != nil {
		t.Fatal(err)
	}
	return netip.AddrFrom16([16]byte{0: 0xfe, 0x80, 8: m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]}).String()
}
