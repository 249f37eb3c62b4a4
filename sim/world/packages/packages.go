// Package packages is what pkg(7) keeps of the system's image, as far as it is simulated:
// each publisher with its origins, and which packages are installed (omniosorg/pkg5,
// src/modules/client).
package packages

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
)

// Image and Catalog are where.
const (
	Image   = "/var/pkg/pkg5.image"
	Catalog = "/var/pkg/state/installed/catalog.base.C"
)

// Server is the server of OmniOS' packages, which answers connections.
const Server = "pkg.omnios.org:443"

// Mirror is a repository on the sled: its first publisher's.
const Mirror = "/var/share/pkg/omnios"

// Publisher is a publisher of packages.
type Publisher struct {
	Name    string
	Origins []string
}

// LayPublishers writes the publishers of the image.
func LayPublishers(files host.Files, all []Publisher) error {
	var b strings.Builder
	var order []string
	b.WriteString("[CONFIGURATION]\nversion = 3\n\n[image]\nversion = 4\n\n")
	for _, p := range all {
		order = append(order, p.Name)
		fmt.Fprintf(&b, "[authority_%s]\nalias = \ndisabled = False\nmirrors = []\norigin = %s\norigins = %s\nprefix = %s\nsticky = True\n\n",
			p.Name, strings.Join(p.Origins[:1], ""), pythonList(p.Origins), p.Name)
	}
	fmt.Fprintf(&b, "[property]\npublisher-search-order = %s\n", pythonList(order))
	return world.Put(files, Image, []byte(b.String()), 0o644)
}

func pythonList(words []string) string {
	if len(words) == 0 {
		return "[]"
	}
	return "['" + strings.Join(words, "', '") + "']"
}

// Publishers reads what LayPublishers has written.
func Publishers(files host.Files) ([]Publisher, error) {
	data, err := host.ReadFile(files, Image)
	if err != nil {
		return nil, err
	}
	var all []Publisher
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if name, is := strings.CutPrefix(line, "[authority_"); is {
			all = append(all, Publisher{Name: strings.TrimSuffix(name, "]")})
		}
		if origins, is := strings.CutPrefix(line, "origins = ['"); is && len(all) > 0 {
			all[len(all)-1].Origins = strings.Split(strings.TrimSuffix(origins, "']"), "', '")
		}
	}
	return all, nil
}

// LayInstalled writes which packages are installed: name and version.
func LayInstalled(files host.Files, publisher string, packages map[string]string) error {
	type version struct {
		Version string `json:"version"`
	}
	content := map[string][]version{}
	for name, v := range packages {
		content[name] = []version{{v + ":20261101T000000Z"}}
	}
	data, err := json.Marshal(map[string]any{publisher: content, "_SIGNATURE": map[string]string{}})
	if err != nil {
		return err
	}
	return world.Put(files, Catalog, append(data, '\n'), 0o644)
}
