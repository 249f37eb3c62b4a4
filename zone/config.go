package zone

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sledctl/sledctl/host/fault"
)

// Config is the configuration of a zone: the part of zonecfg(8) that sledctl
// sets and reads. What else a configuration holds is not looked at.
type Config struct {
	Brand    string
	Zonepath string // absolute and clean
	IPType   string // "exclusive" or "shared"
	Autoboot bool
	// Limitpriv is the privilege set, "default,sys_dl_config"; empty leaves the
	// brand's own.
	Limitpriv string
	Attrs     []Attr
	FS        []FS
	Nets      []Net
	Devices   []string // what to match below /dev: "/dev/vmm/*"
	Datasets  []string // datasets delegated to the zone
	// CPUCap bounds the processor time of the zone, in hundredths of a processor; 0: none.
	CPUCap int
	// Sum is a digest of the file from which it was read: it tells any change, also of
	// what is not looked at. It is not compared.
	Sum string
}

// Attr is a generic attribute: a mark on the zone that its maker can read back.
type Attr struct {
	Name  string // a letter or digit first, then letters, digits, '-' and '.'
	Type  string // string, int, uint, boolean
	Value string
}

// FS is a file system that is mounted when the zone gets ready.
type FS struct {
	Dir     string // where, inside the zone
	Special string // what: a directory of the global zone for lofs
	Type    string // lofs, zfs, …
	Options []string
}

// Net is a network resource: for an exclusive stack, a link that the zone gets.
type Net struct {
	Physical       string // the link's name
	AllowedAddress string // the only address that the link may use; empty: any
	Defrouter      string // only together with AllowedAddress
	// MAC is what brands that make their links themselves keep of them, as
	// zonecfg writes it; it is only read, and not compared.
	MAC string
}

// ValueError is a value that cannot be given to zonecfg.
type ValueError struct {
	Property string // "brand", "net physical"
	Value    string
	Reason   string
}

// Error names the property, the value and the rule.
func (e *ValueError) Error() string {
	return fmt.Sprintf("zone configuration: %s %q: %s", e.Property, e.Value, e.Reason)
}

func (*ValueError) Kind() fault.Kind { return fault.Failed }

// Validate checks what zonecfg would refuse, or take for something else, before
// it is run: zonecfg is no transaction, and a batch that fails halfway is
// half committed. The error is a *ValueError.
func (c Config) Validate() error {
	checks := []func() error{
		func() error { return required("brand", c.Brand) },
		func() error { return cleanPath("zonepath", c.Zonepath) },
		func() error { return oneOf("ip-type", c.IPType, "exclusive", "shared") },
		func() error { return quotable("limitpriv", c.Limitpriv) },
		func() error { return validCap(c.CPUCap) },
	}
	for _, a := range c.Attrs {
		checks = append(checks, a.validate)
	}
	for _, f := range c.FS {
		checks = append(checks, f.validate)
	}
	for _, n := range c.Nets {
		checks = append(checks, n.validate)
	}
	for _, d := range c.Devices {
		checks = append(checks, func() error { return required("device match", d) })
	}
	for _, d := range c.Datasets {
		checks = append(checks, func() error { return required("dataset name", d) })
	}
	return first(checks...)
}

func (a Attr) validate() error {
	const name = "attr name"
	if err := required(name, a.Name); err != nil {
		return err
	}
	if !alphanumeric(rune(a.Name[0])) {
		return &ValueError{Property: name, Value: a.Name, Reason: "must begin with a letter or a digit"}
	}
	if bad, found := outside(a.Name, "-."); found {
		return &ValueError{Property: name, Value: a.Name, Reason: fmt.Sprintf("%q is not allowed, only letters, digits, '-' and '.'", bad)}
	}
	return first(
		func() error { return oneOf("attr type", a.Type, "string", "int", "uint", "boolean") },
		func() error { return required("attr value", a.Value) },
	)
}

func (f FS) validate() error {
	if err := first(
		func() error { return cleanPath("fs dir", f.Dir) },
		func() error { return required("fs special", f.Special) },
		func() error { return required("fs type", f.Type) },
	); err != nil {
		return err
	}
	for _, o := range f.Options {
		if err := required("fs options", o); err != nil {
			return err
		}
	}
	return nil
}

func (n Net) validate() error {
	if n.Defrouter != "" && n.AllowedAddress == "" {
		return &ValueError{Property: "net defrouter", Value: n.Defrouter, Reason: "needs an allowed-address"}
	}
	return first(
		func() error { return required("net physical", n.Physical) },
		func() error { return quotable("net allowed-address", n.AllowedAddress) },
		func() error { return quotable("net defrouter", n.Defrouter) },
	)
}

