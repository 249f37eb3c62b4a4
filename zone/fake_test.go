package zone

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest"
)

// fake is a host with zones that change state as told. A command that no
// answer waits for does what it is called; its strictness is the simulated
// sled's business, not this one's.
type fake struct {
	t     *testing.T
	files *hosttest.MemoryFiles

	mu      sync.Mutex
	zones   []Zone
	answers map[string][]answer // by program and subcommand: "zoneadm boot"
	ran     []string            // the commands that change something
}

// answer is what a command does instead, once.
type answer struct {
	exit           int
	stdout, stderr string
	err            error
	then           func(*fake) // called with the lock held
}

func newFake(t *testing.T, zones ...Zone) *fake {
	f := &fake{t: t, files: hosttest.Memory(), answers: map[string][]answer{}}
	f.zones = append([]Zone{{ID: number(0), Name: Global, State: Running, Path: "/", Brand: "ipkg", IPType: "shared"}}, zones...)
	for _, dir := range []string{Dir, "/zone"} {
		if err := host.MkdirAll(f.files, dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func installed(name string) Zone { return inTheState(name, Installed) }

func inTheState(name string, s State) Zone {
	z := Zone{Name: name, State: s, Path: "/zone/" + name, Brand: "sparse", IPType: "exclusive"}
	if slices.Contains([]State{Ready, Mounted, Running, ShuttingDown, Down}, s) {
		z.ID = number(4)
	}
	return z
}

func (f *fake) answer(command string, a ...answer) *fake {
	f.answers[command] = append(f.answers[command], a...)
	return f
}

// Dial is part of host.Host.
func (f *fake) Dial(context.Context, string, string) (net.Conn, error) { panic("zones dial nobody") }

// DeviceVersion is part of host.Host.
func (*fake) DeviceVersion(context.Context, host.Device) (int, error) { return 0, fs.ErrNotExist }

// Files is part of host.Host.
func (f *fake) Files() host.Files { return f.files }

// Run is part of host.Host.
func (f *fake) Run(ctx context.Context, c host.Command) (host.Result, error) {
	if err := ctx.Err(); err != nil {
		return host.Result{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	name, sub := "", c.Args[0]
	if c.Args[0] == "-z" {
		name, sub = c.Args[1], c.Args[2]
	}
	if !c.ReadOnly {
		f.ran = append(f.ran, c.Shell())
	}
	key := c.Program + " " + sub
	if queue := f.answers[key]; len(queue) > 0 {
		f.answers[key] = queue[1:]
		a := queue[0]
		if a.then != nil {
			a.then(f)
		}
		if sub != "list" || a.exit != 0 || a.err != nil || a.stdout != "" {
			return host.Result{Exit: a.exit, Stdout: []byte(a.stdout), Stderr: []byte(a.stderr)}, a.err
		}
		return host.Result{Stdout: f.listing(), Stderr: []byte(a.stderr)}, nil
	}
	switch key {
	case "zoneadm list":
		return host.Result{Stdout: f.listing()}, nil
	case "zoneadm clone", "zoneadm install", "zoneadm halt", "zoneadm unmount":
		f.set(name, Installed)
	case "zoneadm uninstall":
		f.set(name, Configured)
	case "zoneadm boot":
		f.set(name, Running)
	case "zonecfg delete":
		f.zones = slices.DeleteFunc(f.zones, func(z Zone) bool { return z.Name == name })
		if err := f.files.Remove(configFile(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			f.t.Error(err)
		}
	default:
		f.t.Errorf("nobody expected %s", c.Shell())
	}
	return host.Result{}, nil
}

func (f *fake) listing() []byte {
	var b strings.Builder
	for _, z := range f.zones {
		b.WriteString(line(z))
	}
	return []byte(b.String())
}

// set puts a zone into a state, making it if there is none.
func (f *fake) set(name string, s State) {
	i := slices.IndexFunc(f.zones, func(z Zone) bool { return z.Name == name })
	if i < 0 {
		f.zones = append(f.zones, inTheState(name, s))
		return
	}
	f.zones[i] = inTheState(name, s)
}

// to is what an answer does that leaves a zone in a state.
func to(name string, s State) func(*fake) { return func(f *fake) { f.set(name, s) } }

func (f *fake) state(name string) State {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, z := range f.zones {
		if z.Name == name {
			return z.State
		}
	}
	return ""
}

func (f *fake) write(name, content string) {
	f.t.Helper()
	file, err := f.files.Open(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		f.t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write([]byte(content)); err != nil {
		f.t.Fatal(err)
	}
}

// writeConfig writes a zone's file as zonecfg does.
func (f *fake) writeConfig(name string, c Config) {
	f.t.Helper()
	var b strings.Builder
	b.WriteString(xml.Header)
	fmt.Fprintf(&b, `<zone name="%s" zonepath="%s" autoboot="%v" brand="%s" ip-type="%s" limitpriv="%s">`+"\n",
		name, c.Zonepath, c.Autoboot, c.Brand, c.IPType, c.Limitpriv)
	for _, a := range c.Attrs {
		fmt.Fprintf(&b, `  <attr name="%s" type="%s" value="%s"/>`+"\n", a.Name, a.Type, a.Value)
	}
	for _, s := range c.FS {
		fmt.Fprintf(&b, `  <filesystem directory="%s" special="%s" type="%s">`+"\n", s.Dir, s.Special, s.Type)
		for _, o := range s.Options {
			fmt.Fprintf(&b, `    <fsoption name="%s"/>`+"\n", o)
		}
		b.WriteString("  </filesystem>\n")
	}
	for _, n := range c.Nets {
		fmt.Fprintf(&b, `  <network physical="%s" allowed-address="%s" defrouter="%s"/>`+"\n", n.Physical, n.AllowedAddress, n.Defrouter)
	}
	for _, d := range c.Devices {
		fmt.Fprintf(&b, `  <device match="%s"/>`+"\n", d)
	}
	for _, d := range c.Datasets {
		fmt.Fprintf(&b, `  <dataset name="%s"/>`+"\n", d)
	}
	b.WriteString("</zone>\n")
	f.write(path.Join(Dir, name+".xml"), b.String())
}

// root makes a zone's root as a clone leaves it: the zonepath a dataset, and
// the root another one, with a system in it.
func (f *fake) root(zonepath string) {
	f.t.Helper()
	if err := host.MkdirAll(f.files, path.Join(zonepath, "root", "etc"), 0o755); err != nil {
		f.t.Fatal(err)
	}
	for device, dir := range []string{zonepath, path.Join(zonepath, "root")} {
		if err := f.files.SetDevice(dir, uint64(100+device)); err != nil {
			f.t.Fatal(err)
		}
	}
}
