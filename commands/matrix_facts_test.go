package commands_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/host"
)

// ledger is what the ledger holds, as its lines say it; nil if there is none.
func (s *sled) ledger() map[string]string {
	s.t.Helper()
	for _, name := range s.copies() {
		data, err := host.ReadFile(s.Host().Files(), name)
		if err == nil {
			return factsOf(s.t, data)
		}
	}
	return nil
}

// copies are the names that copies of the ledger have, or would have.
func (s *sled) copies() (names []string) {
	if s.laid != nil && s.laid.Ledger() != "" {
		return []string{s.laid.Ledger() + "/ledger.jsonl"}
	}
	pools, _ := s.Host().Files().ReadDir("/pool/int")
	for _, p := range pools {
		names = append(names, path.Join("/pool/int", p.Name, "config/sledctl/ledger.jsonl"))
	}
	return names
}

// factsOf reads the lines of a ledger; one that is torn counts for nothing.
func factsOf(t testing.TB, data []byte) map[string]string {
	t.Helper()
	facts := map[string]string{}
	for line := range strings.Lines(string(data)) {
		var l struct {
			Facts []struct {
				Key   string
				Value json.RawMessage
			}
		}
		if !strings.HasSuffix(line, "\n") || json.Unmarshal([]byte(line), &l) != nil {
			continue
		}
		for _, f := range l.Facts {
			if facts[f.Key] = string(f.Value); facts[f.Key] == "null" || strings.HasPrefix(f.Key, "agent/") || strings.HasPrefix(f.Key, "tombstone/") {
				delete(facts, f.Key) // what an agent keeps for a day is nobody else's business
			}
		}
	}
	return facts
}

// settled is what there is, with the names that a run draws replaced: the world,
// the instances, and what is recorded.
func (s *scene) settled() string {
	s.t.Helper()
	s.settle()
	facts := s.ledger()
	var list struct{ Items []shown }
	if len(facts) > 0 {
		if err := json.Unmarshal([]byte(s.run("instance list -o json")), &list); err != nil {
			s.t.Fatal(err)
		}
	}
	names := anonymous(s.t, facts, list.Items)
	drawn := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|propolis_base_[0-9a-f]{8}`)
	if s.name != "format" { // there a pool is named as it is drawn
		drawn = regexp.MustCompile(`$^`)
	}
	lines := sortedWorld(s.t, drawn.ReplaceAllString(names.Replace(s.world()), "UUID"))
	lines = inherited(lines)
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

// shown is what the tests read of an instance.
type shown struct {
	Name, State, Wanted, Address string
	CPUs                         int
	Protected                    bool
	PropolisID                   string `json:"propolis_id"`
	VNICs                        []struct{ Name, MAC string }
}

// anonymous replaces what differs from run to run: ids, and the names and
// addresses of VNICs.
func anonymous(t testing.TB, facts map[string]string, instances []shown) *strings.Replacer {
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
		for n, v := range item.VNICs {
			name := fmt.Sprint("VNIC", i, n)
			pairs = append(pairs, v.MAC, fmt.Sprint("MAC", i, n), linkLocal(t, v.MAC), fmt.Sprint("LL", i, n), `"`+v.Name+`"`, `"`+name+`"`, v.Name+"/", name+"/", "/"+v.Name+"\n", "/"+name+"\n")
		}
	}
	for key := range facts {
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
