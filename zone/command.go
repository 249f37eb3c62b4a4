package zone

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// Where these lines differ from the sled agent's, it is on purpose. zonecfg
// gets create -b without -F, because -F would overwrite a zone that somebody
// else made (but see overwriting), and every value is quoted, because words such as net, name or fs
// are keywords when they are not. The sled agent lists with -cip; -i adds
// nothing to -c.

func listCommand() host.Command {
	return host.Command{Program: "zoneadm", Args: []string{"list", "-cp"}, ReadOnly: true}
}

func zoneadm(name string, args ...string) host.Command {
	return host.Command{Program: "zoneadm", Args: append([]string{"-z", name}, args...)}
}

func cloneCommand(name, source string) host.Command { return zoneadm(name, "clone", source) }
func bootCommand(name string) host.Command          { return zoneadm(name, "boot") }
func haltCommand(name string) host.Command          { return zoneadm(name, "halt") }
func unmountCommand(name string) host.Command       { return zoneadm(name, "unmount") }
func uninstallCommand(name string) host.Command     { return zoneadm(name, "uninstall", "-F") }

func deleteCommand(name string) host.Command {
	return host.Command{Program: "zonecfg", Args: []string{"-z", name, "delete", "-F"}}
}

// hookMax bounds the line that zoneadm makes for a brand's hook: MAXPATHLEN in
// do_subproc's callers (usr/src/cmd/zoneadm/zoneadm.c).
//
// Guess brand-takes-512-bytes: 512 bytes of arguments fit on the line that zoneadm gives
// to the brand, whose own share is not known.
// Check: `zoneadm -z ZONE install` with long image names
const hookMax = 1024

// installCommand refuses arguments that would not reach the brand's hook as
// they are: zoneadm pastes them unquoted into a line for sh -c.
func installCommand(name string, args []string) (host.Command, error) {
	length := 0
	for _, a := range args {
		length += 1 + len(a)
		if bad, found := outside(a, "@%_+=:,./-"); a == "" || found {
			reason := "empty"
			if found {
				reason = fmt.Sprintf("%q cannot be passed to a brand", bad)
			}
			return host.Command{}, &ValueError{Property: "install argument", Value: a, Reason: reason}
		}
	}
	// The hook's own path and the zone's name and path take their share.
	if length > hookMax/2 {
		return host.Command{}, &ValueError{
			Property: "install argument", Value: strings.Join(args, " "),
			Reason: fmt.Sprintf("%d bytes together, at most %d are allowed", length, hookMax/2),
		}
	}
	return zoneadm(name, append([]string{"install"}, args...)...), nil
}

// configureCommand is one zonecfg process that makes the whole configuration.
// The attrs come first: they say whose the zone is.
//
// Guess zonecfg-takes-quoted-batch: one `zonecfg` takes `create -b ; …` with every value in double
// quotes, and `set options=["ro","nodevices"]` (zonecfg_lex.l, zonecfg_grammar.y).
// Check: the zonecfg line of `sledctl zone create --instance web1 --explain`, then
// `zonecfg -z ZONE export`
func configureCommand(name string, c Config) (host.Command, error) {
	if err := ValidateName(name); err != nil {
		return host.Command{}, err
	}
	if err := c.Validate(); err != nil {
		return host.Command{}, err
	}
	b := batch{"-z", name, "create", "-b"}
	for _, a := range c.Attrs {
		b.add("attr", [2]string{"name", a.Name}, [2]string{"type", a.Type}, [2]string{"value", a.Value})
	}
	b.set("brand", c.Brand)
	b.set("zonepath", c.Zonepath)
	b.set("autoboot", strconv.FormatBool(c.Autoboot))
	b.set("ip-type", c.IPType)
	b.set("limitpriv", c.Limitpriv)
	b.addResources(c)
	return host.Command{Program: "zonecfg", Args: b}, nil
}

// addResources adds all but the attrs.
func (b *batch) addResources(c Config) {
	for _, f := range c.FS {
		b.addFS(f)
	}
	for _, n := range c.Nets {
		b.add("net", [2]string{"physical", n.Physical}, [2]string{"allowed-address", n.AllowedAddress}, [2]string{"defrouter", n.Defrouter})
	}
	for _, d := range c.Devices {
		b.add("device", [2]string{"match", d})
	}
	for _, d := range c.Datasets {
		b.add("dataset", [2]string{"name", d})
	}
	b.addCap(c.CPUCap)
}

