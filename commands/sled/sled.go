// Package sled is sledctl sled: the operator's file of sleds.
package sled

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/agent/client"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/sleds"
)

// New is the command sled.
func New(env *cli.Env) *cobra.Command {
	cmd := cli.Group("sled", "List and set the sleds that you work on", `
List and set the sleds that you work on, by name. A sled is reached by ssh, by the URL of its agent, or, a simulated one, in a directory. --sled NAME, or
SLEDCTL_SLED, has any command work on it; without, and without --host and --agent, the current sled is meant. A command that changes
something says so first, and delete, reap --all, storage format and storage forget want the sled named. --sled local is this machine.

sled keeper is about the sled itself: who may place instances on it.

The file is sledctl/sleds.toml in XDG_CONFIG_HOME, or else in ~/.config.`)
	env.Add(cmd, []string{"sled"}, []cli.Word{
		{Name: "list", Make: newList}, {Name: "add", Make: newAdd}, {Name: "use", Make: newUse},
		{Name: "remove", Make: newRemove}, {Name: "test", Make: newTest},
		{Name: "keeper", Make: newKeeper},
	})
	return cmd
}

func newList(env *cli.Env) *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the sleds, and whether they are well",
		Long:    `List the sleds, and whether they are well. It prints how each sled of the file is reached. With --check each is asked for its status, at once; exit 10 or 11 if one is not well.`,
		Example: "  sledctl sled list\n  sledctl sled list --check",
		Args:    cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error {
			f, err := sleds.Read(env.SledFile())
			if err != nil {
				return err
			}
			if check {
				return cli.AskSleds(ctx, env, f, f.Names())
			}
			return list(env, f)
		}),
	}
	cmd.Flags().BoolVar(&check, "check", false, "ask each for its status")
	env.AddOutput(cmd)
	return cmd
}

// list prints how the sleds are reached.
func list(e *cli.Env, f sleds.File) error {
	if err := sleds.List(false, e.Now()).Check(e.Output); err != nil {
		return err
	}
	var all []sleds.Asked
	for _, name := range f.Names() {
		all = append(all, sleds.Asked{Name: name, Way: f.Sleds[name].Way(), Current: name == f.Current})
	}
	return sleds.List(false, e.Now()).Print(e.Streams.Out, e.Output, all)
}

func newAdd(env *cli.Env) *cobra.Command {
	var s sleds.Sled
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Add a sled to the file, or change how it is reached",
		Long: `Add a sled to the file, or change how it is reached. Give one of --ssh, --agent and --host. What follows the machine in --ssh is the
command that runs sledctl there. The first sled that is added becomes the current one.`,
		Example: `  sledctl sled add sled2 --ssh 'root@sled2 pfexec sledctl'
  sledctl sled add sled3 --agent https://sled3.example:12410 --tls-cert me.pem --tls-key me.key --tls-ca ca.pem
  sledctl sled add drill --host sim:/tmp/drill`,
		Args: cobra.ExactArgs(1),
		RunE: env.Run(func(_ context.Context, args []string) error {
			s.Host = env.Flags.Host
			return add(env, args[0], s)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&s.SSH, "ssh", "", "machine as ssh knows it, and the command of its sledctl")
	flags.StringVar(&s.Agent, "agent", "", "agent: http://HOST:PORT, https://HOST:PORT or unix:/NAME")
	flags.StringVar(&s.Cert, "tls-cert", "", "https: PEM `FILE` of the client's certificate")
	flags.StringVar(&s.Key, "tls-key", "", "https: PEM `FILE` of the certificate's key")
	flags.StringVar(&s.CA, "tls-ca", "", "https: PEM `FILE` of the CA that signed the agent's certificate")
	flags.StringVar(&s.Token, "token-file", "", "with --agent: `FILE` with the token, alone or as the agent's own")
	cli.CompleteArgs(cmd, cli.CompleteSleds(env))
	return cmd
}

func add(e *cli.Env, name string, s sleds.Sled) error {
	if err := sleds.CheckName(name); err != nil {
		return &cli.UsageError{Text: err.Error()}
	}
	if err := s.Check(); err != nil {
		return &cli.UsageError{Text: "sled add " + name + ": " + err.Error(), Advice: "give --ssh MACHINE, --agent URL or --host sim:DIR"}
	}
	if s.Agent != "" {
		if _, err := client.New(s.Agent, nil, "", nil); err != nil {
			return &cli.UsageError{Text: "sled add " + name + ": --agent: " + err.Error(), Advice: "give --agent https://HOST:PORT"}
		}
	}
	return change(e, func(f *sleds.File) error {
		if f.Sleds == nil {
			f.Sleds = map[string]sleds.Sled{}
		}
		f.Sleds[name] = s
		if len(f.Sleds) == 1 {
			f.Current = name
		}
		return nil
	})
}

func newUse(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "use NAME", Short: "Make a sled the current one",
		Long:    "Make a sled the current one: that which is meant where none is named. With local, there is none: it is this machine again.",
		Example: "  sledctl sled use sled2\n  sledctl sled use local",
		Args:    cobra.ExactArgs(1),
		RunE: env.Run(func(_ context.Context, args []string) error {
			return change(env, func(f *sleds.File) error {
				if args[0] == sleds.Local {
					f.Current = ""
					return nil
				}
				_, err := f.Find(args[0])
				f.Current = args[0]
				return err
			})
		}),
	}
	cli.CompleteArgs(cmd, cli.CompleteSleds(env))
	return cmd
}

func newRemove(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "remove NAME", Aliases: []string{"rm"}, Short: "Remove a sled from the file",
		Long:    "Remove a sled from the file. Nothing is done to the sled itself.",
		Example: "  sledctl sled remove drill",
		Args:    cobra.ExactArgs(1),
		RunE: env.Run(func(_ context.Context, args []string) error {
			return change(env, func(f *sleds.File) error {
				if _, err := f.Find(args[0]); err != nil {
					return err
				}
				delete(f.Sleds, args[0])
				if f.Current == args[0] {
					f.Current = ""
					env.Progress.Tell(fmt.Sprintf("%s was the current sled: there is none now", args[0]))
				}
				return nil
			})
		}),
	}
	cli.CompleteArgs(cmd, cli.CompleteSleds(env))
	return cmd
}

func newTest(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "test NAME", Short: "Show whether a sled is reached, and is well",
		Example: "  sledctl sled test sled2",
		Args:    cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			f, err := sleds.Read(env.SledFile())
			if err != nil {
				return err
			}
			if _, err := f.Find(args[0]); err != nil {
				return err
			}
			return cli.AskSleds(ctx, env, f, args)
		}),
	}
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, cli.CompleteSleds(env))
	return cmd
}

// change rewrites the file.
func change(e *cli.Env, do func(*sleds.File) error) error {
	f, err := sleds.Read(e.SledFile())
	if err != nil {
		return err
	}
	if err := do(&f); err != nil {
		return err
	}
	return f.Write(e.SledFile())
}
