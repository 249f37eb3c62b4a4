package tools

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/test/hosttest"
)

// zoneSled is a sled on which transcripts about zones are replayed.
type zoneSled struct {
	t *testing.T
	d *Dispatcher
}

func newZoneSled(t *testing.T, o boot.Options) *zoneSled {
	t.Helper()
	w := boot.Memory(o, hosttest.Files).Handle(Handlers()).Checked(func(what string) { t.Error("not noted: ", what) })
	return &zoneSled{t, &Dispatcher{World: w}}
}

// run runs a command line; quotes are '.
func (s *zoneSled) run(line, stdin string) cli.Reply {
	s.t.Helper()
	words := shellWords(line)
	r, err := s.d.Exec(s.t.Context(), cli.Call{Tool: words[0], Args: words[1:], Stdin: []byte(stdin)})
	if err != nil {
		s.t.Fatalf("%s: %v", line, err)
	}
	return r
}

// must runs command lines that have to succeed.
func (s *zoneSled) must(lines ...string) {
	s.t.Helper()
	for _, line := range lines {
		if r := s.run(line, ""); r.Exit != 0 {
			s.t.Fatalf("%s: exit %d\n%s%s", line, r.Exit, r.Stdout, r.Stderr)
		}
	}
}

// change changes the sled by hand.
func (s *zoneSled) change(fn func(*world.Tx)) {
	s.t.Helper()
	update(s.t, s.d, fn)
}

// isThere tells whether the sled has a file.
func isThere(tx *world.Tx, name string) bool {
	_, err := tx.Files.Stat(name)
	return err == nil
}

// zone looks at a zone.
func (s *zoneSled) zone(name string) world.Zone {
	s.t.Helper()
	var z world.Zone
	s.change(func(tx *world.Tx) {
		if found := tx.FindZone(name); found != nil {
			z = *found
		}
	})
	return z
}

// file reads a file of the global zone; "" if there is none.
func (s *zoneSled) file(name string) string {
	s.t.Helper()
	text := ""
	s.change(func(tx *world.Tx) {
		if data, err := host.ReadFile(tx.Files, name); err == nil {
			text = string(data)
		}
	})
	return text
}

// replay runs a transcript: "$ command", "> " what follows it, "< " lines of its standard input, then
// what it prints, on standard error after "! ", and the exit code after "= " if
// it is not 0. "USAGE" stands for a usage message to the end of its stream, and
// UUID for any. Lines of "# " are comments. Tabs are written as "→", a blank at
// the end of a line as "␠".
func (s *zoneSled) replay(transcript string) {
	s.t.Helper()
	var command, stdin string
	var want cli.Reply
	check := func() {
		s.t.Helper()
		if command == "" {
			return
		}
		got := s.run(command, stdin)
		got.Stdout, got.Stderr = inShort(got.Stdout), inShort(got.Stderr)
		if diff := cmp.Diff(want, got); diff != "" {
			s.t.Errorf("%s (-want +got):\n%s", command, diff)
		}
		want, stdin = cli.Reply{}, ""
	}
	for line := range strings.Lines(transcript) {
		line = strings.NewReplacer("→", "\t", "␠", " ").Replace(strings.TrimRight(line, "\n"))
		switch {
		case strings.HasPrefix(line, "$ "):
			check()
			command = line[2:]
		case strings.HasPrefix(line, "> "):
			command += " " + line[2:]
		case strings.HasPrefix(line, "< "):
			stdin += line[2:] + "\n"
		case strings.HasPrefix(line, "! "), line == "!":
			want.Stderr += strings.TrimPrefix(strings.TrimPrefix(line, "!"), " ") + "\n"
		case strings.HasPrefix(line, "= "):
			want.Exit, _ = strconv.Atoi(line[2:])
		case strings.HasPrefix(line, "# "):
		default:
			want.Stdout += line + "\n"
		}
	}
	check()
}

func inShort(text string) string {
	text = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).ReplaceAllString(text, "UUID")
	for _, begin := range []string{"usage:", "Commands:\n", "\n<zone> :="} {
		if i := strings.Index(text, begin); i >= 0 {
			text = text[:i] + "USAGE\n"
		}
	}
	return text
}

// base makes /zones and an installed zone in it that others are cloned from.
func (s *zoneSled) base(brand string) *zoneSled {
	s.t.Helper()
	s.must("zfs create -o mountpoint=/zones rpool/zones")
	s.configure("base", brand, "")
	s.must("zoneadm -z base install")
	return s
}

// configure configures a zone below /zones.
func (s *zoneSled) configure(name, brand, more string) {
	s.t.Helper()
	s.must("zonecfg -z " + name + " create -b ; set brand=" + brand + " ; set zonepath=/zones/" + name + " ; set ip-type=exclusive ; " + more)
}

// datasets lists what lies below a dataset, with origins, as name or name<origin.
func (s *zoneSled) datasets(below string) string {
	s.t.Helper()
	var b strings.Builder
	out := s.run("zfs list -H -r -t all -o name,origin "+below, "").Stdout
	for line := range strings.Lines(out) {
		name, origin, _ := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		name = strings.TrimPrefix(name, below)
		if origin != "-" {
			name += " < " + strings.TrimPrefix(origin, below)
		}
		b.WriteString(name + "\n")
	}
	return b.String()
}

func (s *zoneSled) hasDatasets(below, want string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.datasets(below)); diff != "" {
		s.t.Errorf("datasets below %s (-want +got):\n%s", below, diff)
	}
}

// illumosSample reads a file of shared/samples next to the repository.
func illumosSample(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "samples", "illumos", name))
	if err != nil {
		t.Skip("shared/samples is not here")
	}
	return string(data)
}
