package smf

import (
	"context"
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
)

// Manifest is what a file with services says, as far as sledctl asks.
type Manifest struct {
	File     string
	Services []string // svc:/NAME of each
	Paths    []string // the PATH of each that sets one, for its methods
}

// ReadManifest reads a manifest. The error is that of a file that cannot be read, or is no
// XML.
func ReadManifest(files host.Files, name string) (Manifest, error) {
	m := Manifest{File: name}
	data, err := host.ReadFile(files, name)
	if err != nil {
		return m, fmt.Errorf("read a manifest: %w", err)
	}
	var document struct {
		Services []struct {
			Name      string `xml:"name,attr"`
			Variables []struct {
				Name  string `xml:"name,attr"`
				Value string `xml:"value,attr"`
			} `xml:"method_context>method_environment>envvar"`
		} `xml:"service"`
	}
	if err := xml.Unmarshal(data, &document); err != nil {
		return m, &ManifestError{File: name, Words: err.Error()}
	}
	for _, s := range document.Services {
		m.Services = append(m.Services, "svc:/"+s.Name)
		for _, v := range s.Variables {
			if v.Name == "PATH" {
				m.Paths = append(m.Paths, v.Value)
			}
		}
	}
	return m, nil
}

// ManifestError is a manifest that SMF does not take.
type ManifestError struct{ File, Words string }

// Error repeats what svccfg says, or the reader of XML.
func (e *ManifestError) Error() string { return e.File + " is not valid: " + e.Words }

func (*ManifestError) Kind() fault.Kind { return fault.Failed }

// Validate asks svccfg whether SMF would take a manifest. Errors: *ManifestError.
//
// Guess svccfg-validates-files: `svccfg validate FILE` exits with 0 and prints nothing for a
// manifest that can be imported, and else says what is wrong on standard error and exits with 1.
// Check: `svccfg validate /lib/svc/manifest/system/zones.xml; echo $?`
func Validate(ctx context.Context, h host.Host, file string) error {
	c := host.Command{Program: "svccfg", Args: []string{"validate", file}, ReadOnly: true}
	r, err := h.Run(ctx, c)
	switch {
	case err != nil:
		return fmt.Errorf("validate %s: %w", file, err)
	case r.Exit != 0 && len(r.Stderr) > 0:
		return &ManifestError{File: file, Words: strings.Join(strings.Fields(string(r.Stderr)), " ")}
	case r.Exit != 0:
		return &host.CommandError{Command: c, Result: r}
	}
	return nil
}
