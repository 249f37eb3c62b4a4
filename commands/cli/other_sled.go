package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sledctl/sledctl/commands/config"
	"github.com/sledctl/sledctl/commands/sleds"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance/migration"
)

// onSled has a command act on the sled that is named, by --sled or SLEDCTL_SLED, or else,
// without --host and --agent, on the current one of the operator's file.
func onSled(e *Env, cmd *cobra.Command) error {
	if isLocal(cmd) {
		return nil
	}
	name := cmp.Or(e.Flags.sled, Variable(e.Environ, "SLEDCTL_SLED"))
	agent := cmd.Flags().Lookup("agent")
	typed := e.Flags.Host != "" || agent != nil && agent.Changed
	fromAfar(e, cmd, agent)
	switch {
	case e.Flags.sled != "" && typed:
		return &UsageError{Text: "--sled says already how the sled is reached", Advice: "give --sled alone, or without it --host or --agent"}
	case name == sleds.Local, name == "" && (typed || Variable(e.Environ, "SLEDCTL_HOST") != ""):
		return nil
	}
	f, err := sleds.Read(e.SledFile())
	switch {
	case err != nil:
		return err
	case name == sleds.All || strings.Contains(name, ","):
		return onSeveral(e, cmd, f, name)
	case name != "":
		return on(e, cmd, f, name)
	case f.Current == "" || f.Sleds[f.Current].Host == "" && staysHere(cmd):
		return nil
	}
	if err := sayWhere(e, cmd, f.Current, f.Sleds[f.Current]); err != nil {
		return err
	}
	return on(e, cmd, f, f.Current)
}

// Afar is how commands are typed that act on the same sled.
type Afar = sleds.Afar

// fromAfar notes how commands are typed where another sledctl has called this one, or --agent
// was given.
func fromAfar(e *Env, cmd *cobra.Command, agent *pflag.Flag) {
	if e.Flags.knownAs != "" {
		e.Afar = e.Afar.Named(e.Flags.knownAs, sleds.Sled{})
		return
	}
	if e.Flags.sled != "" || agent == nil || !agent.Changed || agent.Value.Type() != "string" {
		return
	}
	var flags []string
	for _, name := range remoteFlags() {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			flags = append(flags, "--"+name, f.Value.String())
		}
	}
	e.Afar = e.Afar.Asked(flags)
}

// on has a command act on a sled of the file.
func on(e *Env, cmd *cobra.Command, f sleds.File, name string) error {
	s, err := f.Find(name)
	switch {
	case err != nil:
		return err
	case s.SSH != "":
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return overSSH(cmd.Context(), e, name, s) }
		return nil
	}
	if e.Flags.knownAs == "" {
		e.Afar = e.Afar.Named(name, s)
	}
	switch {
	case s.Agent != "":
		return useAgent(cmd, name, s)
	default:
		e.Flags.Host = s.Host
	}
	return nil
}

// onSeveral has status act on several sleds.
func onSeveral(e *Env, cmd *cobra.Command, f sleds.File, named string) error {
	if cmd.CommandPath() != "sledctl status" {
		return &UsageError{Text: "--sled " + named + ": only status is asked of several sleds", Advice: "give one of " + OrWords(f.Names())}
	}
	names := f.Names()
	if named != sleds.All {
		names = strings.Split(named, ",")
	}
	if len(names) == 0 {
		return &UsageError{Text: "--sled all: no sled has a name yet", Advice: "to name one, run: sledctl sled add NAME --ssh MACHINE"}
	}
	for _, name := range names {
		if _, err := f.Find(name); err != nil {
			return err
		}
	}
	cmd.RunE = e.Run(func(ctx context.Context, _ []string) error { return AskSleds(ctx, e, f, names) })
	return nil
}

// isLocal says whether a command is about this program, or about the file of sleds.
func isLocal(cmd *cobra.Command) bool {
	top := cmd
	for top.HasParent() && top.Parent().HasParent() {
		top = top.Parent()
	}
	return slices.Contains(here(), top.Name())
}

// here are the commands that are about this program, or about the file of sleds.
func here() []string {
	return []string{"sled", "version", "completion", "exit-codes", "privileges", "help", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}
}

