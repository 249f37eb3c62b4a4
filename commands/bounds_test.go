package commands_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/test/sledtest"
)

// Each number and each duration that a flag takes has a least: a value below it, and a word, is
// refused before anything is done, by a message that names the flag and says what it wants.
func TestEachNumberOfAFlagIsHeldToItsBounds(t *testing.T) {
	if sledtest.Quick() {
		t.Skip("runs each command")
	}
	s := sledtest.New(t, sledtest.Small(), "")
	s.Run("bootstrap")
	s.Run("instance ensure a --nic over=net0")
	before, flags := s.Comparable(), 0
	each(commands.Root(), func(cmd *cobra.Command) {
		name := strings.TrimPrefix(cmd.CommandPath(), "sledctl ")
		if strings.HasPrefix(name, "sim ") { // they want a simulated sled in a directory: bad_input.txtar
			return
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			bad := map[string]string{"int": "-7", "duration": "-1s"}[f.Value.Type()]
			if bad == "" || f.Deprecated != "" || f.Hidden {
				return
			}
			flags++
			for _, value := range []string{bad, "x"} {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // the flag of one that goes on is not refused
				a := s.On(ctx, s.Host(), lineOf(name)+" --"+f.Name+"="+value)
				cancel()
				if a.Exit != 2 || !strings.Contains(a.Errs, "--"+f.Name) || !strings.Contains(a.Errs, "want ") {
					t.Errorf("%s --%s=%s: exit %d: %s", name, f.Name, value, a.Exit, a.Errs)
				}
			}
		})
	})
	if flags < 20 {
		t.Errorf("%d flags were tried", flags)
	}
	s.Same(before, "after bad input")
}

func each(cmd *cobra.Command, do func(*cobra.Command)) {
	if !cmd.HasSubCommands() {
		do(cmd)
	}
	for _, c := range cmd.Commands() {
		each(c, do)
	}
}

// lineOf is a line of a command that could be carried out.
func lineOf(name string) string {
	for _, line := range append(statefully(), "storage format c1t0d0", "instance edit a", "sled test x", "propolis spec convert x", "probe compare x") {
		if strings.HasPrefix(line+" ", name+" ") {
			return line
		}
	}
	return name
}

// Each other value that is no good is refused by a message that has its flag and what would
// be right.
func TestBadValuesAreToldWithWhatIsWanted(t *testing.T) {
	t.Parallel()
	s := sledtest.New(t, sledtest.Small(), "")
	s.Run("bootstrap")
	s.Run("instance ensure a --nic over=net0")
	before := s.Comparable()
	for line, want := range map[string]string{
		"instance ensure b --memory 0":                `--memory "0": want 1M or more: a number without a letter is of bytes`,
		"instance ensure b --memory 100T":             `memory "109951162777600": want a multiple of 1M, from 1M to 16383G`,
		"instance ensure b --disk size=20":            `disk "size=20": want a size as 20G, 1M or more: size=20`,
		"volume create v --size 1K":                   `--size "1K": want 1M or more`,
		"instance ensure b --memory 8X":               `--memory "8X": want a number of bytes, or with K, M, G, T, P or E: 4G`,
		"instance ensure b --cpus 0":                  `cpus "0": want a number from 1 to 254`,
		"instance ensure b --name B_":                 `instance name "B_": want 1 to 63 of a-z, 0-9`,
		"instance ensure b --address 10.0.0.1":        `--address "10.0.0.1": want dhcp, addrconf or IP/PREFIX`,
		"instance ensure b --nic over=net0,vlan=0":    `nic vlan "0": want a number from 1 to 4094`,
		"instance ensure b --nic over=net0,mac=zz":    `MAC address "zz": six groups`,
		"instance ensure b --disk a=b":                `--disk "a=b": want the name of a volume, an absolute file name, or POOL/NAME`,
		"instance ensure b --migration-id x":          `--migrate-from "": want IP:PORT`,
		"instance delete a --migration-id x":          `--migration-id "x": want a UUID`,
		"instance migrate a --to -x":                  "want the name of a sled",
		"instance wait a --for x":                     "give --for running, stopped, failed or absent",
		"instance get a --events -1":                  "--events -1: want a number from 0",
		"instance console a --listen 127.0.0.1:5900":  "want --vnc with it",
		"instance console a --vnc --listen 1.2.3.4:1": `--listen "1.2.3.4:1": want a loopback address with a port`,
		"instance console a --escape xx":              `--escape "xx": want one character`,
		"instance console a --since-byte x":           `--since-byte "x": want a number of bytes`,
		"instance list --state x":                     `--state "x": want one of`,
		"instance list --group x":                     `--group "x": want`,
		"instance list --sort x":                      `--sort "x": unknown key "x": want one of`,
		"instance list --filter memory>x":             `size "x": want a number of bytes`,
		"instance list --agent x":                     `--agent: address "x": want unix:/NAME, http://HOST:PORT or https://HOST:PORT`,
		"vnic create --over net0 --mac zz":            `--mac: MAC address "zz": six groups`,
		"vnic create --over net0 --mtu 5":             "--mtu 5: want a number from 68 to 65535",
		"vnic create --over net0 --vlan 4095":         "--vlan 4095: want a number from 1 to 4094",
		"vnic create --over net0 --hold 0s":           "--hold 0s: want a duration above 0",
		"vnic create --over net0 --cpus 2":            "--cpus describes an instance: want --instance NAME with it",
		"vnic create --over net0 --pool x":            "--pool describes an instance: want --instance NAME with it",
		"vnic create --instance b --mtu 1500":         "--mtu is about a VNIC of no instance: want --over LINK with it",
		"vnic create --over a-b":                      "--over: link name \"a-b\": '-' is not allowed, only",
		"agent --listen 1.2.3.4:99999":                `--listen: address "1.2.3.4:99999": want unix:/NAME or tcp:ADDRESS:PORT`,
		"agent --listen unix:relative":                "want unix:/NAME",
		"doctor --ignore x":                           "to list the checks, run: sledctl doctor -o name",
		"events --since x":                            `--since "x": want 10m, or a time`,
		"storage list --tree=9":                       "--tree 9: want 1 or 2",
		"storage list --kind x":                       `--kind "x": want`,
		"version --timeout -1s":                       "--timeout -1s: want a duration above 0",
		"instance list -o x":                          `unknown output format "x": want one of`,
		"instance list --columns x":                   `unknown column "x": want one of`,
		"sled add x --agent y":                        `--agent: address "y": want unix:/NAME, http://HOST:PORT or https://HOST:PORT`,
		"sled add X --host sim":                       `sled "X": want lower-case letters`,
	} {
		if a := s.Try(line); a.Exit != 2 || !strings.Contains(a.Errs, want) {
			t.Errorf("%s: exit %d, not %q: %s", line, a.Exit, want, a.Errs)
		}
	}
	s.Same(before, "after bad input")
}
