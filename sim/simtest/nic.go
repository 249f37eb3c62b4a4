package simtest

import (
	"fmt"

	"github.com/sledctl/sledctl/sim/world"
)

// AddNIC puts a record into the simulated NAPI as it is, without a request: it
// gets a version, and takes its address.
func AddNIC(tx *world.Tx, mac string, r world.NAPINIC) {
	etag := func() string { return fmt.Sprintf("%08X", uint32(tx.Draw("napi etag"))) }
	n := tx.State.NAPI
	tx.TouchAround()
	if r.Etag == "" {
		r.Etag = etag()
	}
	n.NICs[mac] = &r
	if r.IP != "" && r.Network != "" {
		n.IPs[r.Network+"/"+r.IP] = &world.NAPIIP{Etag: etag(), BelongsToType: r.BelongsToType, BelongsToUUID: r.BelongsToUUID, OwnerUUID: r.OwnerUUID}
	}
}
