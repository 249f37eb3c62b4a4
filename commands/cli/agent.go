package cli

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"

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
