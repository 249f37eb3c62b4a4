package commands_test

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/sha3"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/key"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
)

// keyed is a sled with blank disks whose secrets are in a file.
func keyed(t *testing.T) *sledtest.Operator {
	t.Helper()
	return keyedWith(t, 2, 1)
}

// keyedWith has so many U.2s, and secrets of the epochs 0 to latest.
func keyedWith(t *testing.T, u2, latest int) *sledtest.Operator {
	t.Helper()
	config := strings.Replace(commands.SimulatedConfig(), `key = "development"`, `key = "file:/secrets"`, 1)
	if !strings.Contains(config, "/secrets") {
		t.Fatal("the configuration has no key to replace")
	}
	s := sledtest.New(t, sim.Options{Seed: 1, M2: 1, U2: u2, Blank: true}, config)
	s.Secrets(latest)
	return s
}

// written is all that is in files of the sled, but in the file with the secrets.
func written(s *sledtest.Operator) []byte {
	s.T.Helper()
	var all bytes.Buffer
	var walk func(dir string)
	walk = func(dir string) {
		infos, err := s.Host().Files().ReadDir(dir)
		if err != nil {
			s.T.Fatal(err)
		}
		for _, info := range infos {
			name := path.Join(dir, info.Name)
			switch {
			case info.Mode.IsDir():
				walk(name)
			case info.Mode.IsRegular() && name != "/secrets":
				data, err := host.ReadFile(s.Host().Files(), name)
				if err != nil {
					s.T.Fatal(err)
				}
				fmt.Fprintf(&all, "%s:\n%s\n", name, data)
			}
		}
	}
	walk("/")
	return all.Bytes()
}

// A key or secret is in no file, argument, trace, message, error or fact.
func TestNoKeyIsToldToAnybody(t *testing.T) {
	t.Parallel()
	s := keyed(t)
	var told bytes.Buffer
	listening := listener{s.Host(), &sync.Mutex{}, &told}
	say := func(line string, exit int) {
		t.Helper()
		a := s.On(t.Context(), listening, line)
		if a.Exit != exit {
			t.Errorf("sledctl %s: exit %d, want %d: %s", line, a.Exit, exit, a.Errs)
		}
		fmt.Fprintf(&told, "%s\n%s%s\n", line, a.Out, a.Errs)
	}
	say("bootstrap --format-blank --explain", 0)
	say("bootstrap --format-blank -v", 0)
	say("instance ensure web1 -o json", 0)
	s.Secrets(2)
	say("storage rekey --explain", 0)
	say("storage rekey -v", 0)
	say("trace --list", 0)
	say("trace -o json", 0)
	say("history", 0)
	say("ledger export", 0)
	say("storage list -o json", 0)
	if err := s.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Arm(world.Fault{Name: world.FaultFail, Match: "zfs load-key", Times: 1, Exit: 1, Text: "Key load error: no"})
	say("bootstrap -o json", 3)
	// The wrong secret, and one that is none.
	s.SecretFile(fmt.Sprintf("0 %x\n1 %x\n2 %x\n", sledtest.SecretKey(0), sledtest.SecretKey(1), sledtest.SecretKey(9)))
	say("bootstrap", 3)
	s.SecretFile(fmt.Sprintf("2 %x\n", sledtest.SecretKey(2)[:31]))
	say("bootstrap -o json", 3)
	// Killed with the key's file in place: it is gone at the next start.
	s.Secrets(2)
	for n := 1; len(keyFiles(s)) == 0; n++ {
		if err := s.Reboot(t.Context()); err != nil { // what the run before has done is not done already
			t.Fatal(err)
		}
		if a := s.On(t.Context(), host.Crash(listening, n, host.CrashAfter), "bootstrap"); a.Exit == 0 {
			t.Fatal("no run died with a key's file in place")
		}
	}
	say("bootstrap -v", 0)
	say("storage check --detailed-exitcode", 0)

	if left := keyFiles(s); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	told.Write(written(s))
	for what, secret := range keys(s) {
		for form, text := range map[string][]byte{
			"raw": secret, "hexadecimal": []byte(hex.EncodeToString(secret)), "upper case": []byte(strings.ToUpper(hex.EncodeToString(secret))),
			"base64": []byte(base64.StdEncoding.EncodeToString(secret)), "half of it": secret[:16], "as numbers": []byte(strings.Trim(fmt.Sprint(secret), "[]")),
		} {
			if at := bytes.Index(told.Bytes(), text); at >= 0 {
				t.Errorf("%s, %s: …%q", what, form, told.Bytes()[max(0, at-200):at])
			}
		}
	}
	if !bytes.Contains(told.Bytes(), []byte("sledctl:key-id")) || !bytes.Contains(told.Bytes(), []byte("zfs load-key")) || told.Len() < 100_000 {
		t.Errorf("%d bytes were looked at, and keys were never in question", told.Len())
	}
}

