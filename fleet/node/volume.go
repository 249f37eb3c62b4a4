package node

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sledctl/sledctl/fleet/api"
)

// Volume is a volume in a Crucible in the instance document of a pod. In that which the agent gets,
// the key stands in the place of the Secret.
type Volume struct {
	ID              string   `json:"id"`
	Targets         []string `json:"targets"`
	BlockSize       int64    `json:"block_size"`
	BlocksPerExtent int64    `json:"blocks_per_extent"`
	Extents         int32    `json:"extents"`
	ReadOnly        bool     `json:"readonly,omitempty"`
	Secret          string   `json:"secret,omitempty"`
	Key             string   `json:"key,omitempty"`
}

// keyed is the document of a pod with the keys of its volumes: a sled may read the Secrets of pods
// that are bound to it, and no others.
func (n *Node) keyed(ctx context.Context, namespace string, document json.RawMessage) (json.RawMessage, error) {
	var all map[string]json.RawMessage
	var has struct {
		Crucible []Volume `json:"crucible"`
	}
	if json.Unmarshal(document, &has) != nil || len(has.Crucible) == 0 || json.Unmarshal(document, &all) != nil {
		return document, nil // the agent says what is wrong with it
	}
	for i := range has.Crucible {
		v := &has.Crucible[i]
		if v.Secret == "" {
			continue
		}
		var secret corev1.Secret
		if err := n.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: v.Secret}, &secret); err != nil {
			return nil, fmt.Errorf("read the key of volume %s: %w", v.ID, err)
		}
		v.Key, v.Secret = strings.TrimSpace(string(secret.Data[api.SecretKey])), ""
		if v.Key == "" {
			return nil, fmt.Errorf("secret %s/%s has no %s: want 32 bytes in base64, the key of volume %s", namespace, secret.Name, api.SecretKey, v.ID)
		}
	}
	var err error
	if all["crucible"], err = json.Marshal(has.Crucible); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}
