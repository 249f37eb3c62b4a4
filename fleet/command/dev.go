package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/sledctl/sledctl/fleet/dev"
)

func devCommand() *cobra.Command {
	var servers, dir string
	var sleds int
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a fleet of simulated sleds on this machine",
		Long: "Run a fleet of simulated sleds on this machine, until interrupted: Kubernetes' own servers, the\n" +
			"controller, and sleds with the real agent, node and guard. It prints how kubectl reaches it. The\n" +
			"servers are built from source by make fleet-servers.",
		Example: "  sledctl-fleet dev --servers bin/servers --sleds 3",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if sleds < 1 || sleds > 100 {
				return usageError{fmt.Errorf("--sleds %d: want 1 to 100", sleds)}
			}
			if servers, err = filepath.Abs(servers); err != nil {
				return err
			}
			if dir == "" {
				if dir, err = os.MkdirTemp("", "fleet"); err != nil {
					return err
				}
				defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
			} else if err := os.Mkdir(dir, 0o700); err != nil {
				return usageError{fmt.Errorf("--dir: %w", err)}
			}
			log := logger(cmd)
			ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
			s, err := scheme()
			if err != nil {
				return err
			}
			ctx, done := interrupted(cmd)
			defer done()
			return dev.Run(ctx, dev.Options{Servers: servers, Dir: dir, Sleds: sleds, Scheme: s, Out: cmd.OutOrStdout(), Log: log})
		},
	}
	f := cmd.Flags()
	f.StringVar(&servers, "servers", "bin/servers", "directory of Kubernetes' programs")
	f.StringVar(&dir, "dir", "", "directory to make and to keep (default: a temporary one)")
	f.IntVar(&sleds, "sleds", 3, "how many sleds, 1 to 100")
	return cmd
}
