// Package firstboot makes what a guest reads when it first boots: the files of cloud-init's
// data source NoCloud, and the volume with them.
//
// All of it follows from the record of the instance, with its secrets in their places.
package firstboot

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/propolis/cidata"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// Files are what the guest reads. Errors: *record.InputError.
func Files(r record.Record) (cidata.Files, error) {
	g := guestOf(r)
	user, err := fill("cloud-init", r.Spec.CloudInit.UserData, g)
	if err != nil {
		return cidata.Files{}, err
	}
	network, err := fill("network-config", r.Spec.CloudInit.NetworkConfig, g)
	if err != nil {
		return cidata.Files{}, err
	}
	meta, err := metaData(g)
	return cidata.Files{MetaData: meta, UserData: []byte(user), NetworkConfig: []byte(network)}, err
}

// metaData says who the guest is. JSON is YAML, too. The id of the instance stays as long as it
// is recorded, so that cloud-init takes each boot but the first for a later one of the same.
func metaData(g guest) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(meta{g.ID, g.Hostname, g.SSHKeys})
	return b.Bytes(), err
}

type meta struct {
	ID       string   `json:"instance-id"`
	Hostname string   `json:"local-hostname"`
	Keys     []string `json:"public-keys,omitempty"`
}

// ReadBack is the data that a volume, in base64, was made of, as far as it shows: templates are
// filled in. Errors: those of what is no such volume.
func ReadBack(volume string) (*record.CloudInit, error) {
	image, err := base64.StdEncoding.DecodeString(volume)
	if err != nil {
		return nil, err
	}
	files, err := cidata.Read(image)
	if err != nil {
		return nil, err
	}
	var m meta
	if err := json.Unmarshal(files.MetaData, &m); err != nil {
		return nil, err
	}
	c := record.CloudInit{Hostname: m.Hostname, SSHKeys: m.Keys, UserData: string(files.UserData), NetworkConfig: string(files.NetworkConfig), Volume: volume}
	if c.UserData == cidata.NoUserData {
		c.UserData = ""
	}
	parts := record.CloudInitParts{Hostname: &c.Hostname, SSHKeys: c.SSHKeys, UserData: &c.UserData, NetworkConfig: &c.NetworkConfig}
	return &c, parts.Validate()
}

// Volume is what the guest reads, in base64. Its serial number derives from the instance's id,
// so that the same record makes the same volume. Errors: *record.InputError,
// *cidata.TooLargeError.
func Volume(r record.Record) (string, error) {
	files, err := Files(r)
	if err != nil {
		return "", err
	}
	var serial uint32
	if id, err := uuid.Parse(r.ID); err == nil {
		serial = binary.BigEndian.Uint32(id[:])
	}
	volume, err := cidata.Build(files, serial)
	return base64.StdEncoding.EncodeToString(volume), err
}