// keyFiles are those that lie where zfs reads keys from.
func keyFiles(s *sledtest.Operator) []string {
	s.T.Helper()
	left, err := key.Left(s.Host().Files(), "/var/run/sledctl/key")
	if err != nil {
		s.T.Fatal(err)
	}
	return left
}

// keys are the secrets and what is derived from them.
func keys(s *sledtest.Operator) map[string][]byte {
	s.T.Helper()
	all := map[string][]byte{}
	for epoch := range 3 {
		all[fmt.Sprintf("secret of epoch %d", epoch)] = sledtest.SecretKey(epoch)
		for _, pool := range pools(s, "oxp_") {
			id := strings.TrimSpace(raw(s, "zfs", "get", "-Ho", "value", "sledctl:key-id", pool+"/crypt"))
			derived, err := hkdf.Key(sha3.New256, sledtest.SecretKey(epoch), make([]byte, 32), "U.2-zfs-"+id, 32)
			if err != nil || len(id) < 10 {
				s.T.Fatalf("key id %q, %v", id, err)
			}
			all[fmt.Sprintf("key of %s, epoch %d", id, epoch)] = derived
		}
	}
	return all
}

// listener hears what is typed at a host.
type listener struct {
	host.Host
	mu   *sync.Mutex
	told *bytes.Buffer
}

func (l listener) Run(ctx context.Context, c host.Command) (host.Result, error) {
	r, err := l.Host.Run(ctx, c)
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.told, "%s\n%s\n%s\n", c.Shell(), r.Stdout, r.Stderr)
	return r, err
}

// counting counts listings, by program and subcommand.
type counting struct {
	host.Host
	mu *sync.Mutex
	n  map[string]int
}

func (c counting) Run(ctx context.Context, command host.Command) (host.Result, error) {
	c.mu.Lock()
	kind := command.Program
	if command.Program != "uname" && command.Program != "prtconf" {
		kind += " " + command.Args[0]
	}
	if !command.ReadOnly {
		kind = "CHANGE " + kind
	}
	c.n[kind]++
	c.mu.Unlock()
	return c.Host.Run(ctx, command)
}

// A sled that is prepared costs one listing of each kind of thing for all parts
// of bootstrap, however many disks there are, and so does a dry run.
func TestAPreparedSledCostsALook(t *testing.T) {
	t.Parallel()
	looks := func(u2 int, line string) map[string]int {
		s := sledtest.New(t, sim.Options{Seed: 1, M2: 2, U2: u2}, "")
		s.Run("bootstrap")
		c := counting{s.Host(), &sync.Mutex{}, map[string]int{}}
		if a := s.On(t.Context(), c, line); a.Exit != 0 {
			t.Fatal(a.Errs)
		}
		return c.n
	}
	want := map[string]int{
		"prtconf": 1, "zpool list": 1, "zfs get": 1, "zoneadm list": 1, "svcs -H": 1, "uname": 1, "ipadm show-addr": 1,
		"dladm show-link": 1, "dladm show-vnic": 1,
	}
	for name, got := range map[string]map[string]int{"one U.2": looks(1, "bootstrap"), "ten": looks(10, "bootstrap"), "a dry run": looks(10, "bootstrap -n")} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
