package sled

// Keys of the ledger that more than one noun reads: a name on the host that is
// spoken for, whether the object is there yet or not.
const (
	KeyVNIC     = "vnic/"      // vnic/NAME: the id of the instance whose VNIC it is
	KeyHeldVNIC = "hold/vnic/" // hold/vnic/NAME: a VNIC that belongs to no instance yet
)
