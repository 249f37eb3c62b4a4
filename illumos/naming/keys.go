package naming

import "strings"

// The keys of the ledger, by how they begin. Each beginning has one owner, and
// no other package writes below it: two that did would read each other's values
// for their own. Keys lists them.
const (
	KeyInstance   = "instance/"   // instance/ID: its record
	KeyName       = "name/"       // name/NAME: the id of the instance with the name
	KeyAddress    = "address/"    // address/IP: the id of the instance that has it
	KeyNIC        = "nic/"        // nic/MAC: the id of the instance that has it
	KeyAttached   = "attached/"   // attached/PATH, escaped: the id of the instance that writes to the disk
	KeyDeparted   = "departed/"   // departed/ID: of an instance that has left this sled
	KeyArrived    = "arrived/"    // arrived/ID: of one that has come here, as long as it is recorded
	KeyMoved      = "moved/"      // moved/VM: one that another program moves, or has moved away
	KeySent       = "sent/"       // sent/ID: the spec last sent to the instance's Propolis
	KeyVNIC       = "vnic/"       // vnic/NAME: the id of the instance whose VNIC it is
	KeyTombstone  = "tombstone/"  // tombstone/PROPOLIS-ID: how a VM ended
	KeyEpoch      = "agent/epoch" // counts the starts of agents
	KeyDisk       = "disk/"       // disk/IDENTITY: a physical disk and its pool
	KeyLocalDisk  = "localdisk/"  // localdisk/ID: a volume that VMs may have as a disk
	KeyBase       = "base/"       // base/POOL/GENERATION: a base zone
	KeyImage      = "image/"      // image/ID: a disk that others are cloned from
	KeySpare      = "spare/"      // spare/PROPOLIS-ID: a zone that is cloned ahead
	KeyVolume     = "volume/"     // volume/ID: a volume that VMs have as a disk
	KeySnapshot   = "snapshot/"   // snapshot/INSTANCE-ID/NAME: what the disks of an instance held at one moment
	KeyGeneration = "generation/" // generation/ID: the last generation that a keeper has given an instance
	KeyKeeper     = "keeper"      // who keeps the sled
	// KeyAssignment is what a control plane wants of the sled's disks and datasets.
	KeyAssignment = "assignment"
	KeyNetwork    = "network" // what was decided of the control network
	KeyHold       = "hold/"   // hold/KIND/NAME: an object that belongs to no instance yet
	KeyHeldVNIC   = KeyHold + "vnic/"
	KeyIntent     = "intent/" // intent/ID: an operation that has begun
	KeyLast       = "last/"   // last/SUBJECT: the operation on it that ended last
)

// SubjectDownload begins the subject of what downloads for an image, which has no record.
const SubjectDownload = "download/"

// Key is a beginning of keys, and who writes below it.
type Key struct{ Prefix, Owner string }

// Keys are all beginnings of keys that the program writes, with the package that
// owns each. The ledger's own fact "members" is none of them.
func Keys() []Key {
	return []Key{
		{KeyInstance, "instance"}, {KeyName, "instance"}, {KeyAddress, "instance"}, {KeyNIC, "instance"}, {KeyAttached, "instance"},
		{KeySent, "instance"}, {KeyDeparted, "instance"}, {KeyArrived, "instance"}, {KeyMoved, "nicsync"}, {KeyVNIC, "instance"}, {KeyTombstone, "instance"}, {KeyGeneration, "instance"}, {KeyKeeper, "instance"}, {KeySpare, "instance"}, {KeyEpoch, "agent"},
		{KeyDisk, "storage"}, {KeyAssignment, "storage"}, {KeyLocalDisk, "localdisk"}, {KeyBase, "base"}, {KeyImage, "image"}, {KeyVolume, "volume"}, {KeySnapshot, "snapshot"}, {KeyNetwork, "network"}, {KeyHold, "network"}, {KeyIntent, "operation"}, {KeyLast, "operation"},
	}
}

// OwnerOfKey is the package that a key belongs to; false: to none.
func OwnerOfKey(key string) (owner string, known bool) {
	for _, k := range Keys() {
		whole := !strings.HasSuffix(k.Prefix, "/")
		if whole && key == k.Prefix || !whole && strings.HasPrefix(key, k.Prefix) && len(key) > len(k.Prefix) {
			return k.Owner, true
		}
	}
	return "", false
}
