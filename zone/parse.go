package zone

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ErrSyntax is output or a file that is not what an illumos system writes.
var ErrSyntax = errors.New("not in the form of illumos")

// ParseList reads `zoneadm list -p`: one line per zone,
// id:name:state:zonepath:uuid:brand:ip-type, and on OmniOS and SmartOS a
// debugid; a colon in the zonepath is written "\:" (zone_print of
// usr/src/cmd/zoneadm/zoneadm.c). Columns beyond the eighth are ignored, but
// an eighth that is no debugid is the listing of another system: Oracle Solaris
// 11 prints "-" or a file-mac-profile there. Output that does not end in a
// newline was cut off. Errors are ErrSyntax.
func ParseList(out []byte) ([]Zone, error) {
	if len(out) == 0 {
		return nil, nil
	}
	text, whole := strings.CutSuffix(string(out), "\n")
	if !whole {
		return nil, fmt.Errorf("zone listing is cut off: %w", ErrSyntax)
	}
	lines := strings.Split(text, "\n")
	zones := make([]Zone, 0, len(lines))
	for i, line := range lines {
		z, err := parseZone(line)
		if err != nil {
			return nil, fmt.Errorf("zone listing, line %d: %q: %w", i+1, line, err)
		}
		zones = append(zones, z)
	}
	return zones, nil
}

func parseZone(line string) (Zone, error) {
	f := splitColons(line)
	if len(f) < 7 {
		return Zone{}, fmt.Errorf("%d columns, at least 7 expected: %w", len(f), ErrSyntax)
	}
	z := Zone{Name: f[1], State: State(f[2]), Path: f[3], UUID: f[4], Brand: f[5]}
	switch f[6] {
	case "excl":
		z.IPType = "exclusive"
	case "shared":
		z.IPType = "shared"
	default:
		return Zone{}, fmt.Errorf("ip-type %q: %w", f[6], ErrSyntax)
	}
	if f[0] != "-" {
		id, err := strconv.ParseUint(f[0], 10, 31)
		if err != nil {
			return Zone{}, fmt.Errorf("zone id %q: %w", f[0], ErrSyntax)
		}
		number := int(id)
		z.ID = &number
	}
	if z.Name == "" || z.State == "" || z.Path == "" {
		return Zone{}, fmt.Errorf("a name, state or zonepath is missing: %w", ErrSyntax)
	}
	if len(f) > 7 && strings.Trim(f[7], "0123456789") != "" {
		return Zone{}, fmt.Errorf("debugid %q: %w", f[7], ErrSyntax)
	}
	return z, nil
}

// splitColons splits at colons that no backslash precedes. Package ofmt cannot read
// these lines: zoneadm does not escape a backslash, so one before any other
// character stands for itself, and a path that ends in a backslash looks like one
// that continues with a colon.
func splitColons(line string) []string {
	if !strings.Contains(line, `\:`) {
		return strings.Split(line, ":")
	}
	var fields []string
	var field strings.Builder
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\' && i+1 < len(line) && line[i+1] == ':':
			field.WriteByte(':')
			i++
		case line[i] == ':':
			fields = append(fields, field.String())
			field.Reset()
		default:
			field.WriteByte(line[i])
		}
	}
	return append(fields, field.String())
}

// Entry is a line of /etc/zones/index.
type Entry struct {
	Name  string
	State State // Configured, Incomplete or Installed
	Path  string
	UUID  string
}

// ParseIndex reads /etc/zones/index: name:state:zonepath:uuid, lines that begin
// with # being comments, and the zonepath in double quotes if it holds a colon
// (usr/src/lib/libzonecfg/common/getzoneent.c). The uuid may be missing. Errors
// are ErrSyntax.
func ParseIndex(data []byte) ([]Entry, error) {
	var entries []Entry
	for i, line := range strings.Split(string(data), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		e, err := parseEntry(line)
		if err != nil {
			return nil, fmt.Errorf("zone index, line %d: %q: %w", i+1, line, err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func parseEntry(line string) (Entry, error) {
	name, rest, _ := strings.Cut(line, ":")
	state, rest, found := strings.Cut(rest, ":")
	if !found || name == "" || state == "" {
		return Entry{}, fmt.Errorf("name:state:zonepath:uuid expected: %w", ErrSyntax)
	}
	e := Entry{Name: name, State: State(state)}
	if quoted, ok := strings.CutPrefix(rest, `"`); ok {
		e.Path, rest, found = strings.Cut(quoted, `"`)
		if !found || rest != "" && rest[0] != ':' {
			return Entry{}, fmt.Errorf("a quote is not closed: %w", ErrSyntax)
		}
		e.UUID = strings.TrimPrefix(rest, ":")
	} else {
		e.Path, e.UUID, _ = strings.Cut(rest, ":")
	}
	if e.Path == "" || strings.Contains(e.UUID, ":") {
		return Entry{}, fmt.Errorf("name:state:zonepath:uuid expected: %w", ErrSyntax)
	}
	return e, nil
}

// ParseConfig reads /etc/zones/NAME.xml and gives the name in it too. An absent
// ip-type is shared (usr/src/lib/libzonecfg/dtd/zonecfg.dtd.1). Errors are
// ErrSyntax.
func ParseConfig(data []byte) (string, Config, error) {
	d, err := readDocument(data)
	if err != nil {
		return "", Config{}, fmt.Errorf("zone configuration: %w: %w", ErrSyntax, err)
	}
	c := Config{
		Brand: d.Brand, Zonepath: d.Zonepath, Limitpriv: d.Limitpriv,
		Autoboot: d.Autoboot == "true",
		IPType:   d.IPType,
	}
	if c.IPType == "" {
		c.IPType = "shared"
	}
	if d.Name == "" || c.Zonepath == "" || !slices.Contains([]string{"", "true", "false"}, d.Autoboot) {
		return "", Config{}, fmt.Errorf("zone configuration: name, zonepath or autoboot: %w", ErrSyntax)
	}
	c.CPUCap = capOf(d.Rctls)
	for _, a := range d.Attrs {
		c.Attrs = append(c.Attrs, Attr(a))
	}
	for _, f := range d.FS {
		fs := FS{Dir: f.Directory, Special: f.Special, Type: f.Type}
		for _, o := range f.Options {
			fs.Options = append(fs.Options, o.Name)
		}
		c.FS = append(c.FS, fs)
	}
	for _, n := range d.Nets {
		c.Nets = append(c.Nets, Net(n))
	}
	for _, v := range d.Devices {
		c.Devices = append(c.Devices, v.Match)
	}
	for _, s := range d.Datasets {
		c.Datasets = append(c.Datasets, s.Name)
	}
	return d.Name, c, nil
}
