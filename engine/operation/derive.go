package operation

import (
	"crypto/sha256"
	"fmt"
)

// DeriveMAC derives a MAC address from an intent's id, so that a plan that is
// made again is the same plan. The prefix is the one that dladm(8) uses for
// random addresses, 2:8:20.
func DeriveMAC(intent, purpose string) string {
	d := sha256.Sum256([]byte(intent + " mac " + purpose))
	return fmt.Sprintf("02:08:20:%02x:%02x:%02x", d[0], d[1], d[2])
}
