package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/sledctl/sledctl/fleet/api"
	"github.com/sledctl/sledctl/fleet/controller"
	"github.com/sledctl/sledctl/fleet/guard"
	"github.com/sledctl/sledctl/fleet/guard/clock"
	"github.com/sledctl/sledctl/fleet/join"
	"github.com/sledctl/sledctl/fleet/node"
	"github.com/sledctl/sledctl/host"
)

// Sleds gives the host of a sled that is named illumos or sim:DIR.
type Sleds func(name string) (host.Host, error)

func scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, errors.Join(clientscheme.AddToScheme(s), api.AddToScheme(s))
}

// interrupted is a context that ends with the process.
func interrupted(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
}

// config reads how the API server is reached: a file, or the account of the pod.
func config(file string) (*rest.Config, error) {
	c, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, err
	}
	c.QPS, c.Burst = 200, 400
	return c, nil
}

// connect is what controller and node reach the API server with.
func connect(cmd *cobra.Command, kubeconfig string) (*rest.Config, *runtime.Scheme, *slog.Logger, error) {
	c, err := config(kubeconfig)
	if err != nil {
		return nil, nil, nil, err
	}
	s, err := scheme()
	log := logger(cmd)
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	return c, s, log, err
}

func logger(cmd *cobra.Command) *slog.Logger {
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
}

func controllerCommand() *cobra.Command {
	var kubeconfig string
	var o controller.Options
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Place VMs, and start those again whose end is proven",
		Long: "Place VMs, and start those again whose end is proven. Runs in the cluster; of several, one leads.\n\n" +
			"The terms of the lease must not be shorter than those of the guards.",
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Terms.Check(); err != nil {
				return usageError{err}
			}
			if o.Terms.Settle <= 0 || o.After < o.Terms.Fence {
				return usageError{fmt.Errorf("--settle %v, --power-after %v: want the first above zero, the second not below --fence", o.Terms.Settle, o.After)}
			}
			ctx, done := interrupted(cmd)
			defer done()
			c, s, log, err := connect(cmd, kubeconfig)
			if err != nil {
				return err
			}
			c.QPS, c.Burst = 1000, 2000 // about 15 requests bring a VM up: the API server knows best how many it can take
			return controller.Run(ctx, c, s, o, log)
		},
	}
	f := cmd.Flags()
	f.StringVar(&kubeconfig, "kubeconfig", "", "file that says how the API server is reached")
	f.StringVar(&o.Metrics, "metrics", "0", "ADDRESS:PORT for Prometheus; 0: none")
	f.StringVar(&o.Health, "health", "0", "ADDRESS:PORT for probes; 0: none")
	f.StringVar(&o.Webhook.Certs, "webhook-certs", "", "directory with tls.crt and tls.key: answer the API server about evictions; without it, a drain stops VMs")
	f.StringVar(&o.Webhook.Host, "webhook-host", "", "address to answer it at (default: every one)")
	f.IntVar(&o.Webhook.Port, "webhook-port", 9443, "port to answer it at")
	f.DurationVar(&o.Terms.Fence, "fence", 15*time.Second, "how long a VM under a lease runs without a renewal")
	f.DurationVar(&o.Terms.Halt, "halt", 15*time.Second, "how long halting it takes at most")
	f.DurationVar(&o.Terms.Margin, "margin", 10*time.Second, "how much longer the controller waits")
	f.DurationVar(&o.Terms.Settle, "settle", 10*time.Second, "how long a BMC must report its sled off")
	f.DurationVar(&o.After, "power-after", time.Minute, "how long a sled is silent before it is powered off")
	f.DurationVar(&o.Every, "beat", 2*time.Second, "how often the controller reads leases")
	f.BoolVar(&o.Elect, "leader-elect", true, "let one of several controllers lead")
	return cmd
}

func nodeCommand() *cobra.Command {
	var kubeconfig, name, agent, tokenFile, state, guardFile string
	var renew, fenceAfter time.Duration
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Make this sled one of a fleet, and run what is placed on it",
		Long: "Make this sled one of a fleet, and run what is placed on it. Runs next to the sled's agent, which must be\n" +
			"kept by the fleet. It ends no VM because it ends itself, or because the API server does not answer.",
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, joined := join.At(kubeconfig)
			if name == "" && joined {
				var err error
				if name, err = join.Name(dir); err != nil {
					return err
				}
			}
			if name == "" {
				return usageError{errors.New("want --name, the name of the sled")}
			}
			ctx, done := interrupted(cmd)
			defer done()
			token, err := readToken(tokenFile)
			if err != nil {
				return err
			}
			sled, err := node.NewAgent(agent, token)
			if err != nil {
				return usageError{err}
			}
			c, s, log, err := connect(cmd, kubeconfig)
			if err != nil {
				return err
			}
			n := &node.Node{Name: name, Sled: sled, Memory: node.File(filepath.Join(state, "beats.json")), Log: log, Now: time.Now}
			if guardFile != "" {
				n.Guard = &guard.Writer{File: guardFile, Fence: fenceAfter, Now: clock.Now}
			}
			if joined {
				go join.Keep(ctx, dir, log)
			}
			return n.Run(ctx, c, s, node.Pace{Renew: renew, Fence: fenceAfter})
		},
	}
	f := cmd.Flags()
	f.StringVar(&kubeconfig, "kubeconfig", "", "file that says how the API server is reached; of one that join has written, the certificate is renewed")
	f.StringVar(&name, "name", "", "name of the sled in the fleet (default: the one that it has joined by)")
	f.StringVar(&agent, "agent", "unix:/var/run/sledctl/agent.sock", "agent of the sled")
	f.StringVar(&tokenFile, "token-file", "", "file with the operator's token of the agent")
	f.StringVar(&state, "state", "/var/lib/sledctl-fleet", "directory that outlives a reboot")
	f.StringVar(&guardFile, "guard-file", "", "file that the guard reads; without one no VM has a lease")
	f.DurationVar(&renew, "renew", 5*time.Second, "how often the lease is renewed")
	f.DurationVar(&fenceAfter, "fence", 15*time.Second, "how long a VM under a lease runs without a renewal")
	return cmd
}

func readToken(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(data)) {
		if token, ok := strings.CutPrefix(strings.TrimSpace(line), "operator "); ok {
			return strings.TrimSpace(token), nil
		}
	}
	return "", fmt.Errorf("%s has no line: operator TOKEN", file)
}

func guardCommand(sleds Sleds) *cobra.Command {
	var file, on string
	cmd := &cobra.Command{
		Use:   "guard",
		Short: "Halt VMs whose sled's lease is over",
		Long: "Halt VMs whose sled's lease is over. Runs on the sled, needs no network, and goes by a file that the\n" +
			"node writes and by the machine's monotonic clock.",
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return usageError{errors.New("want --file, which the node writes")}
			}
			h, err := sleds(on)
			if err != nil {
				return usageError{err}
			}
			ctx, done := interrupted(cmd)
			defer done()
			return (&guard.Guard{File: file, Host: h, Now: clock.Now, Log: logger(cmd)}).Run(ctx)
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "file that the node writes")
	cmd.Flags().StringVar(&on, "host", "illumos", "illumos, or sim:DIR for a simulated sled")
	return cmd
}
