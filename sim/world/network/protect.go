package network

import (
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// Sends says whether a packet leaves a link: mac_protect_check of
// usr/src/uts/common/io/mac/mac_protect.c drops it if the link's protection says so.
// The packet comes from a MAC address, padded.
func Sends(l *world.Link, mac string) bool {
	return mac == l.MAC || !slices.Contains(strings.Split(l.Properties["protection"], ","), "mac-nospoof")
}
