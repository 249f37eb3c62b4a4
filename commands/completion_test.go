package commands

import (
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sledctl/sledctl/commands/cli"
)

// free are the arguments that only their user knows.
var free = map[string]string{
	"sledctl vnic create":       "the name of a new VNIC",
	"sledctl sim napi request":  "a method and a path of HTTP",
	"sledctl sim nexus request": "a method and a path of HTTP",
	"sledctl sim nexus place":   "the names of new instances",
}

// What names something that exists can be completed.
func TestEveryArgumentIsCompleted(t *testing.T) {
	env, _, _ := On(nil, nil)
	env.Completing = true
	seen := 0
	for cmd := range everyCommand(newRoot(env)) {
		words := strings.Fields(strings.TrimSuffix(cmd.UseLine(), "[flags]"))[len(strings.Fields(cmd.CommandPath())):]
		if !cmd.Runnable() || cmd.HasSubCommands() || len(words) == 0 || strings.HasPrefix(words[0], "--") || len(cmd.ValidArgs) > 0 {
			continue
		}
		seen++
		offers := cmd.ValidArgsFunction != nil && reflect.ValueOf(cmd.ValidArgsFunction).Pointer() != reflect.ValueOf(cobra.NoFileCompletions).Pointer()
		files := cmd.ValidArgsFunction == nil // what a shell does by itself
		if !offers && !files && free[cmd.CommandPath()] == "" {
			t.Errorf("%s: its arguments are not completed", cmd.UseLine())
		}
	}
	if seen < 30 {
		t.Errorf("only %d commands with arguments", seen)
	}
}

// A shell offers the names of files by itself, unless it is told not to.
func TestFileNamesAreOfferedOnlyForFiles(t *testing.T) {
	env, _, _ := On(nil, nil)
	env.Completing = true
	files, others := 0, 0
	for cmd := range everyCommand(newRoot(env)) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.NoOptDefVal != "" || f.Hidden || f.Annotations[cli.Belongs] != nil {
				return
			}
			kind, text := pflag.UnquoteUsage(f)
			_, quiet := cmd.GetFlagCompletionFunc(f.Name)
			if strings.Contains(kind, "NAME|PATH") { // files where no name fits: the script completion
				return
			}
			isFile := strings.Contains(kind, "FILE") || strings.Contains(kind, "PATH")
			if quiet == isFile {
				t.Errorf("%s --%s %s: files are offered is %v", cmd.CommandPath(), f.Name, kind, !quiet)
			}
			if strings.Contains(text, "PEM file") {
				t.Errorf("%s --%s: write PEM `FILE`", cmd.CommandPath(), f.Name)
			}
			if isFile {
				files++
			} else {
				others++
			}
		})
	}
	if files < 10 || others < 100 {
		t.Errorf("%d flags of files, %d others", files, others)
	}
}

// everyCommand is a command and all below it.
func everyCommand(cmd *cobra.Command) func(func(*cobra.Command) bool) {
	return func(yield func(*cobra.Command) bool) { visitCommands(cmd, yield) }
}

func visitCommands(cmd *cobra.Command, yield func(*cobra.Command) bool) bool {
	if !yield(cmd) {
		return false
	}
	for _, c := range cmd.Commands() {
		if !visitCommands(c, yield) {
			return false
		}
	}
	return true
}
