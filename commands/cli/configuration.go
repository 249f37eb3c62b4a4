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
	source, err := e.ConfigSource()
	if err != nil {
		return config.Config{}, err
	}
	return config.Load(source)
}

// ConfigSource is what the configuration of this run is made of.
func (e *Env) ConfigSource() (config.Source, error) {
	if name := cmp.Or(e.Flags.Config, Variable(e.Environ, "SLEDCTL_CONFIG")); name != "" {
		source, err := ConfigFile(e.Streams, "--config", name)
		source.Env = e.Environ
		return source, err
	}
	source := config.Source{Env: e.Environ, Nearest: naming.Nearest, ParseSize: terminal.ParseSize}
	files, err := e.configFiles()
	if err == nil {
		source.Files, err = e.findConfig(files)
	}
	return source, err
}

// ConfigFile is a configuration of one file and the defaults. The error is one of the command
// or flag that named the file.
func ConfigFile(streams *terminal.Streams, flag, name string) (config.Source, error) {
	data, err := readFor(streams, flag, name)
	return config.Source{Files: []config.File{{Name: name, Data: data}}, Nearest: naming.Nearest, ParseSize: terminal.ParseSize}, err
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