// commandsOf are the first words of the commands that act on a sled.
func commandsOf(all []Word) (words []string) {
	for _, w := range all {
		if !slices.Contains(here(), w.Name) {
			words = append(words, w.Name)
		}
	}
	return words
}

// staysHere says whether a command needs no sled that is another machine: it is about the
// simulated one of this, or about a document.
func staysHere(cmd *cobra.Command) bool {
	return strings.HasPrefix(cmd.CommandPath(), "sledctl sim") || strings.HasPrefix(cmd.CommandPath(), "sledctl propolis spec")
}

// unnamed are the commands that want the sled named, since what they end is gone.
func unnamed(cmd *cobra.Command) bool {
	all := cmd.Flags().Lookup("all")
	return cmd.Name() == "delete" || slices.Contains([]string{"sledctl storage format", "sledctl storage forget"}, cmd.CommandPath()) || cmd.CommandPath() == "sledctl reap" && all != nil && all.Value.String() == "true"
}

// Changes reports whether a command, with the flags it has, may change the sled: those that
// may can show what they would do, and a few cannot.
func Changes(cmd *cobra.Command) bool {
	if dry := cmd.Flags().Lookup("dry-run"); dry != nil {
		return dry.Value.String() != "true"
	}
	return slices.Contains([]string{"sledctl agent", "sledctl instance console", "sledctl instance edit", "sledctl storage forget", "sledctl top", "sledctl zone exec"}, cmd.CommandPath())
}

// Here is the environment in which another command line acts on the sled that this one acts
// on, and the flags with which it prints as this one does.
func Here(e *Env) (environ, flags []string) {
	if e.Flags.utc {
		flags = []string{"--utc"}
	}
	if e.Afar.Name() != "" {
		flags = append(flags, "--known-as", e.Afar.Name())
	}
	environ = append(slices.Clone(e.Environ), "SLEDCTL_SLED="+sleds.Local)
	for name, value := range map[string]string{"SLEDCTL_HOST": e.Flags.Host, "SLEDCTL_CONFIG": e.Flags.Config} {
		if value != "" {
			environ = append(environ, name+"="+value)
		}
	}
	return environ, flags
}

// sayWhere says which sled a change is made on that was not named.
func sayWhere(e *Env, cmd *cobra.Command, name string, s sleds.Sled) error {
	explain := cmd.Flags().Lookup("explain")
	if !Changes(cmd) || explain != nil && explain.Value.String() == "true" {
		return nil
	}
	if unnamed(cmd) {
		return &failure.RefusedError{Err: fmt.Errorf("%s: name the sled: %s is only the current one", cmd.CommandPath(), name), Advice: "add --sled " + name}
	}
	e.Progress.Tell(fmt.Sprintf("on %s (%s):", name, s.Way()))
	return nil
}

