package api

import (
	"encoding/json"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/sled/localdisk"
)

// LocalStorageEnsure is the body of POST /local-storage: a volume that VMs can have as a disk.
type LocalStorageEnsure struct {
	Pool      uuid.UUID `json:"zpool_id"`
	ID        uuid.UUID `json:"dataset_id"`
	Quota     uint64    `json:"dataset_size"`
	Size      uint64    `json:"volume_size"`
	Encrypted bool      `json:"encrypted_at_rest"`
}

// LocalStorageDelete is the body of DELETE /local-storage.
type LocalStorageDelete struct {
	Pool      uuid.UUID `json:"zpool_id"`
	ID        uuid.UUID `json:"dataset_id"`
	Encrypted bool      `json:"encrypted_at_rest"`
}

// UnmarshalJSON refuses a body that lacks a field.
func (l *LocalStorageEnsure) UnmarshalJSON(data []byte) error {
	type plain LocalStorageEnsure
	return whole(data, (*plain)(l), "zpool_id", "dataset_id", "dataset_size", "volume_size", "encrypted_at_rest")
}

// UnmarshalJSON refuses a body that lacks a field.
func (l *LocalStorageDelete) UnmarshalJSON(data []byte) error {
	type plain LocalStorageDelete
	return whole(data, (*plain)(l), "zpool_id", "dataset_id", "encrypted_at_rest")
}

// whole reads an object that has all of its fields.
func whole(data []byte, to any, keys ...string) error {
	var body fields
	if err := json.Unmarshal(data, &body); err != nil {
		return err
	}
	if err := has(body, keys...); err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}

// Place is the volume's.
func (l LocalStorageDelete) Place() localdisk.Place {
	return localdisk.Place{ID: l.ID, Pool: "oxp_" + l.Pool.String(), Encrypted: l.Encrypted}
}

// Wanted is the volume.
func (l LocalStorageEnsure) Wanted() localdisk.Wanted {
	return localdisk.Wanted{Place: LocalStorageDelete{Pool: l.Pool, ID: l.ID, Encrypted: l.Encrypted}.Place(), Size: l.Size, Quota: l.Quota}
}
