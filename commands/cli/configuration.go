package cli

import (
	"cmp"
	"errors"
	"io/fs"
	"sync"

	"github.com/sledctl/sledctl/commands/config"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sled/storage"
)

// Where the configuration is found.

// loadConfig reads the configuration: SLEDCTL_*, then the file in /etc, then the
// one on the M.2s, then defaults; --config names one file for both. A simulated
// sled has its own files, in its own root, so that it never depends on the machine
// that it runs on.
func (e *Env) loadConfig() (config.Config, error) {
	source := config.Source{Env: e.Environ, Nearest: naming.Nearest, ParseSize: terminal.ParseSize}
	name := e.Flags.Config
	if name == "" {
		name = Variable(e.Environ, "SLEDCTL_CONFIG")
	}
	switch {
	case name != "":
		data, err := ReadDocument(e.Streams, "--config", name)
		if err != nil {
			return config.Config{}, err
		}
		source.Files = []config.File{{Name: name, Data: data}}
	default:
		files, err := e.configFiles()
		if err != nil {
			return config.Config{}, err
		}
		if source.Files, err = e.findConfig(files); err != nil {
			return config.Config{}, err
		}
	}
	return config.Load(source)
}

// rereadConfig lets the configuration be read again: M.2s may be there now that
// were not before. What stands in files of theirs changes neither the host nor the
// run directory, which are in use.
func (e *Env) rereadConfig() { e.Config = sync.OnceValues(e.loadConfig) }

// configFiles are the files of the sled, before there is a host.
func (e *Env) configFiles() (host.Files, error) {
	if _, ok := e.SimDir(); ok {
		h, err := e.Host()
		if err != nil {
			return nil, err
		}
		return h.Files(), nil
	}
	root := cmp.Or(Variable(e.Environ, "SLEDCTL_HOST_ROOT"), "/") // the file cannot say where it lies itself
	if dir := Variable(e.Environ, sim.DirVariable); dir != "" && root == sim.Root(dir) {
		if err := openStandIn(e, dir); err != nil {
			return nil, err
		}
		return e.Sled.Host().Files(), nil
	}
	return host.Dir(root), nil
}

// findConfig reads the configuration from where it may lie on the sled.
func (e *Env) findConfig(files host.Files) ([]config.File, error) {
	var found []config.File
	switch data, err := host.ReadFile(files, naming.ConfigFile); {
	case err == nil:
		found = append(found, config.File{Name: naming.ConfigFile, Data: data})
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	kept, err := storage.FindConfiguration(files)
	if err != nil {
		return nil, &UsageError{Text: err.Error(), Advice: "use another one with --config FILE"}
	}
	for _, w := range kept.Warnings {
		e.book.warn(w.Error())
	}
	if kept.Name != "" {
		found = append(found, config.File{Name: kept.Name, Data: kept.Data, Late: true})
	}
	return found, nil
}
