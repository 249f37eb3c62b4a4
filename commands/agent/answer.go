package agent

import (
	"context"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/description"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/documents"
)

// agentDocument reads what an agent is sent.
func agentDocument(ctx context.Context, e *cli.Env, data []byte) (instance.Wanted, error) {
	w, err := documents.ParseSent(data, terminal.ParseSize)
	if err != nil {
		return w, description.ErrorOf("the body", err)
	}
	if w.MachineText != nil && w.MachineFile == "" {
		w.MachineFile = "spec of the body"
	}
	return description.Complete(ctx, e, w)
}
