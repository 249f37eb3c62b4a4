package cli

import (
	"encoding/hex"
	"fmt"
	"path"
	"strings"

	"github.com/sledctl/sledctl/commands/config"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/illumos/disk"
	"github.com/sledctl/sledctl/illumos/key"
	"github.com/sledctl/sledctl/sled/storage"
)

// StorageSettings are what storage takes from the configuration.
func StorageSettings(c config.Config) (storage.Settings, error) {
	s := storage.Settings{Keys: keys(c), Dir: vdevDir(c), Disks: sources(c.Storage)}
	for _, text := range c.Storage.Datasets {
		custom, err := storage.ParseCustomDataset(text, terminal.ParseSize)
		if err != nil {
			return s, fmt.Errorf("storage.datasets: %w", err)
		}
		s.Custom = append(s.Custom, custom)
	}
	return s, nil
}

// sources are where disks are looked for.
func sources(c config.Storage) []disk.Source {
	var all []disk.Source
	if c.Slots != "none" {
		all = append(all, disk.Detect{Board: c.Slots})
	}
	if len(c.Vdevs) > 0 {
		all = append(all, disk.Vdevs{Dir: c.VdevDir, Names: c.Vdevs})
	}
	var devices disk.Devices
	for _, device := range c.Devices {
		kind, name, _ := strings.Cut(device, ":")
		devices = append(devices, disk.Device{Kind: disk.Kind(kind), Path: name})
	}
	if len(devices) > 0 {
		all = append(all, devices)
	}
	return all
}

// vdevDir is where pools lie on files, if they do.
func vdevDir(c config.Config) string {
	if len(c.Storage.Vdevs) == 0 {
		return ""
	}
	return c.Storage.VdevDir
}

// keys are the keys of encrypted disks, from the configured source.
func keys(c config.Config) *key.Ring {
	dir := path.Join(c.Paths.Run, "key")
	switch how, what, _ := strings.Cut(c.Storage.Key, ":"); how {
	case "development":
		return key.NewRing(key.Development{}, dir)
	case "file":
		return key.NewRing(key.File{Name: what}, dir)
	case "command":
		source := key.Command{Argv: strings.Fields(what)}
		_, _ = hex.Decode(source.Salt[:], []byte(c.Storage.Salt)) // the configuration was checked
		return key.NewRing(source, dir)
	}
	return nil
}

// WarnOfKeys says what the operator must know of the key source.
func (e *Env) WarnOfKeys(s storage.Settings) {
	if s.Keys != nil && s.Keys.Source().Warning() != "" {
		e.book.warn(s.Keys.Source().Warning())
	}
}
