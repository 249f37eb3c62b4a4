package propolis

import (
	"testing"

	"github.com/sledctl/sledctl/propolis/spec"
)

// FuzzReplies: whatever a server says is refused or makes sense.
func FuzzReplies(f *testing.F) {
	for _, text := range []string{
		`{"instance":{"properties":{"id":"x","name":"","description":"","metadata":{}},"state":"Running"}}`,
		`{"properties":{"id":"x"},"state":"Running","spec":{"type":"WaitingForMigrationSource"}}`,
		`{"properties":{"id":"x"},"state":"Running","spec":{"type":"Present","value":{"board":{},"components":{"com1":{"type":"serial_port","component":{"num":"com1"}}},"smbios":null}}}`,
		`{"gen":3,"state":"Running","migration":{"migration_in":{"id":"x","state":"Sync"},"migration_out":null}}`,
		`null`, `[]`, ``,
	} {
		f.Add([]byte(text), uint64(1))
	}
	f.Fuzz(func(t *testing.T, data []byte, generation uint64) {
		if i, err := decodeInstance(data); err == nil && (i.State == "" || i.Properties.ID == "") {
			t.Errorf("%s: %+v", data, i)
		}
		if s, err := decodeStatus(data, generation); err == nil && (s.State == "" || s.Generation < generation) {
			t.Errorf("%s: %+v", data, s)
		}
		if d, err := decodeDescription(data); err == nil {
			if d.State == "" || d.Properties.ID == "" {
				t.Errorf("%s: %+v", data, d)
			}
			if d.Spec != nil && len(spec.Compare(*d.Spec, *d.Spec)) > 0 {
				t.Errorf("%s differs from itself", data)
			}
		}
	})
}
