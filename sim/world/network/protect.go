package network

import (
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// Sends says whether a packet leaves a link: mac_protect_check of
// usr/src/uts/common/io/mac/mac_protect.c drops it if the link's protection says so.
// The packet comes from a MAC address, padded, and from an IP address.
func Sends(l *world.Link, mac, ip string) bool {
	held := strings.Split(l.Properties["protection"], ",")
	allowed := strings.Split(l.Properties["allowed-ips"], ",")
	return (mac == l.MAC || !slices.Contains(held, "mac-nospoof")) &&
		(!slices.Contains(held, "ip-nospoof") || slices.Contains(allowed, ip))
}
