package layout

import (
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/vnic"
)

// LimitsOf is what a guest VNIC is held to: the guest sends from its own MAC address.
func LimitsOf(record.Record, record.VNIC) vnic.Limits { return vnic.Limits{OwnMAC: true} }
