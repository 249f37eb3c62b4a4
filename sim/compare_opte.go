package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// PortSnapshot is a port of OPTE, which is a link too.
type PortSnapshot struct {
	Name    string   `json:"name"`
	VNI     uint32   `json:"vni"`
	IP      string   `json:"ip"`
	Subnet  string   `json:"subnet"`
	Gateway string   `json:"gateway"`
	Outside []string `json:"outside,omitempty"` // its addresses there
	Rules   []string `json:"rules"`             // of all its layers
}

// opte shows the ports, and where addresses of VPCs are. The links below are set once and stay.
func (s *Snapshot) opte(tx *world.Tx) {
	for _, p := range tx.OPTE().Ports {
		port := PortSnapshot{Name: p.Name, VNI: p.VNI, IP: p.IP, Subnet: p.Subnet, Gateway: p.Gateway}
		for _, ip := range append([]string{p.SNAT, p.Ephemeral}, p.Floating...) {
			if ip != "" {
				port.Outside = append(port.Outside, ip)
			}
		}
		for table, rules := range p.Rules {
			for _, r := range rules.Rules {
				port.Rules = append(port.Rules, fmt.Sprintf("%s %d %q %s", table, r.Priority, r.Predicates, r.Action))
			}
		}
		slices.Sort(port.Rules)
		s.Ports = append(s.Ports, port)
	}
	slices.SortFunc(s.Ports, func(a, b PortSnapshot) int { return strings.Compare(a.Name, b.Name) })
	for _, m := range tx.OPTE().V2P {
		s.V2P = append(s.V2P, fmt.Sprintf("%d %s %s %s", m.VNI, m.IP, m.MAC, m.Physical))
	}
	slices.Sort(s.V2P)
}
