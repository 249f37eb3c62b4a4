package description

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// none is given in the place of what is to be removed.
const none = "none"

// orNone is the text of a flag.
func orNone(s string) *string {
	if s == none {
		s = ""
	}
	return &s
}

// cloudInit is what is wanted by the flags, with what the guest is to be told read from its files.
func (f Flags) cloudInit(streams *terminal.Streams) (instance.Wanted, error) {
	w := f.Wanted
	stdin := ""
	for _, flag := range []struct{ name, file string }{
		{"--file", f.File}, {"--spec", f.Spec}, {"--cloud-init", f.CloudInit}, {"--network-config", f.NetworkConfig},
	} {
		if flag.file != "-" {
			continue
		}
		if stdin != "" {
			return w, &cli.UsageError{Text: fmt.Sprintf("%s and %s cannot both be standard input", stdin, flag.name)}
		}
		stdin = flag.name
	}
	var err error
	if w.CloudInit.UserData, err = textOf(streams, "--cloud-init", f.CloudInit); err != nil {
		return w, err
	}
	if w.CloudInit.NetworkConfig, err = textOf(streams, "--network-config", f.NetworkConfig); err != nil {
		return w, err
	}
	switch {
	case len(f.SSHKeys) == 1 && f.SSHKeys[0] == none:
		w.CloudInit.SSHKeys = []string{}
	case len(f.SSHKeys) > 0:
		w.CloudInit.SSHKeys, err = keysOf(streams, "--ssh-key", f.SSHKeys, func(name string) string { return name })
	}
	return w, err
}

// textOf is what a file has; nil: none is given.
func textOf(streams *terminal.Streams, flag, file string) (*string, error) {
	switch file {
	case "":
		return nil, nil
	case none:
		return orNone(none), nil
	}
	data, err := cli.ReadDocument(streams, flag, file)
	text := string(data)
	if err == nil && text == "" {
		return nil, &cli.UsageError{Text: fmt.Sprintf("%s: %s is empty", flag, file), Advice: "to remove what there is, give none"}
	}
	return &text, err
}

// keysOf are the keys that are given, and those of the files.
func keysOf(streams *terminal.Streams, flag string, given []string, at func(file string) string) ([]string, error) {
	keys := []string{}
	for _, s := range given {
		if record.IsSSHKey(s) {
			keys = append(keys, s)
			continue
		}
		data, err := cli.ReadDocument(streams, flag, at(s))
		if err != nil {
			return nil, err
		}
		of, err := record.SSHKeys(string(data))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at(s), err)
		}
		keys = append(keys, of...)
	}
	return keys, nil
}

// Files reads the files with what the guest is to be told that a document names which is in no
// file itself: by paths that start at the working directory.
func Files(streams *terminal.Streams, w instance.Wanted) (instance.Wanted, error) {
	return readCloudInit(streams, "-", w)
}

// readCloudInit reads the files that a document names, by paths that start at its directory.
func readCloudInit(streams *terminal.Streams, document string, w instance.Wanted) (instance.Wanted, error) {
	at := func(name string) string { return relativeTo(document, name) }
	for _, from := range []struct {
		key, file string
		to        **string
	}{
		{"user_data_file", w.CloudInitFiles.UserData, &w.CloudInit.UserData},
		{"network_config_file", w.CloudInitFiles.NetworkConfig, &w.CloudInit.NetworkConfig},
	} {
		if from.file == "" {
			continue
		}
		text, err := textOf(streams, from.key, at(from.file))
		if err != nil {
			return w, err
		}
		*from.to = text
	}
	w.CloudInitFiles = record.CloudInitFiles{}
	var err error
	if w.Crucible, err = readKeys(streams, w.Crucible, at); err != nil {
		return w, err
	}
	if w.CloudInit.SSHKeys == nil {
		return w, nil
	}
	w.CloudInit.SSHKeys, err = keysOf(streams, "ssh_keys", w.CloudInit.SSHKeys, at)
	return w, err
}

// WarnOfUserData warns of user-data whose beginning says no kind to cloud-init, which passes over
// it then (INCLUSION_TYPES_MAP in cloudinit/handlers/__init__.py of canonical/cloud-init).
func WarnOfUserData(progress *cli.Progress, w instance.Wanted) {
	text := w.CloudInit.UserData
	if text == nil || *text == "" || spec.IsSealed(*text) {
		return
	}
	body := *text
	if first, rest, _ := strings.Cut(body, "\n"); strings.HasPrefix(first, "## template: sledctl") {
		body = rest
	}
	for _, kind := range []string{"#!", "#cloud-config", "#cloud-boothook", "#include", "#part-handler", "#upstart-job", "## template:", "Content-Type:", "MIME-Version:", "From "} {
		if strings.HasPrefix(body, kind) {
			return
		}
	}
	progress.Warn(errors.New("cloud-init passes over user-data that does not begin with #cloud-config, #! or another of its kinds"))
}
