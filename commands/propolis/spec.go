package propolis

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance"
)

func newSpec(env *cli.Env) *cobra.Command {
	cmd := cli.Group("spec", "Show, compare, check and convert VM specs", `
A spec describes a VM to a Propolis server: its board, and its components by their keys. sledctl builds it from an instance's flags, or
reads a complete one: in JSON, or as a config in the TOML of propolis-cli. docs/spec.md describes both, and what makes a server refuse a
spec or crash.`)
	cmd.AddCommand(newSpecShow(env), newSpecDiff(env), newSpecValidate(env), newSpecConvert(env))
	return cmd
}

// versionFlag is a version of the API; 0: none was asked for.
type versionFlag struct{ value *spec.Version }

func (f versionFlag) String() string {
	if f.value == nil || *f.value == 0 {
		return ""
	}
	return f.value.String()
}
func (versionFlag) Type() string { return "version" }
func (f versionFlag) Set(s string) (err error) {
	*f.value, err = spec.ParseVersion(s)
	return err
}

func addVersion(env *cli.Env, cmd *cobra.Command, v *spec.Version, usage string) {
	cmd.Flags().Var(versionFlag{v}, "api-version", usage)
	env.Complete(cmd, "api-version", func() []string {
		var all []string
		for _, v := range spec.Versions() {
			all = append(all, v.String())
		}
		return all
	})
}

// printSpec prints a spec as a version of the API writes it.
func printSpec(streams *terminal.Streams, s spec.InstanceSpec, v spec.Version) error {
	at, err := s.At(v)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(at); err != nil {
		return err
	}
	_, err = streams.Out.Write(b.Bytes())
	return err
}

// setBoard fills in what a config need not say, as it is for an instance.
func setBoard(e *cli.Env, d *spec.Document, w instance.Wanted) error {
	c, err := e.Config()
	if err != nil {
		return err
	}
	b := &d.Spec.Board
	if w.CPUs != nil || !d.CPUs {
		n := c.Instance.CPUs
		if w.CPUs != nil {
			n = *w.CPUs
		}
		if n < 0 || n > 255 {
			return &cli.UsageError{Text: fmt.Sprintf("--cpus: %d is not from 1 to %d", n, spec.MaxCPUs)}
		}
		b.CPUs = uint8(n)
	}
	if w.Memory != nil || !d.Memory {
		n := uint64(c.Instance.Memory)
		if w.Memory != nil {
			n = *w.Memory
		}
		if n%(1<<20) != 0 {
			return &cli.UsageError{Text: fmt.Sprintf("--memory: %d bytes are not a multiple of 1M", n)}
		}
		b.MemoryMiB = n >> 20
	}
	return nil
}

// problemList is what is wrong with a spec.
func problemList() terminal.List[spec.Problem] {
	type column = terminal.Column[spec.Problem]
	return terminal.List[spec.Problem]{Kind: "Problem", Name: func(p spec.Problem) string { return p.Path }, Columns: []column{
		{Name: "line", Value: func(p spec.Problem) string { return fmt.Sprint(p.Line) }, Right: true},
		{Name: "path", Value: func(p spec.Problem) string { return p.Path }},
		{Name: "problem", Value: func(p spec.Problem) string { return p.What }},
	}}
}
