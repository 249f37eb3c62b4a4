package steptest

import (
	"context"
	"testing"

	"github.com/sledctl/sledctl/host"
)

// Noted is a host that notes the commands that change something.
type Noted struct {
	host.Host
	Ran []string
}

// Run runs a command, and notes it if it may change something.
func (n *Noted) Run(ctx context.Context, c host.Command) (host.Result, error) {
	if !c.ReadOnly {
		n.Ran = append(n.Ran, c.Shell())
	}
	return n.Host.Run(ctx, c)
}

// Does is the function Does. Afterwards only the commands of the last step are noted.
func (n *Noted) Does(t testing.TB, steps ...Step) {
	t.Helper()
	for _, s := range steps {
		n.Ran = nil
		Does(t, n, s)
	}
}
