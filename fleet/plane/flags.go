package plane

import (
	"fmt"
	"strconv"
)

// flags are those of a server.
func (p *Plane) flags(s Server) []string {
	etcd, peer := fmt.Sprintf("https://127.0.0.1:%d", p.ports.etcd), fmt.Sprintf("http://127.0.0.1:%d", p.ports.peer)
	switch s {
	case Etcd:
		return []string{
			"--data-dir", p.file("etcd"), "--unsafe-no-fsync", "--log-level", "warn",
			"--listen-client-urls", etcd, "--advertise-client-urls", etcd,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default=" + peer,
			"--client-cert-auth", "--trusted-ca-file", p.file("ca.crt"), "--cert-file", p.file("server.crt"), "--key-file", p.file("server.key"),
		}
	case APIServer:
		return []string{
			"--bind-address", "127.0.0.1", "--secure-port", strconv.Itoa(p.ports.api), "--cert-dir", p.file("apiserver"),
			"--etcd-servers", etcd, "--etcd-cafile", p.file("ca.crt"), "--etcd-certfile", p.file("server.crt"), "--etcd-keyfile", p.file("server.key"),
			"--tls-cert-file", p.file("server.crt"), "--tls-private-key-file", p.file("server.key"), "--client-ca-file", p.file("ca.crt"),
			"--authorization-mode", "Node,RBAC", "--enable-admission-plugins", "NodeRestriction",
			"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-signing-key-file", p.file("accounts.key"),
			"--service-account-key-file", p.file("accounts.crt"), "--service-cluster-ip-range", "10.96.0.0/16",
			"--endpoint-reconciler-type", "none", // a loopback address is no endpoint
			"--anonymous-auth=false", "--profiling=false", "--enable-bootstrap-token-auth",
		}
	case Scheduler:
		return []string{
			"--config", p.file(schedulerConfig), "--secure-port", "0",
		}
	case ControllerManager:
		return []string{
			"--kubeconfig", p.file("system:kube-controller-manager.kubeconfig"), "--secure-port", "0", "--profiling=false",
			"--use-service-account-credentials", "--service-account-private-key-file", p.file("accounts.key"), "--root-ca-file", p.file("ca.crt"),
			"--allocate-node-cidrs=false", "--cluster-signing-cert-file", p.file("ca.crt"), "--cluster-signing-key-file", p.file("ca.key"),
		}
	}
	return nil
}

// schedulerConfig is the name of the file of schedulerText.
const schedulerConfig = "scheduler.yaml"

// schedulerText is the scheduler's configuration. It reads nothing before it leads: what it has read
// in vain, while no API server answered, it would read again a minute later only.
func (p *Plane) schedulerText() string {
	return fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
delayCacheUntilActive: true
enableProfiling: false
clientConnection: {kubeconfig: %q}
`, p.file("system:kube-scheduler.kubeconfig"))
}
