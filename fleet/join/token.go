package join

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"
)

// Token is a new token by which sleds join, until a time, as YAML for kubectl apply.
//
// With it, a machine can join under any name, also under that of a sled that has joined: it is for the hour in which sleds are set up.
func Token(until time.Time) []byte {
	text := strings.ToLower(rand.Text()) // 26 characters of a to z and 2 to 7
	id, secret := text[:6], text[6:22]
	return fmt.Appendf(nil, `# A token by which sleds join the fleet, until %[3]s. On each sled:
#
#     echo %[1]s.%[2]s > /root/token && chmod 0600 /root/token
#     sledctl-fleet join --server https://HOST:6443 --ca-file ca.crt --token-file /root/token --name SLED
#
# ca.crt is the cluster's authority: kubectl get configmap kube-root-ca.crt -o jsonpath='{.data.ca\.crt}'
apiVersion: v1
kind: Secret
metadata:
  name: bootstrap-token-%[1]s
  namespace: kube-system
type: bootstrap.kubernetes.io/token
stringData:
  description: sleds join the fleet by it
  token-id: %[1]s
  token-secret: %[2]s
  expiration: %[3]s
  usage-bootstrap-authentication: "true"
  auth-extra-groups: system:bootstrappers:sledctl
`, id, secret, until.UTC().Format(time.RFC3339))
}
