package node

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The agent gets the key in the place of the Secret, and all else of the document as it stands.
func TestADocumentGetsItsKeys(t *testing.T) {
	s := begin(t)
	s.ok(s.store.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "keys"}, Data: map[string][]byte{"key": []byte("c2VjcmV0\n")}}))
	s.ok(s.store.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "none"}}))
	for _, c := range []struct{ document, want, refused string }{
		{`{"cpus":2,"disks":[{"path":"/x"}]}`, `{"cpus":2,"disks":[{"path":"/x"}]}`, ""},
		{`{"cpus":2,"crucible":[{"id":"v","secret":"keys"}],"other":{"a":1}}`, `{"cpus":2,"crucible":[{"id":"v","targets":null,"block_size":0,"blocks_per_extent":0,"extents":0,"key":"c2VjcmV0"}],"other":{"a":1}}`, ""},
		{`{"crucible":[{"id":"v","secret":"none"}]}`, "", "secret default/none has no key"},
		{`{"crucible":[{"id":"v","secret":"nope"}]}`, "", "read the key of volume v"},
	} {
		got, err := s.node.keyed(t.Context(), "default", json.RawMessage(c.document))
		if string(got) != c.want || (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: %s, %v", c.document, got, err)
		}
	}
}
