package network

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// ParseMAC reads an Ethernet address as _link_aton(3SOCKET) does: six groups
// of one or two hexadecimal digits with colons between them. It gives the
// padded, lower-case form that the state keeps.
func ParseMAC(text string) (string, bool) {
	groups := strings.Split(text, ":")
	ok := len(groups) == 6
	for i, g := range groups {
		n, err := strconv.ParseUint(g, 16, 8)
		ok = ok && err == nil && len(g) <= 2 && g[0] != '+'
		groups[i] = fmt.Sprintf("%02x", n)
	}
	return strings.Join(groups, ":"), ok
}

// PrintMAC is a padded address as dladm(8) prints it: without the zero that
// opens a group (dladm_aggr_macaddr2str in usr/src/lib/libdladm/common/libdlaggr.c).
func PrintMAC(padded string) string {
	return strings.ReplaceAll(strings.TrimPrefix(padded, "0"), ":0", ":")
}

// randomMAC draws an address under the prefix that VNICs get
// (usr/src/uts/common/io/mac/mac_util.c: 2:8:20).
func randomMAC(tx *world.Tx) string {
	n := tx.Draw("mac")
	return fmt.Sprintf("02:08:20:%02x:%02x:%02x", byte(n>>16), byte(n>>8), byte(n))
}

// multicastMAC says whether the group bit is set: such an address is no
// station's own.
func multicastMAC(padded string) bool {
	first, _ := strconv.ParseUint(padded[:2], 16, 8)
	return first&1 != 0
}