// useAgent has a command ask the agent of a sled, as its flags would.
func useAgent(cmd *cobra.Command, name string, s sleds.Sled) error {
	if f := cmd.Flags().Lookup("agent"); f == nil || f.Value.Type() != "string" {
		advice := "to reach it by ssh, run: sledctl sled add " + name + " --ssh MACHINE"
		if cmd.CommandPath() == "sledctl top" {
			advice = "to watch it, run: sledctl --sled " + name + " status --watch; " + advice
		}
		return &UsageError{Text: fmt.Sprintf("%s is reached by its agent, which does not answer %s", name, cmd.CommandPath()), Advice: advice}
	}
	for flag, value := range map[string]string{"agent": s.Agent, "tls-cert": s.Cert, "tls-key": s.Key, "tls-ca": s.CA, "token-file": s.Token} {
		if f := cmd.Flags().Lookup(flag); value != "" && f != nil && !f.Changed {
			if err := cmd.Flags().Set(flag, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// overSSH runs the command line on a sled, on the streams of this one.
// The sledctl there is told how the sled is named here, for the commands that it names.
func overSSH(ctx context.Context, e *Env, name string, s sleds.Sled) error {
	words, at := without(e.Words, "--sled"), 0
	if len(words) > 0 && !strings.HasPrefix(words[0], "-") {
		at = 1 // the first word alone says which commands are made
	}
	words = slices.Insert(words, at, "--known-as", name)
	return runHere(ctx, e, s.Command(words, e.Streams.In.Terminal && e.Streams.Out.Terminal))
}

// runHere runs a program on the streams of this process; the error is its exit code.
func runHere(ctx context.Context, e *Env, words []string) error {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = e.Environ
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.Streams.In.Reader, e.Streams.Out.Writer, e.Streams.Err.Writer
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = endTime
	err := cmd.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && ended.ExitCode() >= 0 {
		return ExitStatus(ended.ExitCode())
	}
	return err
}

// without is a command line without a flag and its value.
func without(words []string, flag string) (rest []string) {
	for i := 0; i < len(words); i++ {
		switch {
		case words[i] == "--":
			return append(rest, words[i:]...)
		case words[i] == flag:
			i++
		case !strings.HasPrefix(words[i], flag+"="):
			rest = append(rest, words[i])
		}
	}
	return rest
}

// ProgramOf are the words that run the sledctl of another sled: of the operator's file, or
// else as ssh knows it.
func ProgramOf(e *Env, name string) ([]string, error) {
	f, err := sleds.Read(e.SledFile())
	if err != nil {
		return nil, err
	}
	s, ok := f.Sleds[name]
	switch {
	case !ok:
		return []string{"ssh", name, "sledctl"}, nil
	case s.SSH != "":
		return s.Command(nil, false), nil
	case s.Agent != "":
		return nil, &UsageError{Text: name + " is reached by its agent, which takes no VM in", Advice: "to reach it by ssh, run: sledctl sled add " + name + " --ssh MACHINE"}
	}
	self, err := os.Executable()
	return []string{self, "--sled", name}, err
}

// OwnProgram is the file of this program on the sled; empty: the sled is simulated, and does
// not have it.
func OwnProgram(e *Env, c config.Config) string {
	if e.HostName() != "illumos" || c.Host.Root != "/" {
		return ""
	}
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	return self
}

// SledFile is the name of the operator's file of sleds.
func (e *Env) SledFile() string {
	return sleds.FileName(func(name string) string { return Variable(e.Environ, name) })
}

// AskSleds asks sleds of the operator's file for their status, and prints what they
// answered. The error is for the exit code of the worst.
func AskSleds(ctx context.Context, e *Env, f sleds.File, names []string) error {
	if err := sleds.List(true, e.Now()).Check(e.Output); err != nil {
		return err
	}
	run := func(ctx context.Context, words []string) (string, string, int, error) {
		answer, err := e.Remote(ctx, words, nil)
		return string(answer.Stdout), string(answer.Stderr), answer.Exit, err
	}
	asked := f.Ask(ctx, run, names)
	if err := sleds.List(true, e.Now()).Print(e.Streams.Out, e.Output, asked); err != nil {
		return err
	}
	switch sleds.Worst(asked) {
	case "ATTENTION":
		return ExitStatus(failure.ExitDifferences)
	case "TROUBLE":
		return ExitStatus(failure.ExitTrouble)
	}
	return nil
}

// CompleteSleds offers the names of the operator's sleds.
func CompleteSleds(e *Env) func(context.Context) []string {
	return func(context.Context) []string {
		f, err := sleds.Read(e.SledFile())
		if err != nil {
			return nil
		}
		return f.Names()
	}
}

// endTime is how long a program is waited for that was told to end: a sledctl
// takes back what it has made.
const endTime = plan.UndoTime + 30*time.Second

// runProgram runs another sled's sledctl, as a process of this one. It stays in the process group of
// this one, although ^C interrupts it too: in a group of its own, ssh would be stopped as soon as it
// reads a password from the terminal (SIGTTIN). The outcome of a request that ends so is unknown, as
// that of one whose connection broke.
// What the program has not read of its input when it ends is left.
func (e *Env) runProgram(ctx context.Context, words []string, in io.Reader) (migration.Answer, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = e.Environ
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &errs
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endTime
	err := cmd.Run()
	answer := migration.Answer{Exit: -1, Stdout: out.Bytes(), Stderr: errs.Bytes()}
	if cmd.ProcessState != nil {
		answer.Exit = cmd.ProcessState.ExitCode()
	}
	if _, ended := errors.AsType[*exec.ExitError](err); ended || cmd.ProcessState != nil && ctx.Err() != nil {
		err = nil
	}
	return answer, err
}
