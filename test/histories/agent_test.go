package histories

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"

	"github.com/sledctl/sledctl/agent"
	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/test/lattice"
)

// agentAtWork is an agent of the player's sled. Nobody asks it anything; what it
// does by itself must not be in anybody's way.
type agentAtWork struct {
	stop  context.CancelFunc
	ended chan struct{}
}

// work has an agent be at work, on a sled that has one.
func (p *player) work() {
	if p.agent != nil || p.row.Is(lattice.Agent) != lattice.Running {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	at := &agentAtWork{cancel, make(chan struct{})}
	env, _, _ := commands.On(p.sled.Host(), nil)
	env.Config = p.config
	env.Listen = func(context.Context, agent.Address) (net.Listener, error) {
		return &nobodys{closed: make(chan struct{})}, nil
	}
	go func() {
		defer close(at.ended)
		commands.Run(ctx, env, strings.Fields("agent --listen unix:/agent.sock"))
	}()
	p.agent = at
}

// rest ends the agent.
func (p *player) rest() {
	if p.agent == nil {
		return
	}
	p.agent.stop()
	<-p.agent.ended
	p.agent = nil
}

// nobodys is where nobody comes.
type nobodys struct {
	once   sync.Once
	closed chan struct{}
}

func (l *nobodys) Accept() (net.Conn, error) {
	<-l.closed
	return nil, errors.New("closed")
}

func (l *nobodys) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *nobodys) Addr() net.Addr { return &net.UnixAddr{Net: "unix", Name: "/agent.sock"} }