// reconfigureCommand is one zonecfg process. The new attrs come first, and the old ones
// go after them: at any time one says whose the zone is. All else is removed and added, so
// that the resources stand in the order in which configureCommand writes them.
func reconfigureCommand(name string, old, wanted Config) (host.Command, error) {
	if err := ValidateName(name); err != nil {
		return host.Command{}, err
	}
	if err := wanted.Validate(); err != nil {
		return host.Command{}, err
	}
	if d := Compare(resourceless(wanted), resourceless(old)); len(d) > 0 {
		return host.Command{}, &ValueError{Property: d[0].Property, Value: d[0].Wanted, Reason: "cannot be changed once the zone exists"}
	}
	b := batch{"-z", name}
	for _, a := range lacking(wanted.Attrs, old.Attrs) {
		if slices.ContainsFunc(old.Attrs, func(o Attr) bool { return o.Name == a.Name }) {
			return host.Command{}, &ValueError{Property: "attr", Value: a.Name, Reason: "is there with another value, and zonecfg takes no second one of that name"}
		}
		b.add("attr", [2]string{"name", a.Name}, [2]string{"type", a.Type}, [2]string{"value", a.Value})
	}
	for _, a := range lacking(old.Attrs, wanted.Attrs) {
		b.remove("attr", "name", a.Name)
	}
	for _, f := range old.FS {
		b.remove("fs", "dir", f.Dir)
	}
	for _, n := range old.Nets {
		b.remove("net", "physical", n.Physical)
	}
	for _, d := range old.Devices {
		b.remove("device", "match", d)
	}
	for _, d := range old.Datasets {
		b.remove("dataset", "name", d)
	}
	b.removeCap(old.CPUCap)
	b.addResources(wanted)
	if len(b) > 2 {
		b = slices.Delete(b, 2, 3) // the first statement has no ";" before it
	}
	return host.Command{Program: "zonecfg", Args: b}, nil
}

// resourceless is what of a configuration a Reconfigure does not change.
func resourceless(c Config) Config {
	c.Attrs, c.FS, c.Nets, c.Devices, c.Datasets, c.CPUCap = nil, nil, nil, nil, nil, 0
	return c
}

// lacking are the attrs that others lack.
func lacking(all, others []Attr) []Attr {
	return slices.DeleteFunc(slices.Clone(all), func(a Attr) bool { return slices.Contains(others, a) })
}

// overwriting is a configureCommand for where the same configuration is there
// already, and no index names it.
func overwriting(c host.Command) host.Command {
	c.Args = slices.Insert(slices.Clone(c.Args), slices.Index(c.Args, "create")+1, "-F")
	return c
}

// batch is the argv of a zonecfg with several statements, which zonecfg joins
// with blanks; each begins with a ";".
type batch []string

// set is a statement, left out if the value is empty.
func (b *batch) set(property, value string) {
	if value != "" {
		*b = append(*b, ";", "set", property+"="+quote(value))
	}
}

func (b *batch) add(resource string, properties ...[2]string) {
	*b = append(*b, ";", "add", resource)
	for _, p := range properties {
		b.set(p[0], p[1])
	}
	*b = append(*b, ";", "end")
}

// remove is the statement that removes the resource with this property.
func (b *batch) remove(resource, property, value string) {
	*b = append(*b, ";", "remove", resource, property+"="+quote(value))
}

func (b *batch) addFS(f FS) {
	*b = append(*b, ";", "add", "fs")
	b.set("type", f.Type)
	b.set("dir", f.Dir)
	b.set("special", f.Special)
	if len(f.Options) > 0 {
		quoted := make([]string, len(f.Options))
		for i, o := range f.Options {
			quoted[i] = quote(o)
		}
		*b = append(*b, ";", "set", "options=["+strings.Join(quoted, ",")+"]")
	}
	*b = append(*b, ";", "end")
}

func quote(value string) string { return `"` + value + `"` }
