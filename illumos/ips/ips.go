// Package ips reads what IPS keeps about the packages of the system: its publishers, and
// what is installed. It reads the files below /var/pkg: pkg(1) takes a second to begin.
package ips

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// Where the image of the system is described (omniosorg/pkg5, src/modules/client/image.py).
//
// Guess pkg-image-file: `/var/pkg/pkg5.image` has a section `[authority_NAME]` for each publisher,
// whose lists are written as Python prints them, e.g. `origins = ['https://…']`.
// Check: `cat /var/pkg/pkg5.image`
//
// Guess pkg-installed-catalog: `/var/pkg/state/installed/catalog.base.C` is JSON that has, by
// publisher and name of the package, a list of versions.
// Check: `head -c 300 /var/pkg/state/installed/catalog.base.C`
const (
	imageFile   = "/var/pkg/pkg5.image"
	catalogFile = "/var/pkg/state/installed/catalog.base.C"
)

// Publisher is a publisher of packages that is not disabled.
type Publisher struct {
	Name    string
	Origins []string // URLs
}

// Publishers lists the publishers that are not disabled, in the order in which packages
// are searched. Without an image there are none.
func Publishers(files host.Files) ([]Publisher, error) {
	data, err := host.ReadFile(files, imageFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the publishers: %w", err)
	}
	return ParsePublishers(string(data)), nil
}

// ParsePublishers reads the description of an image.
func ParsePublishers(text string) []Publisher {
	var all []Publisher
	var order []string
	for name, properties := range sections(text) {
		if name == "property" {
			order = list(properties["publisher-search-order"])
		}
		publisher, is := strings.CutPrefix(name, "authority_")
		if !is || strings.EqualFold(properties["disabled"], "true") {
			continue
		}
		origins := list(properties["origins"])
		if one := properties["origin"]; len(origins) == 0 && one != "" && one != "None" {
			origins = []string{one}
		}
		all = append(all, Publisher{Name: publisher, Origins: origins})
	}
	place := func(p Publisher) int {
		if i := slices.Index(order, p.Name); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortFunc(all, func(a, b Publisher) int {
		if d := place(a) - place(b); d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	return all
}

// sections reads a file of sections, whose lines that begin with a blank continue the one
// before.
func sections(text string) map[string]map[string]string {
	all := map[string]map[string]string{}
	var in map[string]string
	var last string
	for line := range strings.Lines(text) {
		name, value, is := strings.Cut(line, "=")
		switch {
		case strings.HasPrefix(line, "["):
			in = map[string]string{}
			all[strings.Trim(strings.TrimSpace(line), "[]")] = in
		case in == nil:
		case strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t"):
			in[last] += " " + strings.TrimSpace(line)
		case is:
			last = strings.TrimSpace(name)
			in[last] = strings.TrimSpace(value)
		}
	}
	return all
}

// list reads a list of words as Python prints it.
func list(value string) []string {
	inside, opens := strings.CutPrefix(strings.TrimSpace(value), "[")
	inside, closes := strings.CutSuffix(inside, "]")
	if !opens || !closes {
		return nil
	}
	var words []string
	for word := range strings.SplitSeq(inside, ",") {
		if word = strings.Trim(strings.TrimSpace(word), `'"`); word != "" {
			words = append(words, word)
		}
	}
	return words
}

// Installed is the version of a package that is installed, without its timestamp; empty:
// it is not installed.
func Installed(files host.Files, name string) (string, error) {
	data, err := host.ReadFile(files, catalogFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	var all map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		return "", fmt.Errorf("read the installed packages: %w", err)
	}
	for publisher, raw := range all {
		var packages map[string][]struct {
			Version string `json:"version"`
		}
		if strings.HasPrefix(publisher, "_") { // the catalog's own signature
			continue
		}
		if err := json.Unmarshal(raw, &packages); err != nil {
			return "", fmt.Errorf("read the installed packages of %s: %w", publisher, err)
		}
		for _, p := range packages[name] {
			version, _, _ := strings.Cut(p.Version, ":")
			return version, nil
		}
	}
	return "", nil
}
