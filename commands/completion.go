package commands

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
)

// bashCompletion is cobra's script, which also works where the package bash-completion
// is not: on a sled.
func bashCompletion(root *cobra.Command, out io.Writer) error {
	var script bytes.Buffer
	if err := root.GenBashCompletionV2(&script, true); err != nil {
		return err
	}
	const theirs = `_get_comp_words_by_ref "$@" cur prev words cword`
	if !bytes.Contains(script.Bytes(), []byte(theirs)) {
		return errors.New("completion: the script for bash has another form than expected")
	}
	_, err := out.Write(bytes.Replace(script.Bytes(), []byte(theirs), []byte(bashWords), 1))
	return err
}

// bashWords parts the line up to the cursor at blanks, where bash itself would also do so at
// = and :.
const bashWords = `if declare -F _get_comp_words_by_ref >/dev/null; then
        _get_comp_words_by_ref "$@" cur prev words cword
        return
    fi
    local line=${COMP_LINE:0:COMP_POINT}
    read -ra words <<<"$line"
    if [[ $line == *[[:blank:]] ]]; then
        words+=('')
    fi
    cword=$((${#words[@]} - 1)) cur=${words[${#words[@]} - 1]} prev=${words[${#words[@]} - 2]}`

func newCompletion(env *cli.Env) *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use:       "completion bash|zsh|fish",
		Short:     "Print a shell's completion script",
		Long:      `Print a shell's completion script. It completes subcommands, flags, and the names of existing instances, zones and VNICs.`,
		Example:   `  sledctl completion bash > /etc/bash_completion.d/sledctl`,
		Args:      cobra.ExactArgs(1),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), env.Streams.Out
			switch args[0] {
			case "bash":
				return bashCompletion(root, out)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			}
			return &cli.UsageError{Text: "completion: unknown shell \"" + args[0] + "\"", Advice: "give one of " + strings.Join(shells, ", ")}
		},
	}
}
