package propolis

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/instance/secrets"
)

type specShowOptions struct {
	running bool
	version spec.Version
}

func newSpecShow(env *cli.Env) *cobra.Command {
	var o specShowOptions
	cmd := &cobra.Command{
		Use:   "show NAME|UUID",
		Short: "Show the spec that was sent to an instance's Propolis",
		Long: `Show the spec that was sent to an instance's Propolis last; the ledger keeps it as long as the instance. With --running, show
the VM that Propolis reports.

With --api-version sledctl prints the spec as that version writes it, in JSON with nothing around it: other tools can read it, and
instance ensure --spec can, unless it has secrets. What the version cannot express is an error that names it.

sledctl prints neither requests for Crucible volumes, which hold keys, nor the contents of disks in the spec, which are cloud-init's data:
a keyed digest stands for each, the same one as long as the secret is the same.`,
		Example: `  sledctl propolis spec show web1
  sledctl propolis spec show web1 --api-version 5 > web1.json`,
		Args: cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error { return runSpecShow(ctx, env, args[0], o) }),
	}
	cmd.Flags().BoolVar(&o.running, "running", false, "the VM that Propolis has, not the spec that it was sent")
	addVersion(env, cmd, &o.version, "version of the API to print the spec for")
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, env.CompleteInstances)
	return cmd
}

// shownSpec is a spec with where it comes from.
type shownSpec struct {
	Instance   string            `json:"instance"`
	ID         string            `json:"id"`
	PropolisID string            `json:"propolis_id"`
	Source     string            `json:"source"` // sent, running
	Time       *time.Time        `json:"time,omitempty"`
	Spec       spec.InstanceSpec `json:"spec"`

	hide    secrets.Hide // puts digests in the places of secrets
	secrets error        // why another machine's would not have the same digests
}

func runSpecShow(ctx context.Context, e *cli.Env, ref string, o specShowOptions) error {
	if err := componentList().Check(e.Output); err != nil {
		return err
	}
	look := sentSpec
	if o.running {
		look = runningSpec
	}
	s, err := look(ctx, e, ref)
	if err != nil {
		return err
	}
	s.Spec = s.hide(s.Spec)
	switch {
	case o.version != 0:
		return printSpec(e.Streams, s.Spec, o.version)
	case e.Output.Format == terminal.FormatJSON:
		return terminal.List[shownSpec]{Kind: "Spec"}.PrintOne(e.Streams.Out, e.Output, s)
	}
	return componentList().Print(e.Streams.Out, e.Output, componentsOf(s.Spec))
}

// sentSpec is what the instance's Propolis was last asked for.
func sentSpec(ctx context.Context, e *cli.Env, ref string) (shownSpec, error) {
	s, _, err := e.Instances(ctx)
	if err != nil {
		return shownSpec{}, err
	}
	view, err := e.View(ctx)
	if err != nil {
		return shownSpec{}, err
	}
	r, err := s.Find(view, ref)
	if err != nil {
		return shownSpec{}, err
	}
	sent, known, err := record.LoadSent(view, r.ID)
	if err != nil {
		return shownSpec{}, err
	}
	if !known {
		return shownSpec{}, &notSentError{r.Name}
	}
	_, h, err := e.Reach()
	if err != nil {
		return shownSpec{}, err
	}
	hide, secrets := secrets.Hiding(h.Files(), r)
	return shownSpec{
		Instance: r.Name, ID: r.ID, PropolisID: sent.PropolisID, Source: "sent", Time: &sent.Time, Spec: sent.Spec, hide: hide, secrets: secrets,
	}, nil
}

// notSentError is an instance whose Propolis was asked for nothing: it did not
// come so far, or another tool has made it.
type notSentError struct{ name string }

func (e *notSentError) Error() string {
	return fmt.Sprintf("instance %q: nothing is recorded of what its Propolis was asked for", e.name)
}

func (*notSentError) Kind() fault.Kind { return fault.NotFound }

// Hint says how else its machine can be seen.
func (e *notSentError) Hint() string {
	return "to ask Propolis for the VM that it runs, run: sledctl propolis spec show " + e.name + " --running"
}

