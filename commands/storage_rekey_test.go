package commands_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/sledtest"
)

// openZFS is a host whose zfs takes no user properties with a key, as OpenZFS
// does not (zfs_crypto_verify_rewrap_nvlist of lib/libzfs/libzfs_crypto.c).
type openZFS struct{ host.Host }

func (z openZFS) Run(ctx context.Context, c host.Command) (host.Result, error) {
	for i, word := range c.Args {
		if c.Args[0] == "change-key" && word == "-o" && strings.Contains(c.Args[i+1], ":") && strings.Index(c.Args[i+1], ":") < strings.Index(c.Args[i+1], "=") {
			return host.Result{Exit: 255, Stderr: []byte("Key change error: Only keyformat, keylocation, and pbkdf2iters may be set with this command.\n")}, nil
		}
	}
	return z.Host.Run(ctx, c)
}

// epochs are the epochs of the keys that the disks say they have, and those that
// they may be getting.
func epochs(s *sledtest.Operator) string {
	s.T.Helper()
	return strings.Join(strings.Fields(raw(s, "zfs", "get", "-rHo", "name,property,value", "-s", "local", "-t", "filesystem",
		"sledctl:epoch,oxide:epoch,sledctl:next-epoch", pools(s, "oxp_")[0])), " ")
}

// A rekey may be killed between any two commands, and the sled reboot before
// anybody looks: the disk is unlocked, and the rekey is finished. So it is, too,
// where zfs cannot change a key and say so in one command.
func TestARekeyThatIsKilledLeavesNoDiskLocked(t *testing.T) {
	t.Parallel()
	stride := 1
	if testing.Short() {
		stride = 5
	}
	for name, zfs := range map[string]func(host.Host) host.Host{
		"in one command": func(h host.Host) host.Host { return h },
		"in several":     func(h host.Host) host.Host { return openZFS{h} },
	} {
		t.Run(name, func(t *testing.T) {
			prepared := keyedWith(t, 1, 0)
			prepared.Run("bootstrap --format-blank")
			prepared.Secrets(3)
			clone := func() *sledtest.Operator {
				s := &sledtest.Operator{Sled: prepared.Clone(), T: t}
				t.Cleanup(s.Close)
				return s
			}
			whole := clone()
			count := host.Crash(zfs(whole.Host()), 0, host.CrashBefore)
			if a := whole.On(t.Context(), count, "storage rekey"); a.Exit != 0 {
				t.Fatal(a.Errs)
			}
			for _, mode := range []host.CrashMode{host.CrashBefore, host.CrashAfter} {
				for point := 1; point <= count.Points(); point += stride {
					s := clone()
					s.On(t.Context(), host.Crash(zfs(s.Host()), point, mode), "storage rekey")
					if point%2 == 0 { // the other half continues without a reboot
						if err := s.Reboot(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					for _, line := range []string{"bootstrap", "storage rekey", "storage check --detailed-exitcode"} {
						if a := s.On(t.Context(), zfs(s.Host()), line); a.Exit != 0 {
							t.Fatalf("at %d, %s: exit %d: %s%s", point, line, a.Exit, a.Out, a.Errs)
						}
					}
					if got, crypt := epochs(s), pools(s, "oxp_")[0]+"/crypt"; !strings.HasSuffix(got, crypt+" sledctl:epoch 3 "+crypt+" oxide:epoch 3") {
						t.Errorf("at %d: %s", point, got)
					}
				}
			}
			t.Logf("%d points", count.Points())
		})
	}
}

// If a disk names no epoch, because another tool made it, sledctl tries the keys of
// each epoch, and writes the epoch that fits to the disk.
func TestADiskThatDoesNotSayWhichKeyItHasIsTried(t *testing.T) {
	t.Parallel()
	s := keyed(t)
	s.Run("bootstrap --format-blank")
	crypt := pools(s, "oxp_")[0] + "/crypt"
	s.Secrets(4)
	forget := func() {
		s.Command("zfs inherit sledctl:epoch " + crypt)
		s.Command("zfs inherit oxide:epoch " + crypt)
	}
	forget()
	s.Command("zfs inherit sledctl:key-id " + crypt)
	if err := s.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	plan := s.Run("bootstrap -n")
	if !strings.Contains(plan, "zfs.find-key") && !strings.Contains(plan, "does not say for sure which key it has") {
		t.Errorf("the plan says nothing of it:\n%s", plan)
	}
	s.Run("bootstrap")
	s.Run("storage check --detailed-exitcode")
	if got := strings.TrimSpace(raw(s, "zfs", "get", "-Ho", "value", "sledctl:epoch", crypt)); got != "1" {
		t.Errorf("it says that its key is of epoch %s", got)
	}

	// None fits: it stays locked, and nothing is written.
	forget()
	s.SecretFile("5 " + strings.Repeat("ab", 32) + "\n")
	if err := s.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a := s.Try("bootstrap"); a.Exit != 3 || !strings.Contains(a.Errs, "none of 1 fits") {
		t.Errorf("exit %d: %s", a.Exit, a.Errs)
	}
	if got := strings.TrimSpace(raw(s, "zfs", "get", "-Ho", "value", "sledctl:epoch", crypt)); got != "-" {
		t.Errorf("it says that its key is of epoch %s", got)
	}

	// An epoch that is none is not passed over.
	s.Secrets(4)
	s.Command("zfs set sledctl:epoch=one " + crypt)
	if a := s.Try("bootstrap"); a.Exit != 3 || !strings.Contains(a.Errs, `sledctl:epoch is "one", wanted a number`) || !strings.Contains(a.Errs, "zfs inherit sledctl:epoch "+crypt) {
		t.Errorf("exit %d: %s", a.Exit, a.Errs)
	}
}
