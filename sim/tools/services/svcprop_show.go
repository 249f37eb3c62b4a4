package services

import (
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world/scf"
)

// groupOperand is an operand that is a property group's or a property's FMRI.
func (s *svcprop) groupOperand(m scf.Match, groups scf.Groups) *cli.Reply {
	g := groups.Find(m.Group)
	fmri := m.FMRI() + "/:properties/" + m.Group
	if g == nil || m.Property != "" && g.Property(m.Property) == nil {
		s.out.Exit = 1
		if !s.quiet {
			operand := fmri
			if m.Property != "" {
				operand += "/" + m.Property
			}
			s.out.Warn("svcprop", noEntity, operand)
		}
		return nil
	}
	switch {
	case m.Property != "":
		s.show(m.Entity, g, g.Property(m.Property))
	case len(s.props) == 0:
		s.showGroup(m.Entity, g)
	}
	for _, p := range s.props {
		if p.property != "" {
			return &cli.Reply{Stderr: fmt.Sprintf("svcprop: -p argument `%s/%s' has too many components for property group `%s'.\n",
				p.group, p.property, fmri), Exit: 2}
		}
		if property := g.Property(p.group); property != nil {
			s.show(m.Entity, g, property)
			continue
		}
		s.missing("Couldn't find property `%s' in property group `%s'.\n", p.group, fmri)
	}
	return nil
}

// showGroup is display_pg(): types from then on.
func (s *svcprop) showGroup(e scf.Entity, g *scf.Group) {
	s.types = true
	for _, p := range g.Properties {
		s.show(e, g, p)
	}
}

// show is display_prop().
func (s *svcprop) show(e scf.Entity, g *scf.Group, p *scf.Property) {
	if s.quiet {
		return
	}
	if s.types {
		name := g.Name + "/" + p.Name
		if s.fmris {
			name = e.FMRI() + "/:properties/" + name
		}
		s.out.Stdout += name + " " + p.Type + " "
	}
	quoted := make([]string, len(p.Values))
	for i, v := range p.Values {
		quoted[i] = quoteForShell(v)
	}
	s.out.Stdout += strings.Join(quoted, " ") + "\n"
}

// quoteForShell is quote_for_shell(): a backslash before the metacharacters of
// the Bourne shell, "" for nothing.
func quoteForShell(value string) string {
	if value == "" {
		return `""`
	}
	var out strings.Builder
	for _, r := range value {
		if strings.ContainsRune(";&()|^<>\n \t\\\"'`", r) {
			out.WriteByte('\\')
		}
		out.WriteRune(r)
	}
	return out.String()
}
