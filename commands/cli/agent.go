package cli

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/agent"
	"github.com/sledctl/sledctl/agent/client"
	"github.com/sledctl/sledctl/commands/config"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sled/failure"
)

// ReadToken is the token of the first line of a file that says something; of one
// of the agent's own, the last word. Without a file there is none.
func ReadToken(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	data, err := agent.ReadSecret(file)
	if err != nil {
		return "", &UsageError{Text: "--token-file: " + err.Error()}
	}
	for line := range strings.Lines(string(data)) {
		if words := strings.Fields(line); len(words) > 0 && words[0][0] != '#' {
			return words[len(words)-1], nil
		}
	}
	return "", &UsageError{Text: "--token-file: " + file + ": no token in it"}
}

// SaidByAgent returns the failure of a command that an agent ran, as that command
// reported it.
func SaidByAgent(err error) (d failure.Document, ok bool) {
	failed, ok := errors.AsType[*client.FailedError](err)
	if !ok || failed.Failure == nil || json.Unmarshal(failed.Failure, &d) != nil {
		return failure.Document{}, false
	}
	return d, true
}

// AgentListens is where an agent of the sled listens if no flag says where.
func AgentListens(e *Env, c config.Config) []string {
	if len(c.Agent.Listen) > 0 {
		return c.Agent.Listen
	}
	return []string{"unix:" + filepath.Join(rootOf(e, c), c.Paths.Run, "agent.sock")}
}

// rootOf is the directory of this machine that stands for the sled's /.
func rootOf(e *Env, c config.Config) string {
	if dir, ok := e.SimDir(); ok {
		return sim.Root(dir)
	}
	return c.Host.Root
}

// Remote says that a command is to be done by the agent of a sled, and not here.
type Remote struct{ agent, cert, key, ca, token string }

// Add gives a command its flags.
func (r *Remote) Add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&r.agent, "agent", "", "agent to ask: unix:/NAME, http://HOST:PORT or https://HOST:PORT")
	flags.StringVar(&r.cert, "tls-cert", "", "https: PEM `FILE` of the client's certificate")
	flags.StringVar(&r.key, "tls-key", "", "https: PEM `FILE` of the certificate's key")
	flags.StringVar(&r.token, "token-file", "", "with --agent: `FILE` with the token, alone or as the agent's own")
	flags.StringVar(&r.ca, "tls-ca", "", "https: PEM `FILE` of the CA that signed the agent's certificate")
}

// remoteFlags are their names.
func remoteFlags() []string { return []string{"agent", "tls-cert", "tls-key", "tls-ca", "token-file"} }

// Is reports whether there is an agent to ask.
func (r Remote) Is() bool { return r.agent != "" }

// Client is the agent that is meant. What it cannot be asked for is refused.
func (r Remote) Client(e *Env, m Mutation) (*client.Client, error) {
	if m.Dry() || m.Keep {
		return nil, &UsageError{Text: "an agent cannot be asked for --dry-run, --explain or --keep", Advice: "run it on the sled"}
	}
	secure, err := r.tls()
	if err != nil {
		return nil, &UsageError{Text: err.Error()}
	}
	token, err := ReadToken(r.token)
	if err != nil {
		return nil, err
	}
	c, err := client.New(r.agent, secure, token, e.Call)
	if err != nil {
		return nil, &UsageError{Text: "--agent: " + err.Error()}
	}
	c.Wait = e.Flags.Wait
	return c, nil
}

func (r Remote) tls() (*tls.Config, error) {
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
