// Package figures writes pages that Prometheus reads, in its text format 0.0.4
// (prometheus.io/docs/instrumenting/exposition_formats).
package figures

import (
	"fmt"
	"strconv"
	"strings"
)

// Page is a page of figures.
type Page struct{ text strings.Builder }

// String is the page.
func (p *Page) String() string { return p.text.String() }

// Family opens the figures of one name.
func (p *Page) Family(name, kind, help string) {
	fmt.Fprintf(&p.text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// Sample is one figure, with names and values of labels.
func (p *Page) Sample(name string, value float64, labels ...string) {
	p.text.WriteString(name)
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	for i := 0; i+1 < len(labels); i += 2 {
		fmt.Fprintf(&p.text, `%s%s="%s"`, map[bool]string{true: "{", false: ","}[i == 0], labels[i], escape.Replace(labels[i+1]))
	}
	if len(labels) > 0 {
		p.text.WriteByte('}')
	}
	fmt.Fprintf(&p.text, " %s\n", strconv.FormatFloat(value, 'g', -1, 64))
}

// One is a family of one figure without labels.
func (p *Page) One(name, kind, help string, value float64) {
	p.Family(name, kind, help)
	p.Sample(name, value)
}
