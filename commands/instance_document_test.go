package commands_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/test/sledtest"
)

// fed runs a command line that reads a text from standard input.
func fed(s *sledtest.Operator, line, text string) sledtest.Answer {
	return s.Tuned(s.T.Context(), s.Host(), line, func(env *cli.Env, run func(context.Context) int) int {
		sledtest.Feed(env, []byte(text))
		return run(s.T.Context())
	})
}

// described are VMs of many kinds, by the flags that make them.
func kindsOfVMs() map[string]string {
	return map[string]string{
		"plain":                                "",
		"large":                                "--cpus 8 --memory 3G",
		"odd":                                  "--memory 1025M",
		"nics":                                 "--nic over=net0 --nic over=net0,vlan=100 --nic over=net0,mac=02:08:20:aa:bb:cc,vlan=4094",
		"volume":                               "--disk rpool/volumes/web1",
		"files":                                "--disk /data/web1.img --disk /data/cd.iso,readonly --nic over=net0",
		"address":                              "--address 127.77.0.99/16,gateway=127.77.255.254",
		"protected":                            "--protect --nic over=net0,vlan=7",
		"6dee3e34-3723-4e73-a96e-7ab1bbc63fae": "--name by-id",
		"0dee3e34-3723-4e73-a96e-7ab1bbc63fae": "",
		"spec":                                 "--spec " + "SPEC" + " --nic over=net0,vlan=9",
	}
}

// The document of every instance that runs is what instance ensure finds nothing to do for.
// One that is deleted and made again by its document is the same.
func TestTheDocumentOfAnInstanceDescribesIt(t *testing.T) {
	t.Parallel()
	config := t.TempDir() + "/web1.toml"
	synctest.Test(t, func(t *testing.T) {
		s := sledtest.New(t, sledtest.Small(), "")
		disks(s)
		s.Run("bootstrap")
		text := "[main]\ncpus = 2\nmemory = 1024\n[block_dev.b]\ntype = \"file\"\npath = \"/data/it's.img\"\n[dev.disk0]\ndriver = \"pci-nvme\"\nblock_dev = \"b\"\npci-path = \"0.16.0\"\n" +
			"[dev.net0]\ndriver = \"pci-virtio-viona\"\nvnic = \"x\"\npci-path = \"0.8.0\"\n"
		if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		s.WriteFile("/data/it's.img", strings.Repeat("\x00", 1<<16))
		for ref, flags := range kindsOfVMs() {
			s.Run("instance ensure " + ref + " " + strings.ReplaceAll(flags, "SPEC", config))
			text := s.Run("instance get " + ref + " -o toml")
			if a := fed(s, "instance ensure -f - -n --detailed-exitcode", text); a.Exit != 0 || a.Out != "" {
				t.Errorf("%s: exit %d, %s%s\nfor\n%s", ref, a.Exit, a.Errs, a.Out, text)
			}
			if a := fed(s, "instance ensure -f - -n --detailed-exitcode --cpus 9", text); a.Exit == 0 {
				t.Errorf("%s: a difference is not seen", ref)
			}
			s.Run("instance delete --yes " + ref)
			if a := fed(s, "instance ensure -f -", text); a.Exit != 0 {
				t.Errorf("%s again: exit %d, %s", ref, a.Exit, a.Errs)
			}
			again := strings.TrimPrefix(s.Run("instance get "+ref+" -o toml"), "# protected: instance ensure --protect\n")
			if again != strings.TrimPrefix(text, "# protected: instance ensure --protect\n") {
				t.Errorf("%s again:\n%s\nand not\n%s", ref, again, text)
			}
			s.Run("instance delete --yes " + ref)
		}
	})
}

// A document says what an instance is and a description does not.
func TestADocumentSaysWhatItCannotDescribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sledtest.New(t, sledtest.Small(), "")
		s.Run("bootstrap")
		s.Run("instance ensure web1 --protect")
		s.Run("instance stop web1")
		text := s.Run("instance get web1 -o toml")
		if !strings.HasPrefix(text, "# protected: instance ensure --protect\n# stopped: instance ensure starts it\nname = \"web1\"\n") {
			t.Error(text)
		}
		if a := s.Try("instance get wbe1 -o toml"); a.Exit != 4 || !strings.Contains(a.Errs, "did you mean web1?") {
			t.Errorf("exit %d, %s", a.Exit, a.Errs)
		}
	})
}
