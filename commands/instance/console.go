package instance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/agent"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/propolis/console"
	"github.com/sledctl/sledctl/propolis/forward"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance/record"
)

type consoleOptions struct {
	history bool
	since   string
	escape  string
	log     string
	vnc     bool
	listen  string
}

// anyPort is where the screen is served unless told otherwise.
const anyPort = "127.0.0.1:0"

func newConsole(env *cli.Env) *cobra.Command {
	var o consoleOptions
	cmd := &cobra.Command{
		Use:   "console NAME|UUID",
		Short: "Attach to an instance's serial console",
		Long: `Attach to an instance's serial console. sledctl prints the last 16 KiB of the VM's output, then what follows, and sends the VM
what is typed. Everyone who is attached sees the same, and may type.

On a terminal every key goes to the guest, ^C too, except the sequences of the escape character at the start of a line: "~." leaves, "~~"
types the character, "~?" lists the sequences. Without a terminal, sledctl prints the output as it comes and sends standard input as it
is; the end of standard input changes nothing.

If the connection breaks, sledctl connects again at the byte where it broke: nothing is lost or shown twice. The command follows a VM that
migrates, and ends with the VM (exit 0).

With --vnc, the command serves the VM's screen: it prints the address, and forwards VNC clients from a loopback port until ^C. Propolis
serves one client at a time, and asks for no password.`,
		Example: `  sledctl instance console web1
  sledctl instance console web1 --history > web1.log
  sledctl instance console web1 --since-byte -2000 --log web1.log
  sledctl instance console web1 --vnc --listen 127.0.0.1:5900`,
		Args: cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error { return runConsole(ctx, env, o, args[0]) }),
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.history, "history", false, "print the output that Propolis keeps, and exit")
	flags.StringVar(&o.since, "since-byte", "", "start at this byte of the output; -N: N bytes before its end")
	flags.StringVarP(&o.escape, "escape", "e", "~", `escape character; "none" for none`)
	flags.StringVar(&o.log, "log", "", "append the output to `FILE` too")
	flags.BoolVar(&o.vnc, "vnc", false, "serve the VM's screen on a loopback port")
	flags.StringVar(&o.listen, "listen", anyPort, "with --vnc: address to listen on (port 0: any free port)")
	cli.CompleteArgs(cmd, env.CompleteInstances)
	return cmd
}

func runConsole(ctx context.Context, e *cli.Env, o consoleOptions, ref string) error {
	since, err := o.place()
	if err != nil {
		return err
	}
	escape, err := o.escapeCharacter()
	if err != nil {
		return err
	}
	if o.listen != anyPort && !o.vnc {
		return &cli.UsageError{Text: "--listen is the address of the VM's screen: want --vnc with it"}
	}
	client, r, err := e.Propolis(ctx, ref)
	if err != nil {
		return err
	}
	if _, err := client.Get(ctx); err != nil && !errors.Is(err, propolis.ErrNoInstance) {
		return noConsole(ctx, e, r, err) // what is shown tells nobody whose it is
	}
	if o.vnc {
		return forwardScreen(ctx, e, o, client, r)
	}
	out, closeLog, err := o.output(e.Streams.Out)
	if err != nil {
		return err
	}
	defer closeLog()
	line := propolis.Serial{Client: client}
	if o.history {
		return noConsole(ctx, e, r, console.History(ctx, line, since, out, func(text string) { e.Progress.Warn(errors.New(text)) }))
	}
	s := console.Session{
		Line: line, Out: out, Since: since, Patience: consolePatience,
		Tell: e.Progress.Tell,
		Follow: func(destination string) (console.Line, error) {
			to, err := netip.ParseAddrPort(destination)
			if err != nil {
				return nil, fmt.Errorf("the machine has migrated to %q: %w", destination, err)
			}
			return propolis.Serial{Client: propolis.Client{Host: client.Host, Target: propolis.Target{Name: r.Name, Address: to}}}, nil
		},
	}
	switch in := e.Streams.In; {
	case in.Terminal && e.Streams.Out.Terminal:
		s.In, s.Escape = in, escape
		restore, err := rawTerminal(e.Streams)
		if err != nil {
			return err
		}
		defer restore()
		s.Tell = func(text string) { fmt.Fprintf(e.Streams.Err, "\r\n[%s: %s]\r\n", r.Name, terminal.Printable(text)) }
		if escape != 0 {
			s.Tell(fmt.Sprintf("%c. at the beginning of a line leaves, %[1]c? is help", escape))
		}
	case !in.Terminal:
		s.In = in
	}
	ctx, release := e.Streams.Out.WhileRead(ctx) // a VM may be silent for hours
	defer release()
	err = s.Run(ctx)
	if s.Escape != 0 { // behind what the guest left of a line
		fmt.Fprint(e.Streams.Err, "\r\n")
	}
	if errors.Is(err, console.ErrStopped) {
		s.Tell(err.Error())
		return nil
	}
	if gone := context.Cause(ctx); errors.Is(gone, syscall.EPIPE) {
		return gone
	}
	return noConsole(ctx, e, r, err)
}

