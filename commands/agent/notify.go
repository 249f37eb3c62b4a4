package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/host"
)

// The messages to a service manager, as sd_notify(3) defines them.
const (
	notifyVariable = "NOTIFY_SOCKET"
	notifyReady    = "READY=1"
	notifyStopping = "STOPPING=1"
	notifyTime     = 5 * time.Second // for one datagram to a manager that does not read
)

// notify tells the service manager that has started us, if one has said where
// it listens: at a Unix datagram socket, whose name begins with @ if it is in no
// directory. It listens on the machine that we run on, also when the sled is a
// simulated one. That ctx has ended is no reason not to tell.
func notify(ctx context.Context, environ []string, state string) error {
	at := cli.Variable(environ, notifyVariable)
	if at == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), notifyTime)
	defer cancel()
	manager, err := host.NewIllumos(host.IllumosOptions{}).Dial(ctx, "unixgram", at)
	if err != nil {
		return fmt.Errorf("tell %s at %s: %w", state, notifyVariable, err)
	}
	defer manager.Close()
	deadline, _ := ctx.Deadline()
	if err := manager.SetWriteDeadline(deadline); err != nil {
		return fmt.Errorf("tell %s at %s: %w", state, notifyVariable, err)
	}
	if _, err := manager.Write([]byte(state)); err != nil {
		return fmt.Errorf("tell %s at %s: %w", state, notifyVariable, err)
	}
	return nil
}

// noting tells the manager what an agent is at while it runs: that it is ready,
// once ready is called, and from then on, as soon as ctx ends, that it stops.
// Finish waits until the latter is told.
func noting(ctx context.Context, environ []string, failed func(error)) (ready, finish func()) {
	tell := func(state string) {
		if err := notify(ctx, environ, state); err != nil {
			failed(err)
		}
	}
	wait := func() {} // an agent that never was ready tells nothing
	ready = func() {
		tell(notifyReady)
		told := make(chan struct{})
		drop := context.AfterFunc(ctx, func() { defer close(told); tell(notifyStopping) })
		wait = func() {
			if !drop() {
				<-told
			}
		}
	}
	return ready, func() { wait() }
}
