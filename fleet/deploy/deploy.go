// Package deploy has what is applied to a cluster before the fleet's parts run there.
package deploy

import _ "embed"

// Rights are the namespace, the account and the rights of controller and sleds, as YAML.
//
//go:embed rbac.yaml
var Rights []byte
