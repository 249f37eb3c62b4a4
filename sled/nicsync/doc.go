// Package nicsync makes the NIC records that Triton's networking API has of this
// sled match it, as RFD 58 describes it: the sled is the source of truth.
// Records without cn_uuid of NICs that are here get it (backfill), records of VMs
// that are gone go (reap), and records that say another state than their VM is in
// get that (state). Records of a VM that was migrated follow it: the sled that it
// came to claims them, the one that it left leaves them alone. None is ever made.
//
// What is here and what NAPI says are looked at; the verdicts are a pure function
// of both. What could not be seen is unknown, and then nothing is written. A
// record goes only if everything says that nobody has it: it is this sled's, its
// VM is in no listing, two times, its MAC is on no link and in no configuration,
// it is not being provisioned, and it is still the version that was judged.
package nicsync
