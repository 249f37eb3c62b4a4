// Package agent is sledctl agent.
package agent

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/agent"
	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/agent/capacity"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/config"
	"github.com/sledctl/sledctl/commands/events"
	"github.com/sledctl/sledctl/commands/logread"
	"github.com/sledctl/sledctl/commands/nics"
	"github.com/sledctl/sledctl/commands/sleds"
	"github.com/sledctl/sledctl/commands/status"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/illumos/system"
	recorded "github.com/sledctl/sledctl/sled/events"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/reap"
)

type options struct {
	listen    []string
	tls       agent.TLS
	tokens    string
	operators []string
	open      bool
}

// New is the command agent.
func New(env *cli.Env) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Serve VM state over HTTP and notify the control plane",
		Long: `Serve VM state over HTTP and notify the control plane, as Oxide's sled agent does, until interrupted. The agent notices
changes that commands make; commands do not need the agent. No VM ends because the agent ends. If nics.url is set, the agent keeps this
sled's NIC records in Triton's NAPI up to date, as nics sync does (nics.agent).

  GET /vmms                   all VMs: limit, page_token, name, instance_id, state
  GET /vmms/ID/state          one VM, by its Propolis id, as the control plane reads it
  PUT /vmms/ID/state          start, stop or reset one VM
  DELETE /vmms/ID             remove one VM
  GET /events                 the states of all VMs and their changes, as server-sent events; after=GENERATION resumes
  GET /vmms/ID/events         the same, of one VM
  GET /status                 whether the sled is well, as status -o json
  GET /operations             the newest operations, as events -o json: last
  GET /instance-logs          what instance logs prints: instances, service, previous, since, last
  GET /capacity               what the sled can hold, and what each keeper has on it
  GET /keeper                 who keeps the sled
  GET /inventory              what the sled has, for the control plane (nexus.sled_id)
  GET /sled-identifiers       the ids of the sled and of its board (nexus.sled_id, nexus.rack_id)
  GET /zones                  the zones of VMs that run, by name
  GET /healthz                answers if the agent does
  GET /metrics                the agent's figures, for Prometheus

Requests name the version of the API in the header api-version; /healthz, /status, /operations and the events need none.

Only the owner of a Unix socket can use it. Over TCP, also on a loopback address, clients show a token or a certificate: readers
read, operators change VMs. The agent refuses (421) a request whose Host is neither an address nor a name of the agent.`,
		Example: `  sledctl agent
  curl --unix-socket /var/run/sledctl/agent.sock -H 'api-version: 48.0.0' http://sled/vmms
  sledctl agent --listen tcp:127.0.0.1:12345 --token-file /etc/sledctl/tokens`,
		Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error { return run(ctx, env, o) }),
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.listen, "listen", nil, "unix:/NAME or tcp:ADDRESS:PORT; repeatable (agent.listen)")
	flags.StringVar(&o.tls.Cert, "tls-cert", "", "TCP: PEM `FILE` of the agent's certificate")
	flags.StringVar(&o.tls.Key, "tls-key", "", "TCP: PEM `FILE` of the certificate's key")
	flags.StringVar(&o.tls.ClientCA, "tls-client-ca", "", "TCP: PEM `FILE` of the CA that signs client certificates")
	flags.StringArrayVar(&o.operators, "tls-operator", nil, "TCP: client name that may change VMs; repeatable (agent.operators)")
	flags.StringVar(&o.tokens, "token-file", "", "TCP: `FILE` of lines reader TOKEN or operator TOKEN (agent.token_file)")
	flags.BoolVar(&o.open, "insecure-listen", false, "TCP: serve every client, without certificates and tokens")
	return cmd
}

func run(ctx context.Context, e *cli.Env, o options) error {
	c, err := e.Config()
	if err != nil {
		return err
	}
	instances, env, err := served(ctx, e)
	if err != nil {
		return err
	}
	env.By.Via = operation.ViaAgent
	s, err := agentSettings(e, c, instances, o)
	if err != nil {
		return err
	}
	cli.CollectEarly()
	ready, finish := noting(ctx, e.Environ, func(err error) { s.Log.Warn("the service manager was not told", "cause", err) })
	err = s.Run(ctx, env, func() {
		for _, at := range s.Listen {
			s.Log.Info("listening", "address", at.String())
		}
		ready()
	})
	finish()
	if errors.Is(context.Cause(ctx), cli.ErrInterrupted) {
		return nil // that is how an agent ends
	}
	return err
}

// served are the VMs that the agent answers for: on SmartOS none, where it keeps NIC records
// alone, and needs no bootstrap.
func served(ctx context.Context, e *cli.Env) (instance.Settings, operation.Env, error) {
	h, err := e.Host()
	if err != nil {
		return instance.Settings{}, operation.Env{}, err
	}
	switch runs, err := system.RunsVMs(ctx, h); {
	case err != nil:
		return instance.Settings{}, operation.Env{}, err
	case runs:
		return e.Instances(ctx)
	}
	if _, err := e.LedgerWithoutBootstrap(ctx, true); err != nil {
		return instance.Settings{}, operation.Env{}, err
	}
	return e.NoInstances()
}