// consolePatience is for how long a connection that broke is tried again: as
// long as a restart of Propolis can take, and with it the machine is gone.
const consolePatience = 30 * time.Second

// recentOutput is what is shown of earlier output unless told otherwise, in bytes.
const recentOutput = 16 << 10

func (o consoleOptions) place() (console.Place, error) {
	if o.since == "" {
		if o.history {
			return console.Place{}, nil
		}
		return console.Place{Byte: recentOutput, Back: true}, nil
	}
	digits, back := strings.CutPrefix(o.since, "-")
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return console.Place{}, &cli.UsageError{Text: fmt.Sprintf("--since-byte %q: want a number of bytes", o.since), Advice: "give --since-byte 0 for the beginning, --since-byte -1000 for the last 1000 bytes"}
	}
	return console.Place{Byte: n, Back: back}, nil
}

func (o consoleOptions) escapeCharacter() (byte, error) {
	switch {
	case o.escape == "none":
		return 0, nil
	case len(o.escape) == 1 && o.escape[0] > ' ' && o.escape[0] < 0x7f && o.escape != "." && o.escape != "?":
		return o.escape[0], nil
	}
	return 0, &cli.UsageError{Text: fmt.Sprintf("--escape %q: want one character, as ~ or %%, or none", o.escape)}
}

// output is where the console's is shown, and kept.
func (o consoleOptions) output(out io.Writer) (io.Writer, func(), error) {
	if o.log == "" {
		return out, func() {}, nil
	}
	f, err := os.OpenFile(o.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, cli.NewFile(o.log, err)
	}
	return io.MultiWriter(f, out), func() { _ = f.Close() }, nil
}

// noConsole turns the error of a VM that does not run into one that names the
// instance's state.
func noConsole(ctx context.Context, e *cli.Env, r record.Record, err error) error {
	if !errors.Is(err, console.ErrAbsent) && !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, syscall.EHOSTUNREACH) {
		return err
	}
	s, op, serr := e.Instances(ctx)
	view, verr := e.View(ctx)
	if errors.Join(serr, verr) != nil {
		return err
	}
	now, nerr := s.Summary(ctx, op, view, r.ID)
	if nerr != nil || now.State == record.Running {
		return err
	}
	why := ""
	if now.Reason != "" {
		why = ": " + now.Reason
	}
	return fmt.Errorf("%w: instance %q is %s%s", &cli.NotFoundError{What: "the console of instance " + r.Name, List: "sledctl instance get " + r.Name}, r.Name, now.State, why)
}

// rawTerminal takes the terminal's own keys away until restore is called, which happens
// on every way out: signals end the process only behind it.
func rawTerminal(streams *terminal.Streams) (restore func(), err error) {
	back, err := streams.In.Raw()
	if err != nil {
		return nil, fmt.Errorf("set the terminal to raw mode: %w", err)
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTERM, os.Interrupt)
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case sig := <-signals:
				back()
				if sig == syscall.SIGHUP || sig == syscall.SIGQUIT { // the others end the context
					signal.Reset(sig)
					_ = syscall.Kill(os.Getpid(), sig.(syscall.Signal))
				}
			case <-ended:
				return
			}
		}
	}()
	return func() {
		back()
		signal.Stop(signals)
		close(ended)
	}, nil
}

// forwardScreen lets clients of VNC reach the machine's screen.
// listenForScreen opens a port of the loopback interface for clients of VNC.
func listenForScreen(ctx context.Context, e *cli.Env, at netip.AddrPort) (net.Listener, error) {
	if e.Listen != nil {
		return e.Listen(ctx, agent.Address{Network: "tcp", Name: at.String()})
	}
	return forward.Listen(ctx, at)
}

func forwardScreen(ctx context.Context, e *cli.Env, o consoleOptions, client propolis.Client, r record.Record) error {
	at, err := netip.ParseAddrPort(o.listen)
	if err != nil || !at.Addr().IsLoopback() {
		return &cli.UsageError{
			Text:   fmt.Sprintf("--listen %q: want a loopback address with a port: the screen asks for no password", o.listen),
			Advice: "give --listen 127.0.0.1:5900; from elsewhere, ssh -L 5900:127.0.0.1:5900",
		}
	}
	url, err := client.ScreenURL(ctx)
	if err != nil {
		return err
	}
	l, err := listenForScreen(ctx, e, at)
	if err != nil {
		return &failure.RefusedError{Err: err, Advice: "give --listen 127.0.0.1:0 for a port that is free"}
	}
	if _, err := fmt.Fprintf(e.Streams.Out, "%s\t%s\n", l.Addr(), url); err != nil {
		_ = l.Close()
		return err
	}
	e.Progress.Say("the screen of %s is forwarded until ^C", r.Name)
	return forward.Serve(ctx, l, client.Screen, e.Progress.Warn)
}