// runningSpec is what the instance's Propolis has.
func runningSpec(ctx context.Context, e *cli.Env, ref string) (shownSpec, error) {
	client, r, err := e.Propolis(ctx, ref)
	if err != nil {
		return shownSpec{}, err
	}
	d, err := client.Spec(ctx)
	if err != nil {
		return shownSpec{}, absentMachine(err, r)
	}
	if d.Spec == nil {
		return shownSpec{}, fmt.Errorf("the machine of instance %s waits for the source of its migration", r.Name)
	}
	hide, _ := secrets.Hiding(client.Host.Files(), r)
	return shownSpec{Instance: r.Name, ID: d.Properties.ID, PropolisID: r.Incarnation.PropolisID, Source: "running", Spec: *d.Spec, hide: hide}, nil
}

// shownComponent is a part of a spec in one line.
type shownComponent struct {
	Key     string
	Type    string
	Place   string
	Backend string
	Details string
}

func componentList() terminal.List[shownComponent] {
	type column = terminal.Column[shownComponent]
	return terminal.List[shownComponent]{Kind: "Component", Name: func(p shownComponent) string { return p.Key }, Columns: []column{
		{Name: "key", Value: func(p shownComponent) string { return p.Key }},
		{Name: "type", Value: func(p shownComponent) string { return p.Type }},
		{Name: "pci", Value: func(p shownComponent) string { return p.Place }},
		{Name: "backend", Value: func(p shownComponent) string { return p.Backend }},
		{Name: "details", Value: func(p shownComponent) string { return p.Details }},
	}}
}

func componentsOf(s spec.InstanceSpec) []shownComponent {
	board := []string{fmt.Sprintf("%d CPUs", s.Board.CPUs), fmt.Sprintf("%d MiB", s.Board.MemoryMiB), s.Board.Chipset.Type}
	if s.Board.Chipset.Value.PCIe {
		board = append(board, "PCIe")
	}
	if h := s.Board.Hypervisor; h != nil {
		board = append(board, h.Type)
	}
	if s.Board.CPUID != nil {
		board = append(board, fmt.Sprintf("%d CPUID entries", len(s.Board.CPUID.Entries)))
	}
	parts := []shownComponent{{Key: "board", Type: "board", Details: strings.Join(board, ", ")}}
	for _, key := range s.Components.Keys() {
		parts = append(parts, componentOf(key, s.Components[key]))
	}
	if t := s.SMBIOS; t != nil {
		parts = append(parts, shownComponent{Key: "smbios", Type: "smbios", Details: fmt.Sprintf("%s %s, serial number %s", t.Manufacturer, t.Product, t.Serial)})
	}
	return parts
}

func componentOf(key string, c spec.Component) shownComponent {
	p := shownComponent{Key: key, Type: c.Type()}
	if at, ok := spec.Place(c); ok {
		p.Place = at.String()
	}
	readOnly := func(what string, only bool) string {
		if only {
			return what + ", read-only"
		}
		return what
	}
	switch c := c.(type) {
	case spec.NVMeDisk:
		p.Backend, p.Details = c.Backend, "serial number "+strings.TrimRight(string(c.Serial[:]), " \x00")
	case spec.VirtioDisk:
		p.Backend = c.Backend
	case spec.FileStorage:
		p.Details = readOnly(c.Path, c.ReadOnly)
	case spec.BlobStorage:
		p.Details = readOnly("contents of the spec", c.ReadOnly)
	case spec.CrucibleStorage:
		p.Details = readOnly("a Crucible volume", c.ReadOnly)
	case spec.VirtioNIC:
		p.Backend = c.Backend
	case spec.VirtioNetwork:
		p.Details = c.VNIC
	case spec.DLPINetwork:
		p.Details = c.VNIC
	case spec.SoftNPUPort:
		p.Backend, p.Details = c.Backend, c.Link
	case spec.VirtioSocket:
		p.Details = fmt.Sprintf("CID %d", c.CID)
	case spec.SerialPort:
		p.Details = c.Number
	case spec.PCIBridge:
		p.Details = fmt.Sprintf("bus %d", c.Downstream)
	case spec.P9FS:
		p.Details = c.Source + " as " + c.Target
	case spec.BootSettings:
		var order []string
		for _, e := range c.Order {
			order = append(order, e.ID)
		}
		p.Details = strings.Join(order, ", ")
	}
	return p
}
