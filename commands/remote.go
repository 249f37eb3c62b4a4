package commands

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/agent/client"
	"github.com/sledctl/sledctl/operation"
)

// remote says that a command is to be done by the agent of a sled, and not here.
type remote struct{ agent, cert, key, ca string }

func (r *remote) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&r.agent, "agent", "", "have the agent of a sled do it: unix:/NAME, http://HOST:PORT, https://HOST:PORT")
	flags.StringVar(&r.cert, "tls-cert", "", "with https: our certificate, a PEM file")
	flags.StringVar(&r.key, "tls-key", "", "with https: its key, a PEM file")
	flags.StringVar(&r.ca, "tls-ca", "", "with https: who has signed the agent's certificate, a PEM file (default: whom the system knows)")
}

func (r remote) is() bool { return r.agent != "" }

// client is the agent. What it is not asked for, it says.
func (e *Env) agentClient(r remote, m mutation) (*client.Client, error) {
	if m.dry() || m.keep {
		return nil, &usageError{text: "an agent cannot be asked for --dry-run, --explain or --keep", hint: "run it on the sled"}
	}
	secure, err := r.tls()
	if err != nil {
		return nil, &usageError{text: err.Error()}
	}
	c, err := client.New(r.agent, secure)
	if err != nil {
		return nil, &usageError{text: "--agent: " + err.Error()}
	}
	c.Wait = e.flags.wait
	return c, nil
}

func (r remote) tls() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS13}
	if r.cert != "" || r.key != "" {
		own, err := tls.LoadX509KeyPair(r.cert, r.key)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert %s, --tls-key %s: %w", r.cert, r.key, err)
		}
		c.Certificates = []tls.Certificate{own}
	}
	if r.ca != "" {
		pem, err := os.ReadFile(r.ca)
		if err != nil {
			return nil, fmt.Errorf("--tls-ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--tls-ca %s: there is no certificate in it", r.ca)
		}
	}
	return c, nil
}

// remotely has an agent change an instance, and prints it as it is then.
func (e *Env) remotely(ctx context.Context, r remote, m mutation, ref, state string) error {
	list := e.instanceList()
	if err := list.Check(e.output); err != nil {
		return err
	}
	c, err := e.agentClient(r, m)
	if err != nil {
		return err
	}
	ask := func() (*shownInstance, error) { return c.Get(ctx, ref) }
	if state != "" {
		ask = func() (*shownInstance, error) { return c.Change(ctx, ref, state) }
	}
	now, err := ask()
	if err != nil || now == nil {
		return err
	}
	return list.PrintOne(e.Streams.Out, e.output, *now)
}

// deleteRemotely has an agent take instances away, and tells all that went wrong.
func (e *Env) deleteRemotely(ctx context.Context, r remote, m mutation, mustExist, yes bool, refs []string) error {
	c, err := e.agentClient(r, m)
	if err != nil {
		return err
	}
	if yes {
		return &usageError{text: "an agent cannot be asked for --yes", hint: "take the protection off on the sled"}
	}
	var failed []error
	for _, ref := range refs {
		err := c.Delete(ctx, ref)
		if f, said := saidByAgent(err); said && f.Exit == exitNotFound && !mustExist {
			e.progress.say("no instance %q: nothing to do", ref)
			continue
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// saidByAgent is what an agent's command said of its failure.
func saidByAgent(err error) (f failure, ok bool) {
	failed, ok := errors.AsType[*client.FailedError](err)
	if !ok || failed.Failure == nil || json.Unmarshal(failed.Failure, &f) != nil {
		return failure{}, false
	}
	return f, true
}

// begun is when the first of operations was.
func begun(reports []operation.Report) time.Time {
	for _, r := range reports {
		if !r.Started.IsZero() {
			return r.Started
		}
	}
	return time.Now()
}

// agentFailure is the status, code and body of what a command would have said.
func agentFailure(err error, reports ...operation.Report) (status int, code string, said json.RawMessage) {
	f := failureOf(withReport(err, reports...), begun(reports), false)
	said, _ = json.Marshal(f)
	status = map[int]int{
		exitUsage: http.StatusBadRequest, exitNotFound: http.StatusNotFound, exitConflict: http.StatusConflict, exitLocked: http.StatusLocked,
		exitRefused: http.StatusForbidden, exitDeadline: http.StatusGatewayTimeout,
	}[f.Exit]
	if status == 0 {
		status = http.StatusInternalServerError
	}
	return status, f.Cause, said
}
