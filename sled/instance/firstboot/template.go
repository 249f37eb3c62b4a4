package firstboot

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"

	"github.com/sledctl/sledctl/propolis/cidata"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// A text whose first line is this one is a template of Go's text/template; the line itself is left
// out. Without it a text stays as it is: user-data is full of braces that are others', those of
// Jinja's ("## template: jinja") for example.
const marker = "## template: sledctl"

// guest is what a template can name.
type guest struct {
	Name, ID, Hostname string
	SSHKeys            []string
	NICs               []nic
}

// nic is a guest NIC.
type nic struct {
	MAC     string
	VLAN    int      // 0: none
	AllowIP []string // the addresses that it may send from; none: any
}

func guestOf(r record.Record) guest {
	g := guest{Name: r.Name, ID: r.ID, Hostname: cmp.Or(r.Spec.CloudInit.Hostname, r.Name), SSHKeys: r.Spec.CloudInit.SSHKeys}
	for _, n := range r.Spec.NICs {
		g.NICs = append(g.NICs, nic{MAC: n.MAC, VLAN: n.VLAN, AllowIP: n.AllowIP})
	}
	return g
}

// fill fills a text in, if it is a template. The error names the line, and quotes nothing that
// may be secret.
func fill(field, text string, g guest) (string, error) {
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimSpace(first) != marker {
		return text, nil
	}
	t, err := template.New("").Option("missingkey=error").Parse(rest)
	var filled bounded
	if err == nil {
		err = t.Execute(&filled, g)
	}
	if err == nil {
		return filled.String(), nil
	}
	bad := &record.InputError{Field: field, Value: "line " + lineOf(err), Want: "a template as Go's text/template has them, over " + fields}
	missing := regexp.MustCompile(`can't evaluate field (\w+)`).FindStringSubmatch(err.Error())
	switch {
	case errors.Is(err, errTooLong):
		bad.Want = fmt.Sprintf("a template that makes at most %d bytes", cidata.MaxSize)
	case missing != nil:
		bad.Value += ": field " + missing[1]
		bad.Want = "one of " + fields
	case strings.Contains(err.Error(), "index out of range"):
		bad.Want = fmt.Sprintf("an index of its NICs, of which there are %d, or of its SSH keys, %d", len(g.NICs), len(g.SSHKeys))
	}
	return "", bad
}

// fields are those that a template can name.
const fields = "Name, ID, Hostname, SSHKeys and NICs, each with MAC, VLAN and AllowIP"

// lineOf is the line of the whole text, with the marker.
func lineOf(err error) string {
	found := regexp.MustCompile(`^template: :(\d+)`).FindStringSubmatch(err.Error())
	n := 0
	if found != nil {
		_, _ = fmt.Sscan(found[1], &n) // digits
	}
	return fmt.Sprint(n + 1)
}

var errTooLong = errors.New("too long")

// bounded is what a template has made so far.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > cidata.MaxSize {
		return 0, errTooLong
	}
	return b.Buffer.Write(p)
}
