package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/peer/napi"
	"github.com/sledctl/sledctl/sim"
)

func newSimNAPI(env *Env) *cobra.Command {
	cmd := group("napi", "Triton's networking API near the simulated sled", `
A simulated NAPI with its checks, its texts, and what servers of other years do otherwise. The sled reaches it at the address of nics.url;
sledctl sim fault disturbs it.`)
	cmd.AddCommand(newSimNAPIInit(env), newSimNAPIRequest(env), newSimNAPIServe(env))
	return cmd
}

func newSimNAPIInit(env *Env) *cobra.Command {
	var o sim.NAPIOptions
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Put a fresh NAPI near the simulated sled",
		Long: `Put a fresh NAPI near the simulated sled, with one network, admin, 10.99.99.0/24, and no NIC. The eras, by what a sled notices:

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
		RunE: env.run(func(ctx context.Context, _ []string) error { return runSimNAPIInit(ctx, env, o) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Address, "address", "", "HOST:PORT where it answers (default: that of nics.url)")
	flags.StringVar(&o.Era, "era", "D", "which servers it is like: "+orWords(sim.NAPIEras()))
	flags.StringVar(&o.Checking, "checking", "", "of parameters that it does not know: strict refuses them in bodies, too, loose drops them in lists, too")
	flags.BoolVar(&o.Shuffled, "shuffled", false, "the records of a page come in no order")
	env.complete(cmd, "era", sim.NAPIEras)
	env.complete(cmd, "checking", func() []string { return []string{"strict", "loose"} })
	return cmd
}

func runSimNAPIInit(ctx context.Context, e *Env, o sim.NAPIOptions) error {
	if !slices.Contains(sim.NAPIEras(), o.Era) {
		err := &usageError{text: fmt.Sprintf("--era %q: want %s", o.Era, orWords(sim.NAPIEras()))}
		if near := terminal.Nearest(o.Era, sim.NAPIEras()); near != "" {
			err.hint = "did you mean: --era " + near
		}
		return err
	}
	if !slices.Contains([]string{"", "strict", "loose"}, o.Checking) {
		return &usageError{text: fmt.Sprintf("--checking %q: want strict or loose", o.Checking)}
	}
	sled, _, err := e.simulatedSled()
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
			return &usageError{text: "nics.url: " + err.Error(), hint: "--address HOST:PORT, or nics.url in " + configFile}
		}
		o.Address = string(server)
	}
	if err := sled.InitNAPI(ctx, o); err != nil {
		return err
	}
	e.progress.say("a NAPI of era %s answers at %s", o.Era, o.Address)
	return nil
}

func newSimNAPIRequest(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "request METHOD PATH [BODY]",
		Short: "Ask the simulated NAPI as somebody else does, and print the answer",
		Long: `Ask the simulated NAPI as somebody else does, the control plane or an operator, and print the answer; the status goes to the standard error.
A BODY of - is standard input. An answer of 400 or above is an error.`,
		Example: `  sledctl sim napi request GET /nics
  sledctl sim napi request POST /nics '{"mac":"90:b8:d0:00:00:01","belongs_to_type":"zone","belongs_to_uuid":"…","owner_uuid":"…"}'
  sledctl sim napi request PUT /nics/90b8d0000001 '{"state":"stopped"}'`,
		Args: cobra.RangeArgs(2, 3),
		RunE: env.run(func(ctx context.Context, args []string) error { return runSimNAPIRequest(ctx, env, args) }),
	}
}

func runSimNAPIRequest(ctx context.Context, e *Env, args []string) error {
	method, path, body := strings.ToUpper(args[0]), args[1], ""
	if !strings.HasPrefix(path, "/") {
		return &usageError{text: fmt.Sprintf("path %q: want one that begins with a slash, as /nics", path)}
	}
	if len(args) > 2 {
		body = args[2]
	}
	if body == "-" {
		data, err := readNamed(e.Streams, body)
		if err != nil {
			return err
		}
		body = string(data)
	}
	sled, _, err := e.simulatedSled()
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
	e.progress.say("%d", status)
	return nil
}

// noNAPI says how to get one.
func noNAPI(err error) error {
	if errors.Is(err, sim.ErrNoNAPI) {
		return &refusedError{err: err, hint: "sledctl sim napi init makes one"}
	}
	return err
}

func newSimNAPIServe(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Listen where the simulated NAPI answers, for programs outside",
		Long: `Listen where the simulated NAPI answers, until it is interrupted: for curl, and for the commands that are run in the shell of sim shell,
which open real connections. It is the same NAPI as the one that commands with --host sim:DIR reach.`,
		Example: `  sledctl sim napi serve &
  curl -s http://127.77.255.1:8081/ping`,
		Args: cobra.NoArgs,
		RunE: env.run(func(ctx context.Context, _ []string) error {
			sled, _, err := env.simulatedSled()
			if err != nil {
				return err
			}
			return noNAPI(sled.ServeNAPI(ctx, func(address string) { env.progress.say("listening on %s", address) }))
		}),
	}
}
