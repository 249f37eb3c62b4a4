package zones

import (
	"errors"
	"io/fs"

	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
)

// This file keeps /etc/zones as libzonecfg keeps it: the index, a line
// name:state:zonepath:uuid per zone, and a file of XML per zone. Each is
// replaced by a rename, so that a reader sees a whole file.

const (
	zoneDirectory = "/etc/zones/"
	ZoneIndex     = zoneDirectory + "index"
)

func ZoneFile(name string) string { return zoneDirectory + name + ".xml" }

// SaveZone writes a zone's configuration and its line of the index.
func SaveZone(tx *world.Tx, z *world.Zone) error {
	if err := world.ReplaceFile(tx.Files, ZoneFile(z.Name), ZoneXML(z.Name, z.Config), 0o644); err != nil {
		return err
	}
	return writeIndex(tx, nil)
}

// LeaveZoneFile leaves of a zone its file alone, which no index names.
func LeaveZoneFile(tx *world.Tx, z *world.Zone) error {
	if err := RemoveZone(tx, z); err != nil {
		return err
	}
	return world.ReplaceFile(tx.Files, ZoneFile(z.Name), ZoneXML(z.Name, z.Config), 0o644)
}

// writeIndex brings the index up to date: comments and the global zone's line
// stay, the line of a zone is replaced where it stands, that of a zone that is
// gone is dropped, and new zones are added at the end (putzoneent in
// usr/src/lib/libzonecfg/common/getzoneent.c). Renamed has new names by old.
func writeIndex(tx *world.Tx, renamed map[string]string) error {
	old, err := host.ReadFile(tx.Files, ZoneIndex)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil {
		old = []byte("global:installed:/\n")
	}
	left := map[string]*world.Zone{}
	for _, z := range tx.State.Zones {
		left[z.Name] = z
	}
	var b strings.Builder
	for line := range strings.Lines(string(old)) {
		name, _, _ := strings.Cut(strings.TrimRight(line, "\n"), ":")
		if now, ok := renamed[name]; ok {
			name = now
		}
		z := left[name]
		switch {
		case strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" || name == world.GlobalZone:
			b.WriteString(line)
		case z != nil:
			b.WriteString(indexLine(z))
			delete(left, name)
		}
	}
	for _, z := range tx.State.Zones {
		if left[z.Name] == z {
			b.WriteString(indexLine(z))
		}
	}
	return world.ReplaceFile(tx.Files, ZoneIndex, []byte(b.String()), 0o644)
}

func indexLine(z *world.Zone) string {
	path := z.Config.Zonepath
	if strings.Contains(path, ":") {
		path = `"` + path + `"`
	}
	return z.Name + ":" + z.State + ":" + path + ":" + z.UUID + "\n"
}

// ZoneTemplate reads /etc/zones/NAME.xml, which zonecfg create -t copies: a
// template or any zone's configuration. The error is fs.ErrNotExist where
// there is none, else what is wrong with the document.
func ZoneTemplate(tx *world.Tx, name string) (world.Config, error) {
	data, err := host.ReadFile(tx.Files, ZoneFile(name))
	if err != nil {
		return world.Config{}, err
	}
	_, c, err := ParseZoneXML(data)
	return c, err
}
