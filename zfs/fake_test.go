package zfs

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest"
)

// fake is a host with datasets that come and go as told. A command that no
// answer waits for does what it is called; its strictness is the simulated
// sled's business, not this one's.
type fake struct {
	t     *testing.T
	files *hosttest.MemoryFiles

	mu       sync.Mutex
	datasets []Dataset
	answers  map[string][]answer // by subcommand
	ran      []string            // the commands that change something
	asked    int                 // queries
}

// answer is what a command does instead, once.
type answer struct {
	exit   int
	stderr string
	err    error
	does   bool        // it does what it is called all the same
	then   func(*fake) // called with the lock held
}

func newFake(t *testing.T, datasets ...Dataset) *fake {
	f := &fake{t: t, files: hosttest.Memory(), answers: map[string][]answer{}, datasets: datasets}
	if err := host.MkdirAll(f.files, "/tank/a", 0o755); err != nil {
		t.Fatal(err)
	}
	return f
}

// tankA is a mounted file system.
func tankA() Dataset {
	return Dataset{Name: "tank/a", Type: TypeFilesystem, GUID: "11", Mountpoint: "/tank/a", Mounted: true}
}

func (f *fake) answer(subcommand string, a ...answer) *fake {
	f.answers[subcommand] = append(f.answers[subcommand], a...)
	return f
}

// Dial is part of host.Host.
func (f *fake) Dial(context.Context, string, string) (net.Conn, error) { panic("datasets dial nobody") }

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
	subcommand, name := c.Args[0], c.Args[len(c.Args)-1]
	if c.ReadOnly {
		f.asked++
	} else {
		f.ran = append(f.ran, c.Shell())
	}
	if queue := f.answers[subcommand]; len(queue) > 0 {
		a := queue[0]
		f.answers[subcommand] = queue[1:]
		if a.does {
			f.do(subcommand, name)
		}
		if a.then != nil {
			a.then(f)
		}
		if a.exit != 0 || a.err != nil || a.does {
			return host.Result{Exit: a.exit, Stderr: []byte(a.stderr)}, a.err
		}
	}
	if subcommand == "get" {
		return f.get(c, name), nil
	}
	f.do(subcommand, name)
	return host.Result{}, nil
}

func (f *fake) do(subcommand, name string) {
	switch subcommand {
	case "create":
		f.datasets = append(f.datasets, Dataset{
			Name: name, Type: TypeFilesystem, GUID: fmt.Sprint(11 + len(f.datasets)), Mountpoint: "/" + name, Mounted: true,
		})
	case "destroy":
		f.remove(name)
	case "mount", "unmount":
		for i := range f.datasets {
			if f.datasets[i].Name == name {
				f.datasets[i].Mounted = subcommand == "mount"
			}
		}
	case "set", "inherit", "snapshot", "load-key", "unload-key", "change-key", "S+ci", "S-ci":
	default:
		f.t.Errorf("nobody expected zfs %s", subcommand)
	}
}

func (f *fake) remove(name string) {
	f.datasets = slices.DeleteFunc(f.datasets, func(d Dataset) bool { return d.Name == name })
}

func (f *fake) names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for _, d := range f.datasets {
		names = append(names, d.Name)
	}
	return names
}

// get prints the dataset, and with -d or -r what lies in it.
func (f *fake) get(c host.Command, name string) host.Result {
	i := slices.IndexFunc(f.datasets, func(d Dataset) bool { return d.Name == name })
	if i < 0 {
		return host.Result{Exit: 1, Stderr: []byte("cannot open '" + name + "': dataset does not exist\n")}
	}
	deep := slices.Contains(c.Args, "-d") || slices.Contains(c.Args, "-r")
	properties := strings.Split(c.Args[len(c.Args)-2], ",")
	var b strings.Builder
	for _, d := range f.datasets {
		below := strings.HasPrefix(d.Name, name+"/") || strings.HasPrefix(d.Name, name+"@")
		if d.Name != name && !(deep && below) {
			continue
		}
		for _, p := range properties {
			fmt.Fprintf(&b, "%s\t%s\t%s\t-\n", d.Name, p, printed(d, p))
		}
	}
	return host.Result{Stdout: []byte(b.String())}
}

func printed(d Dataset, property string) string {
	switch property {
	case "type":
		return d.Type
	case "guid":
		return d.GUID
	case "mounted":
		if d.Mounted {
			return "yes"
		}
		return "no"
	case "mountpoint":
		if d.Mountpoint != "" {
			return d.Mountpoint
		}
	}
	return "-"
}
