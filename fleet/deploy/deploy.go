// Package deploy has what is applied to a cluster before the fleet's parts run there.
package deploy

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"
)

// Rights are the namespace, the account and the rights of controller and sleds, as YAML.
//
//go:embed rbac.yaml
var Rights []byte

// Webhook has the API server ask controllers in the cluster about evictions, as YAML.
//
//go:embed webhook.yaml
var Webhook []byte

// WebhookAt is Webhook for one controller at an address, which an authority has signed.
func WebhookAt(url string, authority []byte) ([]byte, error) {
	for _, part := range bytes.Split(Webhook, []byte("\n---\n")) {
		var c admissionv1.ValidatingWebhookConfiguration
		if err := yaml.Unmarshal(part, &c); err != nil {
			return nil, fmt.Errorf("read the webhook: %w", err)
		}
		if c.Kind != "ValidatingWebhookConfiguration" {
			continue
		}
		for i := range c.Webhooks {
			c.Webhooks[i].ClientConfig = admissionv1.WebhookClientConfig{URL: &url, CABundle: authority}
		}
		return yaml.Marshal(c)
	}
	return nil, errors.New("there is no webhook")
}
