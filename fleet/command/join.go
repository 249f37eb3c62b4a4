package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/fleet/join"
)

func joinCommand() *cobra.Command {
	var r join.Request
	var authority, tokenFile string
	var patience time.Duration
	cmd := &cobra.Command{
		Use:   "join",
		Short: "Get the certificate of this sled from a control plane",
		Long: "Get the certificate of this sled from a control plane, by a token that sledctl-fleet token has made, and write a\n" +
			"kubeconfig for sledctl-fleet node, which renews the certificate from then on. It may be given again: a certificate\n" +
			"that has expired is replaced.",
		Example: "  sledctl-fleet join --server https://10.0.0.1:6443 --ca-file ca.crt --token-file /root/token --name sled1",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if authority == "" || tokenFile == "" {
				return usageError{errors.New("want --ca-file and --token-file")}
			}
			var err error
			if r.Authority, err = os.ReadFile(authority); err != nil {
				return err
			}
			token, err := os.ReadFile(tokenFile)
			if err != nil {
				return err
			}
			r.Token = strings.TrimSpace(string(token))
			ctx, done := interrupted(cmd)
			defer done()
			ctx, ends := context.WithTimeout(ctx, patience)
			defer ends()
			err = join.Join(ctx, r)
			if errors.As(err, new(*join.FieldError)) {
				return usageError{err}
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s has joined: its node reads %s/%s\n", r.Name, r.Dir, join.Kubeconfig)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.Server, "server", "", "https://HOST:PORT of the API server")
	f.StringVar(&authority, "ca-file", "", "file with the authority of the control plane, as PEM")
	f.StringVar(&tokenFile, "token-file", "", "file with the token")
	f.StringVar(&r.Name, "name", "", "name of the sled in the fleet")
	f.StringVar(&r.Dir, "dir", "/etc/sledctl-fleet", "directory for kubeconfig and certificate")
	f.DurationVar(&patience, "timeout", 2*time.Minute, "how long the certificate is waited for")
	return cmd
}

func tokenCommand() *cobra.Command {
	var lasts time.Duration
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Print a new token by which sleds join",
		Long: "Print a new token by which sleds join, as YAML for kubectl apply, with what to type on the sleds. It changes nothing.\n\n" +
			"With the token, a machine can join under any name, also under that of another sled: let it last as long as sleds are set up.",
		Example: "  sledctl-fleet token --lasts 30m | tee token.yaml | kubectl apply -f -",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if lasts <= 0 || lasts > 24*time.Hour {
				return usageError{fmt.Errorf("lasts %v: want more than 0s, and 24h at most", lasts)}
			}
			_, err := cmd.OutOrStdout().Write(join.Token(time.Now().Add(lasts)))
			return err
		},
	}
	cmd.Flags().DurationVar(&lasts, "lasts", time.Hour, "how long it is good for, 24h at most")
	return cmd
}
