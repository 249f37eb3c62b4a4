package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/peer/napi"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sled/failure"
)

func newNAPI(env *cli.Env) *cobra.Command {
	cmd := cli.Group("napi", "Run a simulated NAPI near the simulated sled", `
The simulated NAPI has the checks and the texts of Triton's networking API, and behaves as the servers of several years. The sled reaches
it at the address of nics.url; sledctl sim fault disturbs it.`)
	cmd.AddCommand(newNAPIInit(env), newNAPIRequest(env), newNAPIServe(env))
	return cmd
}

func newNAPIInit(env *cli.Env) *cobra.Command {
	var o sim.NAPIOptions
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Create a NAPI near the simulated sled",
		Long: `Create a NAPI near the simulated sled, with one network, admin, 10.99.99.0/24, and no NIC. The eras, by what a sled notices:

  D             since April 2018: conditional requests
  C             2017: /nics filters by cn_uuid
  B             2015: /nics refuses filters that it does not know, cn_uuid among them
  A             before: it ignores them, and lists the whole data centre
  2014          A, and does nothing for an agent that calls itself net-agent
  RFD58         as RFD 58 describes it: /search/nics filters by cn_uuid
  NAPI-360-tip  that branch as it was left: /search/nics does not filter`,
		Example: `  sledctl sim napi init
  sledctl sim napi init --era RFD58 --shuffled`,
		Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error { return runNAPIInit(ctx, env, o) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Address, "address", "", "HOST:PORT of the NAPI (default: that of nics.url)")
	flags.StringVar(&o.Era, "era", "D", "servers to behave like: "+cli.OrWords(sim.NAPIEras()))
	flags.StringVar(&o.Checking, "checking", "", "unknown parameters: strict refuses them, loose ignores them")
	flags.BoolVar(&o.Shuffled, "shuffled", false, "return the records of a page in no order")
	env.Complete(cmd, "era", sim.NAPIEras)
	env.Complete(cmd, "checking", func() []string { return []string{"strict", "loose"} })
	return cmd
}

// checkAddress refuses an address that nothing can be reached at; empty: there is another.
func checkAddress(address string) error {
	if host, port, err := net.SplitHostPort(address); address != "" && (err != nil || host == "" || port == "") {
		return &cli.UsageError{Text: fmt.Sprintf("--address %q: want HOST:PORT, e.g. 10.77.0.9:8081", address)}
	}
	return nil
}

func runNAPIInit(ctx context.Context, e *cli.Env, o sim.NAPIOptions) error {
	if !slices.Contains(sim.NAPIEras(), o.Era) {
		err := &cli.UsageError{Text: fmt.Sprintf("--era %q: want %s", o.Era, cli.OrWords(sim.NAPIEras()))}
		if near := naming.Nearest(o.Era, sim.NAPIEras()); near != "" {
			err.Advice = "did you mean: --era " + near
		}
		return err
	}
	if !slices.Contains([]string{"", "strict", "loose"}, o.Checking) {
		return &cli.UsageError{Text: fmt.Sprintf("--checking %q: want strict or loose", o.Checking)}
	}
	if err := checkAddress(o.Address); err != nil {
		return err
	}
	sled, _, err := simulatedSled(e)
	if err != nil {
		return err
	}
	if o.Address == "" {
		c, err := e.Config()
		if err != nil {
			return err
		}
		server, err := napi.ParseServer(c.NICs.URL)
		if err != nil {
			return &cli.UsageError{Text: "nics.url: " + err.Error(), Advice: "give --address HOST:PORT, or set nics.url in " + naming.ConfigFile}
		}
		o.Address = string(server)
	}
	if err := sled.InitNAPI(ctx, o); err != nil {
		return err
	}
	e.Progress.Say("a NAPI of era %s answers at %s", o.Era, o.Address)
	return nil
}

func newNAPIRequest(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "request METHOD PATH [BODY]",
		Short: "Send a request to the simulated NAPI, and print the answer",
		Long: `Send a request to the simulated NAPI, and print the answer, as if from the control plane or an operator; the status goes to standard
error. A BODY of - is standard input. A status of 400 or above is an error.`,
		Example: `  sledctl sim napi request GET /nics
  sledctl sim napi request POST /nics '{"mac":"90:b8:d0:00:00:01","belongs_to_type":"zone","belongs_to_uuid":"…","owner_uuid":"…"}'
  sledctl sim napi request PUT /nics/90b8d0000001 '{"state":"stopped"}'`,
		Args: cobra.RangeArgs(2, 3),
		RunE: env.Run(func(ctx context.Context, args []string) error { return runNAPIRequest(ctx, env, args) }),
	}
}

func runNAPIRequest(ctx context.Context, e *cli.Env, args []string) error {
	method, path, body := strings.ToUpper(args[0]), args[1], ""
	if !strings.HasPrefix(path, "/") {
		return &cli.UsageError{Text: fmt.Sprintf("path %q: want one that begins with a slash, as /nics", path)}
	}
	if len(args) > 2 {
		body = args[2]
	}
	if body == "-" {
		data, err := cli.ReadNamed(e.Streams, body)
		if err != nil {
			return err
		}
		body = string(data)
	}
	sled, _, err := simulatedSled(e)
	if err != nil {
		return err
	}
	status, answer, err := sled.AskNAPI(ctx, method, path, body)
	if err != nil {
		return noNAPI(err)
	}
	if len(answer) > 0 {
		if _, err := fmt.Fprintf(e.Streams.Out, "%s\n", answer); err != nil {
			return err
		}
	}
	if status >= 400 {
		return fmt.Errorf("%s %s: NAPI answers %d", method, path, status)
	}
	e.Progress.Say("%d", status)
	return nil
}

// noNAPI says how to get one.
func noNAPI(err error) error {
	if errors.Is(err, sim.ErrNoNAPI) {
		return &failure.RefusedError{Err: err, Advice: "to make one, run: sledctl sim napi init"}
	}
	return err
}

func newNAPIServe(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Serve the simulated NAPI to other programs",
		Long: `Serve the simulated NAPI to other programs at its address, until interrupted: to curl, and to commands in the shell of sim shell,
which open real connections. Commands with --host sim:DIR reach the same NAPI.`,
		Example: `  sledctl sim napi serve &
  curl -s http://127.77.255.1:8081/ping`,
		Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error {
			sled, _, err := simulatedSled(env)
			if err != nil {
				return err
			}
			return noNAPI(sled.ServeNAPI(ctx, func(address string) { env.Progress.Say("listening on %s", address) }))
		}),
	}
}
