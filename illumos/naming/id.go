package naming

import (
	"fmt"

	"github.com/google/uuid"
)

// NamespaceID is the namespace of the names on one sled, made from whatever
// tells that sled from others: the same text gives the same namespace.
func NamespaceID(sled string) uuid.UUID {
	ours := uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://github.com/sledctl/sledctl"))
	return uuid.NewSHA1(ours, []byte(sled))
}

// InstanceID is the id of the instance that an operator calls name: the name
// itself if it is a UUID (in any case), else a UUID of version 5 (RFC 9562,
// section 5.5), so that the same name is the same instance.
func InstanceID(namespace uuid.UUID, name string) uuid.UUID {
	if IsUUID(name) {
		return uuid.MustParse(name)
	}
	return uuid.NewSHA1(namespace, []byte(name))
}

// IsUUID says whether a name is a UUID in its usual form of 36 characters, and
// so an id and no name.
func IsUUID(name string) bool { return len(name) == uuidLength && uuid.Validate(name) == nil }

// VolumeID is an id of the volume with a name on a sled: of the first that has it, n is 0; of one
// that has it since the first was renamed, 1, and so on.
func VolumeID(namespace uuid.UUID, name string, n int) uuid.UUID {
	return uuid.NewSHA1(namespace, fmt.Appendf(nil, "volume %s %d", name, n))
}
