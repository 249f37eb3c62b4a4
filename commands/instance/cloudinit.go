package instance

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/instance/comparison"
)

// toldFiles is the cloud-init data of a guest, as it is printed.
type toldFiles struct {
	Name          string `json:"name"`
	Given         bool   `json:"given"` // to its VM
	MetaData      string `json:"meta_data"`
	UserData      string `json:"user_data"`
	NetworkConfig string `json:"network_config,omitempty"`
}

// printTold prints the cloud-init data of an instance, secrets too: it is asked for by name.
func printTold(ctx context.Context, e *cli.Env, ref string) error {
	s, env, err := e.Instances(ctx)
	if err != nil {
		return err
	}
	view, err := e.View(ctx)
	if err != nil {
		return err
	}
	told, err := comparison.LookTold(ctx, s, env, view, ref)
	if err != nil {
		return err
	}
	shown := toldFiles{
		Name: told.Name, Given: told.Given, MetaData: string(told.Files.MetaData), UserData: string(told.Files.UserData),
		NetworkConfig: string(told.Files.NetworkConfig),
	}
	if e.Output.Format == terminal.FormatJSON {
		list := terminal.List[toldFiles]{Kind: "CloudInit", Name: func(t toldFiles) string { return t.Name }}
		return list.PrintOne(e.Streams.Out, e.Output, shown)
	}
	if !told.Given {
		e.Progress.Tell("not given to a VM yet: what follows is for the next bring-up")
	}
	for i, file := range []struct{ name, text string }{{"meta-data", shown.MetaData}, {"user-data", shown.UserData}, {"network-config", shown.NetworkConfig}} {
		if file.text == "" {
			continue
		}
		before := ""
		if i > 0 {
			before = "\n"
		}
		text := strings.TrimSuffix(file.text, "\n")
		if e.Streams.Out.Terminal {
			text = withoutControls(text)
		}
		if _, err := fmt.Fprintf(e.Streams.Out, "%s==> %s <==\n%s\n", before, file.name, text); err != nil {
			return err
		}
	}
	return nil
}

// withoutControls keeps a text from moving the cursor.
func withoutControls(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return '?'
		}
		return r
	}, text)
}