// agentSettings are those of the flags, else of the configuration.
func agentSettings(e *cli.Env, c config.Config, instances instance.Settings, o options) (agent.Settings, error) {
	s := agent.Settings{Instance: instances, Document: func(ctx context.Context, data []byte) (instance.Wanted, error) { return agentDocument(ctx, e, data) }, Mode: c.Nexus.Mode, FlatNetwork: c.Agent.FlatNetwork, TombstoneTTL: time.Duration(c.Agent.TombstoneTTL), Listener: e.Listen, SparePools: cli.SparePools}
	listen, flag := o.listen, "--listen"
	if len(listen) == 0 {
		listen, flag = cli.AgentListens(e, c), "agent.listen"
	}
	for _, text := range listen {
		at, err := agent.ParseAddress(text)
		if err != nil {
			return s, &cli.UsageError{Text: flag + ": " + err.Error()}
		}
		s.Listen = append(s.Listen, at)
	}
	h, err := e.Host()
	if err != nil {
		return s, err
	}
	if s.TLS, err = o.tls.Config(); err != nil {
		return s, &cli.UsageError{Text: err.Error()}
	}
	if s.Access, err = o.access(c.Agent, s.TLS); err != nil {
		return s, err
	}
	s.Status = func(ctx context.Context) (api.Status, error) { return status.Look(ctx, e) }
	s.Target, s.Remote = func(sled string) ([]string, error) { return target(e, sled) }, e.Remote
	look := capacity.Settings{Host: h, Status: s.Status, ZonePools: e.ZonePools, Reservoir: instances.Reservoir}
	s.Capacity = look.Look
	s.Operations = func(ctx context.Context, n int) (api.Events, error) { return events.Newest(ctx, e, n) }
	s.Follow = func(ctx context.Context, n int, tell func([]recorded.Event) error) error {
		return events.Follow(ctx, e, n, tell)
	}
	s.Verdicts = func(ctx context.Context) (map[reap.Verdict]int, error) { return verdicts(ctx, e) }
	s.Logs = func(ctx context.Context, q api.LogQuery, follow bool, tell func([]api.LogLine, bool) error, note func(string)) error {
		return logread.Read(ctx, e, q, follow, logread.AgentMost, tell, note)
	}
	s.LogData = func(ctx context.Context, q api.LogQuery, follow bool, tell func([]byte) error, note func(string)) error {
		return logread.Raw(ctx, e, q, follow, logread.AgentMost, tell, note)
	}
	if c.Nexus.URL != "" {
		if s.Nexus, err = url.Parse(c.Nexus.URL); err != nil {
			return s, err
		}
	}
	if s.NICs, err = agentNICs(e, c.NICs); err != nil {
		return s, err
	}
	s.Log = slog.New(slog.NewTextHandler(e.Streams.Err, nil))
	return s, register(e, c.Nexus, &s)
}

// target are the words that run the sledctl of a sled of the file: not of any machine that a request
// names.
func target(e *cli.Env, sled string) ([]string, error) {
	f, err := sleds.Read(e.SledFile())
	if err == nil {
		_, err = f.Find(sled)
	}
	if err != nil {
		return nil, err
	}
	return cli.ProgramOf(e, sled)
}

// access is who may ask over TCP: flags, else the configuration.
func (o options) access(c config.Agent, own *tls.Config) (agent.Access, error) {
	a := agent.Access{Open: o.open, Operators: c.Operators, HostNames: c.HostNames}
	if len(o.operators) > 0 {
		a.Operators = o.operators
	}
	if own != nil {
		a.Certificate = own.Certificates[0].Leaf
	}
	name, flag := cmp.Or(o.tokens, c.TokenFile), "agent.token_file"
	if o.tokens != "" {
		flag = "--token-file"
	}
	if name == "" {
		return a, nil
	}
	var err error
	if a.Tokens, err = agent.ReadTokens(name); err != nil {
		return a, &cli.UsageError{Text: flag + ": " + err.Error()}
	}
	return a, nil
}

// agentNICs are as nics sync has them without options. What fails is asked again
// by the agent, at its own pace.
func agentNICs(e *cli.Env, c config.NICs) (*agent.NICs, error) {
	if c.URL == "" || !c.Agent {
		return nil, nil
	}
	s, err := nics.Settings(e, nics.Flags{})
	s.Again = nil
	o := nics.SyncFlags{MaxDelete: nics.UsualMaxDelete, ConfirmTwice: nics.UsualConfirmTwice, Migration: c.DisableDuringMigration}.Options()
	return &agent.NICs{Settings: s, Options: o, FirstLook: time.Duration(c.FirstLook)}, err
}

// verdicts counts the objects on the sled as reap -n judges them.
func verdicts(ctx context.Context, e *cli.Env) (map[reap.Verdict]int, error) {
	c, env, err := e.Operation()
	if err != nil {
		return nil, err
	}
	found, err := cli.ReapSettings(c).Verdicts(ctx, env, reap.Choice{})
	counts := map[reap.Verdict]int{reap.Orphan: 0}
	for _, o := range found.Objects {
		counts[o.Verdict]++
	}
	return counts, err
}
