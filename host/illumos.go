package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/sledctl/sledctl/host/device"
)

// Illumos is a real machine: commands are processes, files are files. On other
// systems it serves with stand-in commands on its command path.
//
// What only looks is killed when its context ends. What changes something
// never is: a zoneadm that dies leaves its brand hook or zoneadmd running,
// without the zone's lock (usr/src/cmd/zoneadm/zoneadm.c). We stop waiting
// instead. Such a command has a process group of its own, its output goes to
// files, and it inherits the locks of its context, so all of that outlives us.
// zoneadmd closes every descriptor when it becomes a daemon
// (usr/src/cmd/zoneadmd/zoneadmd.c), so a booted zone keeps no lock.
//
// Guess zoneadmd-outlives-contract: zoneadmd outlives the contract of the method that started it:
// zones that a boot brought up stay when the start method ends, and those that an agent has booted
// when its service is stopped.
// Check: `svcadm enable svc:/site/sledctl/instances:default`; `zoneadm list`
type Illumos struct {
	options IllumosOptions
	files   Files

	remembered Memo

	mu    sync.Mutex
	found map[string]string // programs, by bare name
	swept bool              // see outputDir
}

var _ Host = (*Illumos)(nil)

// IllumosOptions are the settings of NewIllumos.
type IllumosOptions struct {
	// CommandPath lists the directories that programs are looked for in.
	// Empty: DefaultCommandPath.
	CommandPath []string
	// Root is the directory whose files are Files. Empty: "/".
	Root string
	// Files, if set, shows what is below Root instead of Dir(Root): with its
	// mounts, where Root only stands for the root of a machine.
	Files Files
	// RunDir, a name in Files, is where commands that change something leave
	// their output while they run. Empty: DefaultRunDir.
	RunDir string
	// Environment names the variables of our own environment that commands
	// get too. All others are kept from them.
	Environment []string
	// Privileged is asked before anything is changed. Nil: on illumos, the
	// effective user must be root; elsewhere nothing is asked.
	Privileged func() error
}

// DefaultRunDir is cleared at boot, as what is kept there must be.
const DefaultRunDir = "/var/run/sledctl"

// DefaultCommandPath is where illumos keeps the commands that sledctl runs.
func DefaultCommandPath() []string {
	return []string{"/usr/sbin", "/usr/bin", "/sbin", "/usr/lib", "/usr/lib/zones"}
}

// NewIllumos is the machine that we run on.
func NewIllumos(options IllumosOptions) *Illumos {
	if len(options.CommandPath) == 0 {
		options.CommandPath = DefaultCommandPath()
	}
	options.Root = cmp.Or(options.Root, "/")
	options.RunDir = cmp.Or(options.RunDir, DefaultRunDir)
	if options.Privileged == nil {
		options.Privileged = rootOnIllumos
	}
	if options.Files == nil {
		options.Files = Dir(options.Root)
	}
	return &Illumos{options: options, files: options.Files, found: map[string]string{}}
}

func rootOnIllumos() error {
	if runtime.GOOS == "illumos" && os.Geteuid() != 0 {
		return fmt.Errorf("user id %d: %w", os.Geteuid(), ErrPrivileges)
	}
	return nil
}

// Files is the file system below Root.
func (h *Illumos) Files() Files { return h.files }

// Dial is net.Dialer's.
func (h *Illumos) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

// DeviceVersion asks the node below Root. An open(2) that loads the driver may take its
// time: the wait for it ends with the context.
func (h *Illumos) DeviceVersion(ctx context.Context, d Device) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("%s was not asked: %w", d, err)
	}
	if d.Request() == 0 {
		return 0, &fs.PathError{Op: "ioctl", Path: string(d), Err: errors.ErrUnsupported}
	}
	type answer struct {
		version int
		err     error
	}
	came := make(chan answer, 1)
	go func() {
		version, err := device.Version(filepath.Join(h.options.Root, string(d)), d.Request())
		came <- answer{version, err}
	}()
	select {
	case a := <-came:
		return a.version, a.err
	case <-ctx.Done():
		return 0, fmt.Errorf("%s does not answer: %w", d, ctx.Err())
	}
}

// Run runs one command; see Host and Illumos.
func (h *Illumos) Run(ctx context.Context, c Command) (Result, error) {
	cmd, err := h.prepare(ctx, c)
	if err != nil {
		return Result{}, err
	}
	run := h.change
	if c.ReadOnly {
		run = query
	}
	result, err := run(ctx, c, cmd)
	return FinishZoneResult(c, result), err
}

// prepare is all that can fail before a process is there.
func (h *Illumos) prepare(ctx context.Context, c Command) (*exec.Cmd, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s was not run: %w", c.Program, err)
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	argv := c.Argv()
	path, err := h.lookup(argv[0])
	if err != nil {
		return nil, err
	}
	if !c.ReadOnly {
		if err := h.Privileged(); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Program, err)
		}
	}
	return &exec.Cmd{
		Path:        path,
		Args:        argv,
		Env:         h.environment(c),
		Dir:         "/",
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true}, // Ctrl-C on our terminal is for us
	}, nil
}

// Privileged fails with ErrPrivileges if what changes something would be
// refused.
func (h *Illumos) Privileged() error { return h.options.Privileged() }

// Lookup fails with ErrNoCommand, and all their names, if programs are not on
// the command path.
func (h *Illumos) Lookup(programs ...string) error {
	var missing []string
	for _, p := range programs {
		if _, err := h.lookup(p); err != nil {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return h.errNoCommand(missing...)
}

func (h *Illumos) errNoCommand(programs ...string) error {
	return fmt.Errorf("%s: %w (%s)", strings.Join(programs, ", "), ErrNoCommand, strings.Join(h.options.CommandPath, ":"))
}

// lookup finds a program on the command path.
func (h *Illumos) lookup(program string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if path, ok := h.found[program]; ok {
		return path, nil
	}
	for _, dir := range h.options.CommandPath {
		path := filepath.Join(dir, program)
		info, err := os.Stat(path)
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			h.found[program] = path
			return path, nil
		}
	}
	return "", h.errNoCommand(program)
}

// environment is the clean one: messages in the C locale, which zoneadm hands
// on to zoneadmd, and never the variable that makes zoneadm believe that it
// holds the zone's lock already (usr/src/cmd/zoneadm/zoneadm.c).
func (h *Illumos) environment(c Command) []string {
	const lockHeld = "_ZONEADM_LOCK_HELD="
	env := []string{"LC_ALL=C", "PATH=" + strings.Join(h.options.CommandPath, ":")}
	for _, name := range h.options.Environment {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	if c.Zone == "" {
		env = append(env, c.Env...)
	}
	return slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, lockHeld) })
}
