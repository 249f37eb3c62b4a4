package main

import (
	"encoding/json"
	"runtime/debug"
	"strings"
	"time"
)

// component is one of a CycloneDX document (https://cyclonedx.org/docs/1.5/json/).
type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
}

// billOfMaterials is what the program is made of, as Go recorded it in the program itself:
// its modules, those that take the place of others, and Go's own library.
func billOfMaterials(info *debug.BuildInfo, version string, at time.Time) ([]byte, error) {
	of := func(kind, name, version string) component {
		purl := "pkg:golang/" + name + "@" + version
		return component{kind, purl, name, version, purl}
	}
	components := []component{of("library", "std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		components = append(components, of("library", m.Path, m.Version))
	}
	data, err := json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata":   map[string]any{"timestamp": at.Format(time.RFC3339), "component": of("application", info.Main.Path, version)},
		"components": components,
	}, "", "  ")
	return append(data, '\n'), err
}
