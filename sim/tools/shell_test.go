package tools

import (
	"io/fs"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
	"github.com/sledctl/sledctl/test/hosttest"
)

// zoneTx is a sled with a running zone z1.
func zoneTx(t *testing.T) *world.Tx {
	t.Helper()
	files := hosttest.Memory()
	if err := boot.LayRoot(files, boot.Options{}); err != nil {
		t.Fatal(err)
	}
	tx := world.NewTx(boot.Fresh(boot.Options{}), world.Now(), files)
	addRunningZone(t, tx, "z1")
	return tx
}

func addRunningZone(t *testing.T, tx *world.Tx, name string) {
	t.Helper()
	c := world.Config{Brand: "sparse", Zonepath: "/zones/" + name, IPType: "exclusive"}
	tx.State.Zones = append(tx.State.Zones, &world.Zone{
		Name: name, State: "installed", Config: c, Kernel: &world.Kernel{
			ID: int(tx.Count("zone")), State: "running", Config: c,
			Loops: []world.Loop{{Dir: "/opt/oxide", Special: "/opt/oxide", ReadOnly: true}},
		},
	})
	for _, dir := range []string{"/etc", "/var/tmp"} {
		if err := host.MkdirAll(tx.Files, "/zones/"+name+"/root"+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAScriptSeesOnlyTheZone(t *testing.T) {
	for _, c := range []struct{ name, script, stdout, stderr string }{
		{"builtins", `x=1; [ "$x" = 1 ] && printf '%s\n' "a b"; echo $((x + 1))`, "a b\n2\n", ""},
		{"a tool by name and by path", `zonename; /usr/bin/zonename`, "z1\nz1\n", ""},
		{"files", `echo hi > /var/tmp/f; cat /var/tmp/f; cat < /var/tmp/f; cat /var/tmp/f > /dev/null`,
			"hi\nhi\n", ""},
		{"a here-document and a pipe", "cat <<E | cat\none\nE\n", "one\n", ""},
		{"the real machine is not there", `cat /proc/self/status || echo none`, "none\n",
			"cat: /proc/self/status: No such file or directory\n"},
		{"a loopback mount", `echo x > /opt/oxide/f || echo no`,
			"no\n", "open /opt/oxide/f: read-only file system\n"},
		{"an unknown command", `frobnicate || echo $?`, "127\n", "sh: frobnicate: not found\n"},
		{"a sourced file of the operating system", `. /lib/svc/share/smf_include.sh; echo $SMF_EXIT_ERR_CONFIG`, "96\n", ""},
		{"a program of the real one", `env -i B=2; echo $?`, "70\n", "not simulated: env -i B=2 in a zone\n"},
		{"options that are not simulated", `ctrun -i core true; ctrun; sh -x; sh /etc/x; kill -STOP $$; sleep 1; echo $?`, "70\n", "not simulated: ctrun -i core true in a zone\n" +
			"not simulated: ctrun in a zone\nnot simulated: sh -x in a zone\nnot simulated: sh /etc/x in a zone\n" +
			"not simulated: /usr/bin/kill -STOP " + strconv.Itoa(os.Getpid()) + " in a zone\nnot simulated: sleep 1 in a zone\n"},
		{"what is no file", `cat /etc; echo $?`, "70\n", "not simulated: cat /etc in a zone\n"},
		{"a test of a file", `echo a; test -f /etc/x || echo b`, "a\n", "not simulated: a test of a file in a zone\n"},
		{"a test whether a file can be run", `[ -x /etc/x ]; echo b`, "", "not simulated: a test of a file in a zone\n"},
		{"a pattern", `echo a; echo /etc/*; echo b`, "a\n", "not simulated: a pattern for names of files in a zone\n"},
		{"stdin goes to the command that reads it", `zonename; cat; cat`, "z1\nwords", ""},
		{"a shell in a shell", `sh -c 'echo $0 $1; exit 3' x y; echo $?`, "sh y\n3\n", ""},
		{"a command in the background is not waited for", `zonename & echo $?`, "0\n", ""},
		{"process substitution", `cat <(echo x)`, "", "sh: 1:5: process substitution is not simulated\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := RunShell(zoneTx(t), "z1", c.script, nil, []byte("words"))
			if diff := cmp.Diff([2]string{c.stdout, c.stderr}, [2]string{got.Stdout, got.Stderr}); diff != "" {
				t.Error(diff)
			}
			if got.Took != 0 || got.Blocked {
				t.Errorf("took %s, blocked %t", got.Took, got.Blocked)
			}
		})
	}
}

func TestAScriptOfAFileRuns(t *testing.T) {
	tx := zoneTx(t)
	write(t, tx.Files, "/zones/z1/root/etc/hello.sh", "#!/usr/bin/bash\nset -o errexit\necho $1 $GREETING\nfalse\necho never\n", 0o755)
	write(t, tx.Files, "/zones/z1/root/etc/plain", "echo x\n", 0o644)
	got := RunShell(tx, "z1", `/etc/hello.sh you; echo $?; /etc/plain; echo $?`, map[string]string{"GREETING": "hey"}, nil)
	if want := "you hey\n1\n126\n"; got.Stdout != want {
		t.Errorf("stdout %q, want %q", got.Stdout, want)
	}
}

func TestTimeOfAScriptPassesOnItsOwnClock(t *testing.T) {
	tx := zoneTx(t)
	start := tx.Now
	tx.Arm(world.Fault{Name: world.FaultHang, Match: "zonename -x", Times: 1, Delay: 2 * time.Second})
	tx.Arm(world.Fault{Name: world.FaultHang, Match: "zonename -y", Times: 1, Delay: 1500 * time.Millisecond})
	got := RunShell(tx, "z1", `zonename -x; zonename -y`, nil, nil)
	if got.Took != 3500*time.Millisecond || !tx.Now.Equal(start) {
		t.Errorf("took %s, clock moved by %s", got.Took, tx.Now.Sub(start))
	}
}

const serve = "/opt/oxide/propolis-server/bin/propolis-server run /opt/oxide/propolis-server/blob/OVMF_CODE.fd 0.0.0.0:12400"

func giveDevices(tx *world.Tx, zone string) {
	k := tx.FindZone(zone).Kernel
	for _, match := range []string{"/dev/vmmctl", "/dev/viona"} {
		k.Config.Resources = append(k.Config.Resources, world.Resource{
			Type: "device", Properties: []world.Property{{Name: "match", Values: []string{match}}},
		})
	}
}

func TestAServerBlocksAScriptUnlessItIsInTheBackground(t *testing.T) {
	for script, blocked := range map[string]bool{
		serve + "; echo after": true,
		"ctrun -l child -o noorphan,regent " + serve + "; echo after": true,
		serve + " & echo after": false,
		"ctrun -l child -o noorphan,regent \\\n" + serve + " &\necho after": false,
		"if true; then { " + serve + "; } & fi; echo after":                 false,
	} {
		tx := zoneTx(t)
		giveDevices(tx, "z1")
		got := RunShell(tx, "z1", script, map[string]string{"SMF_FMRI": "svc:/x:y"}, nil)
		if got.Blocked != blocked || strings.Contains(got.Stdout, "after") == blocked {
			t.Errorf("%s: blocked %t, printed %q %q", script, got.Blocked, got.Stdout, got.Stderr)
		}
		if all := tx.State.Processes; len(all) != 1 || all[0].FMRI != "svc:/x:y" || all[0].Zone != "z1" {
			t.Errorf("%s: processes %v", script, all)
		}
	}
}

func TestAnInnerCommandSuffersFaults(t *testing.T) {
	tx := zoneTx(t)
	tx.Arm(world.Fault{Name: world.FaultFail, Match: "z1 zonename", Times: 1, Text: "zonename: out of luck", Exit: 7})
	got := RunShell(tx, "z1", `zonename; echo $?; zonename`, nil, nil)
	if diff := cmp.Diff(cli.Reply{Stdout: "7\nz1\n", Stderr: "zonename: out of luck\n"}, got); diff != "" {
		t.Error(diff)
	}
	tx.Arm(world.Fault{Name: world.FaultHang, Match: "zonename"})
	if got := RunShell(tx, "z1", `zonename; echo after`, nil, nil); !got.Blocked {
		t.Errorf("a command that hangs does not block: %+v", got)
	}
}

func write(t *testing.T, files host.Files, name, text string, mode fs.FileMode) {
	t.Helper()
	f, err := files.Open(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestALoopWithoutEndBlocks(t *testing.T) {
	if got := RunShell(zoneTx(t), "z1", `until false; do true; done; echo never`, nil, nil); !got.Blocked || got.Stdout != "" {
		t.Errorf("%+v", got)
	}
}

// A program that simulates many sleds at once runs out of descriptors where each
// script leaves some to the garbage collector.
func TestAScriptLeavesNoDescriptorOpen(t *testing.T) {
	open := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("this system does not list descriptors: ", err)
		}
		return len(all)
	}
	tx := zoneTx(t)
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	before := open()
	for range 50 {
		for _, stdin := range []string{"", "words"} {
			if reply := RunShell(tx, "z1", "zonename", nil, []byte(stdin)); reply.Exit != 0 {
				t.Fatal(reply)
			}
		}
	}
	if after := open(); after > before {
		t.Errorf("%d descriptors are open, and %d were", after, before)
	}
}
