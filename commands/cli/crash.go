package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
)

// crashing is --crash-at N[:before|:after]: SIGKILL ends this process at the N-th
// command, request or file operation of the run that changes something, before it
// is done, or (:after, the default) when it is done and sledctl does not know yet. It
// is for drills, and never works on a real sled.
type crashing struct {
	text string
	at   int
	mode host.CrashMode
	host *host.Crashing
}

// on is the host with the crash, if there is to be one.
func (c *crashing) on(h host.Host, err error) (host.Host, error) {
	if c == nil || err != nil {
		return h, err
	}
	c.host = host.Crash(h, c.at, c.mode).Kill(func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) })
	return c.host, nil
}

// report says that the run has ended before its crash.
func (c *crashing) report(p *Progress) {
	if c != nil && c.host != nil {
		p.Say("--crash-at %s: the run has ended after %d", c.text, c.host.Points())
	}
}

// readCrashAt reads the flag, and refuses it on a real sled.
func readCrashAt(e *Env) error {
	text := e.Flags.crashAt
	if text == "" {
		return nil
	}
	word, when, _ := strings.Cut(text, ":")
	n, err := strconv.Atoi(word)
	mode, known := map[string]host.CrashMode{"": host.CrashAfter, "after": host.CrashAfter, "before": host.CrashBefore}[when]
	if err != nil || n < 1 || !known || strings.HasSuffix(text, ":") {
		return &UsageError{Text: fmt.Sprintf("--crash-at %q: want N, N:before or N:after, N from 1", text)}
	}
	simulated, err := e.actsOnSimulation()
	switch {
	case err != nil:
		return err
	case !simulated:
		return &UsageError{Text: "--crash-at works on simulated sleds only", Advice: "give --host sim, or run it in a sledctl sim shell"}
	}
	e.crash = &crashing{text: text, at: n, mode: mode}
	return nil
}

// actsOnSimulation tells whether what this run changes is a simulated sled: it is
// the host, or all commands of the host stand in for the real ones.
func (e *Env) actsOnSimulation() (bool, error) {
	if _, ok := e.SimDir(); ok {
		return true, nil
	}
	dir := Variable(e.Environ, sim.DirVariable)
	if dir == "" {
		return false, nil
	}
	c, err := e.Config()
	if err != nil {
		return false, err
	}
	for _, path := range c.Host.CommandPath {
		if path != sim.Tools(dir) && !strings.HasPrefix(path, sim.Tools(dir)+"/") {
			return false, nil
		}
	}
	return len(c.Host.CommandPath) > 0 && c.Host.Root == sim.Root(dir), nil
}
