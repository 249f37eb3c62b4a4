package world

import (
	"errors"
	"io/fs"

	"strings"

	"github.com/sledctl/sledctl/host"
)

// This file keeps /etc/zones as libzonecfg keeps it: the index, a line
// name:state:zonepath:uuid per zone, and a file of XML per zone. Each is
// replaced by a rename, so that a reader sees a whole file.

const (
	zoneDirectory = "/etc/zones/"
	zoneIndex     = zoneDirectory + "index"
)

func zoneFile(name string) string { return zoneDirectory + name + ".xml" }

// SaveZone writes a zone's configuration and its line of the index.
func (tx *Tx) SaveZone(z *Zone) error {
	if err := replaceFile(tx.Files, zoneFile(z.Name), ZoneXML(z.Name, z.Config), 0o644); err != nil {
		return err
	}
	return tx.writeIndex(nil)
}

// LeaveZoneFile leaves of a zone its file alone, which no index names.
func (tx *Tx) LeaveZoneFile(z *Zone) error {
	if err := tx.RemoveZone(z); err != nil {
		return err
	}
	return replaceFile(tx.Files, zoneFile(z.Name), ZoneXML(z.Name, z.Config), 0o644)
}

// writeIndex brings the index up to date: comments and the global zone's line
// stay, the line of a zone is replaced where it stands, that of a zone that is
// gone is dropped, and new zones are added at the end (putzoneent in
// usr/src/lib/libzonecfg/common/getzoneent.c). Renamed has new names by old.
func (tx *Tx) writeIndex(renamed map[string]string) error {
	old, err := host.ReadFile(tx.Files, zoneIndex)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil {
		old = []byte("global:installed:/\n")
	}
	left := map[string]*Zone{}
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
		case strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" || name == GlobalZone:
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
	return replaceFile(tx.Files, zoneIndex, []byte(b.String()), 0o644)
}

func indexLine(z *Zone) string {
	path := z.Config.Zonepath
	if strings.Contains(path, ":") {
		path = `"` + path + `"`
	}
	return z.Name + ":" + z.State + ":" + path + ":" + z.UUID + "\n"
}

// ZoneTemplate reads /etc/zones/NAME.xml, which zonecfg create -t copies: a
// template or any zone's configuration. The error is fs.ErrNotExist where
// there is none, else what is wrong with the document.
func (tx *Tx) ZoneTemplate(name string) (Config, error) {
	data, err := host.ReadFile(tx.Files, zoneFile(name))
	if err != nil {
		return Config{}, err
	}
	_, c, err := ParseZoneXML(data)
	return c, err
}