func first(checks ...func() error) error {
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func required(property, value string) error {
	if value == "" {
		return &ValueError{Property: property, Value: value, Reason: "empty"}
	}
	return quotable(property, value)
}

func oneOf(property, value string, words ...string) error {
	if slices.Contains(words, value) {
		return nil
	}
	return &ValueError{Property: property, Value: value, Reason: "must be one of " + strings.Join(words, ", ")}
}

func cleanPath(property, value string) error {
	if !path.IsAbs(value) || path.Clean(value) != value || value == "/" {
		return &ValueError{Property: property, Value: value, Reason: "must be an absolute path without doubled or trailing slashes, and not /"}
	}
	return quotable(property, value)
}

// quotable refuses what cannot stand between zonecfg's quotes: they have no
// escape, and end at a newline (usr/src/cmd/zonecfg/zonecfg_lex.l). Other
// control characters and broken UTF-8 would not survive the XML.
func quotable(property, value string) error {
	reason := ""
	switch {
	case strings.Contains(value, `"`):
		reason = "zonecfg cannot take a value with a double quote"
	case strings.Contains(value, "\n"):
		reason = "zonecfg cannot take a value with a newline"
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }):
		reason = "control characters are not allowed"
	case !utf8.ValidString(value):
		reason = "is not UTF-8"
	default:
		return nil
	}
	return &ValueError{Property: property, Value: value, Reason: reason}
}

// WithCap is the configuration with another cap.
func (c Config) WithCap(hundredths int) Config {
	c.CPUCap = hundredths
	return c
}

// Difference is one property in which two configurations differ.
type Difference struct {
	Property      string
	Wanted, Found string // as text; empty: not there
}

// Compare says in what found differs from wanted; the order of resources and
// of mount options does not count.
func Compare(wanted, found Config) []Difference {
	var out []Difference
	differ := func(property, w, f string) {
		if w != f {
			out = append(out, Difference{Property: property, Wanted: w, Found: f})
		}
	}
	differ("brand", wanted.Brand, found.Brand)
	differ("zonepath", wanted.Zonepath, found.Zonepath)
	differ("ip-type", wanted.IPType, found.IPType)
	differ("autoboot", strconv.FormatBool(wanted.Autoboot), strconv.FormatBool(found.Autoboot))
	differ("limitpriv", wanted.Limitpriv, found.Limitpriv)
	if !slices.Equal(wanted.Attrs, found.Attrs) { // most are, and texts are dear
		differ("attr", texts(wanted.Attrs, Attr.text), texts(found.Attrs, Attr.text))
	}
	if !slices.EqualFunc(wanted.FS, found.FS, FS.equal) {
		differ("fs", texts(wanted.FS, FS.text), texts(found.FS, FS.text))
	}
	if !slices.Equal(wanted.Nets, found.Nets) {
		differ("net", texts(wanted.Nets, Net.text), texts(found.Nets, Net.text))
	}
	differ("device", texts(wanted.Devices, strconv.Quote), texts(found.Devices, strconv.Quote))
	differ(CPUCap, capText(wanted.CPUCap), capText(found.CPUCap))
	differ("dataset", texts(wanted.Datasets, strconv.Quote), texts(found.Datasets, strconv.Quote))
	return out
}

func texts[T any](resources []T, text func(T) string) string {
	all := make([]string, len(resources))
	for i, r := range resources {
		all[i] = text(r)
	}
	slices.SortFunc(all, cmp.Compare)
	return strings.Join(all, " ")
}

func (a Attr) text() string {
	return fmt.Sprintf("(name=%q,type=%q,value=%q)", a.Name, a.Type, a.Value)
}

func (f FS) text() string {
	options := slices.Sorted(slices.Values(f.Options))
	return fmt.Sprintf("(dir=%q,special=%q,type=%q,options=%q)", f.Dir, f.Special, f.Type, options)
}

func (f FS) equal(other FS) bool {
	return f.Dir == other.Dir && f.Special == other.Special && f.Type == other.Type && slices.Equal(f.Options, other.Options)
}

func (n Net) text() string {
	return fmt.Sprintf("(physical=%q,allowed-address=%q,defrouter=%q)", n.Physical, n.AllowedAddress, n.Defrouter)
}

// MismatchError is a configuration that was written and read back differently.
type MismatchError struct {
	Zone        string
	Differences []Difference
}

// Error names the first property that differs, and how many more do.
func (e *MismatchError) Error() string {
	d := e.Differences[0]
	more := ""
	if n := len(e.Differences) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Sprintf("zone %s: zonecfg wrote something else: %s is %s, wanted %s%s",
		e.Zone, d.Property, cmp.Or(d.Found, "absent"), cmp.Or(d.Wanted, "absent"), more)
}

func (*MismatchError) Kind() fault.Kind { return fault.Failed }
