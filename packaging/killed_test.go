package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sledctl/sledctl/test/sledtest"
)

// prelude makes each command of the installer a step: at step KILL_AT the installer and all that it
// runs are killed, before the command or, if HALF is 1, when it has done half of its work. BEFORE, if
// set, is a directory that gets the sled as it is before each step. It also stands for the sled:
// services and datasets are files.
const prelude = `
step() {
	echo "$*" >>"$STEPS"
	[ "$KILL_AT$BEFORE" != 0 ] || return 0
	printf . >>"$STEPS.count" # the shell reads byte by byte, and pipes have no variables in common
	read -r _n <"$STEPS.count" || _n=${#_n}
	[ -z "$BEFORE" ] || { command mkdir "$BEFORE/$_n" 2>/dev/null && command cp -a "$SLED/." "$BEFORE/$_n"; }
	[ "$KILL_AT" -gt 0 ] && [ "$_n" -ge "$KILL_AT" ] || return 0
	[ "$HALF" = 0 ] || half "$@"
	kill -9 0
}
half() {
	case $1${2:-} in
	cat) command head -c 9 ;;
	cp*) shift; command cp "$@"; for _last; do :; done; command find "$_last" -type f | command tail -1 | while read -r _f; do : >"$_f"; done ;;
	rm-rf) command find "$3" -type f 2>/dev/null | command head -3 | while read -r _f; do command rm -f "$_f"; done ;;
	esac
}
for _c in cat chmod cmp cp dirname grep ln mkdir mv rm rmdir sed sleep sort tr; do
	eval "$_c() { step $_c \"\$@\"; command $_c \"\$@\"; }"
done
svcs() { step svcs "$@"; eval "_f=\$$#"; [ -f "$SLED/smf/${_f##*/}" ] && command cat "$SLED/smf/${_f##*/}"; }
svccfg() {
	step svccfg "$@"
	[ -f "$SLED/root$2" ] || [ -f "$2" ] || return 1
	case $2 in */sledctl.xml) _f=instances:default ;; */sledctl-agent.xml) _f=agent:default ;; *) return 1 ;; esac
	[ -f "$SLED/smf/$_f" ] || echo disabled >"$SLED/smf/$_f"
}
svcadm() {
	step svcadm "$@"
	case $1,$2 in
	restart,*manifest-import*)
		[ -n "$(command find "$SLED/root" -name sledctl.xml -path '*/site/*' -o -name sledctl.xml -path '*custom/smf*')" ] || command rm -f "$SLED/smf/instances:default"
		[ -n "$(command find "$SLED/root" -name sledctl-agent.xml -path '*/site/*' -o -name sledctl-agent.xml -path '*custom/smf*')" ] || command rm -f "$SLED/smf/agent:default" ;;
	restart,*) ;;
	*,*) [ -f "$SLED/smf/${2##*/}" ] || return 1
		case $1 in enable) echo online ;; *) echo disabled ;; esac >"$SLED/smf/${2##*/}" ;;
	esac
}
zpool() {
	step zpool "$@"
	case $1 in status) [ ! -f "$SLED/ramdisk" ] || echo ramdisk ;; list) echo 4711 ;; esac
}
zfs() {
	step zfs "$@"
	case $1 in
	list)
		[ "$2" = -H ] || { [ -f "$SLED/zfs/${2##*/}" ] && return; return 1; }
		for _f in "$SLED"/zfs/*; do [ ! -f "$_f" ] || { read -r _d <"$_f"; echo "$_d	/opt/sledctl"; }; done ;;
	create) echo "$4" >"$SLED/zfs/${4##*/}"; command mkdir -p "$SLED/root/opt/sledctl" ;;
	destroy) command rm -rf "$SLED/root/opt/sledctl" && command rm "$SLED/zfs/${2##*/}" ;;
	esac
}
`

// rig is where the installer runs: a directory that stands for a sled.
type rig struct {
	t   *testing.T
	dir string // with the unpacked tarballs, and the prelude
}

func newRig(t *testing.T) rig {
	t.Helper()
	r := rig{t, t.TempDir()}
	for _, version := range []string{"v0", "v1", "v2"} {
		in := example()
		in.version, in.program = version, []byte("#!/bin/sh\nexit 0\n")
		files, err := content(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range below(version, files) {
			r.write(f.name, string(f.data), f.mode)
		}
	}
	r.write("prelude", prelude, 0o644)
	r.write("bin/sh", "#!/bin/sh\nscript=$2; shift 2\nexec /bin/sh -c \". \\\"\\$PRELUDE\\\"; $script\" \"$@\"\n", 0o755)
	return r
}

func (r rig) write(name, text string, mode os.FileMode) {
	name = filepath.Join(r.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), mode)); err != nil {
		r.t.Fatal(err)
	}
}

// sled is a fresh sled.
func (r rig) sled(name, kind string) string {
	release := map[string]string{"smartos": "SmartOS 20261105T000000Z\n"}[kind]
	r.write(name+"/root/etc/release", release+"OmniOS\n", 0o644)
	for _, dir := range []string{"smf", "zfs", "tmp", "root/var/opt", "root/var/svc/manifest/site", "root/etc/security/exec_attr.d", "root/etc/security/prof_attr.d", "root/opt", "root/usr/share/bash-completion/completions"} {
		if err := os.MkdirAll(filepath.Join(r.dir, name, dir), 0o755); err != nil {
			r.t.Fatal(err)
		}
	}
	if kind == "ramdisk" {
		r.write(name+"/ramdisk", "", 0o644)
	}
	return filepath.Join(r.dir, name)
}

// copied is a sled like another one.
func (r rig) copied(t *testing.T, sled, name string) string {
	t.Helper()
	to := filepath.Join(r.dir, name)
	if out, err := exec.Command("cp", "-a", sled, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { os.RemoveAll(to) })
	return to
}

// run runs a line such as "v1 upgrade" on a sled, "installed" for the version that lies there, with
// variables of the prelude. It returns the steps.
func (r rig) run(t *testing.T, sled, line string, variables ...string) []string {
	t.Helper()
	words := strings.Fields(line)
	script := filepath.Join(r.dir, words[0], "install.sh")
	if words[0] == "installed" {
		script = filepath.Join(sled, "root/opt/sledctl/install.sh")
		if _, err := os.Stat(filepath.Join(sled, "root/opt/custom/lib/sledctl")); err == nil {
			script = filepath.Join(sled, "root/opt/custom/lib/sledctl/install.sh")
		}
		if _, err := os.Stat(script); err != nil { // a run that was killed has removed it
			script = filepath.Join(r.dir, "v2/install.sh")
		}
	}
	count := filepath.Join(t.TempDir(), "steps")
	c := exec.Command("/bin/sh", append([]string{"-c", `. "$PRELUDE"; . "$0"`, script}, words[1:]...)...)
	c.Dir, c.SysProcAttr = r.dir, &syscall.SysProcAttr{Setpgid: true}
	c.Env = append([]string{
		"PATH=" + filepath.Join(r.dir, "bin") + ":/usr/bin:/bin", "PRELUDE=" + filepath.Join(r.dir, "prelude"), "STEPS=" + count, "SLED=" + sled, "TMPDIR=" + filepath.Join(sled, "tmp"),
		"SLEDCTL_HOST_ROOT=" + filepath.Join(sled, "root"), "KILL_AT=0", "HALF=0", "BEFORE=",
	}, variables...)
	out, err := c.CombinedOutput()
	status, _ := errors.AsType[*exec.ExitError](err)
	if wasKilled := status != nil && status.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL; err != nil && !wasKilled {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	done, err := os.ReadFile(count)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(strings.Lines(string(done)))
}

// halves says whether a step can be done by half.
func halves(step string) bool {
	return step == "cat\n" || strings.HasPrefix(step, "cp ") || strings.HasPrefix(step, "rm -rf ")
}

// found is all of a sled: names, modes, contents.
func found(t *testing.T, sled string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(sled, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := ""
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			text, err = os.Readlink(name)
		case info.Mode().IsRegular():
			var data []byte
			data, err = os.ReadFile(name)
			text = string(data)
		}
		fmt.Fprintf(&b, "%s %v %.60q %d\n", strings.TrimPrefix(name, sled), info.Mode(), text, len(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// stories are what is killed, and what was done before.
func stories() map[string]struct{ kind, before, line string } {
	return map[string]struct{ kind, before, line string }{
		"install":               {"pool", "", "v1 install"},
		"upgrade":               {"pool", "v0 install, v1 install, v1 enable agent", "v2 upgrade"},
		"rollback":              {"pool", "v1 install, v2 install, v2 enable agent", "installed rollback"},
		"enable":                {"pool", "v1 install", "v1 enable instances"},
		"uninstall":             {"pool", "v1 install, v1 enable agent", "installed uninstall"},
		"uninstall of a change": {"pool", "v1 install, CHANGE", "installed uninstall"},
		"purge":                 {"pool", "v1 install", "v1 uninstall --purge"},
		"ramdisk install":       {"ramdisk", "", "v1 install --pool tank"},
		"ramdisk rollback":      {"ramdisk", "v1 install --pool tank, v2 install", "installed rollback"},
		"ramdisk uninstall":     {"ramdisk", "v1 install --pool tank, CHANGE", "installed uninstall"},
		"smartos install":       {"smartos", "", "v1 install"},
		"smartos upgrade":       {"smartos", "v1 install", "v2 install"},
		"smartos uninstall":     {"smartos", "v1 install", "installed uninstall"},
	}
}

// An installer that is killed at any of its commands, or halfway through one, and is run again, has
// done what one does that is not killed, and left nothing else.
func TestInstallerIsKilled(t *testing.T) {
	for name, story := range stories() {
		t.Run(name, func(t *testing.T) {
			sledtest.Sample(t, name)
			t.Parallel()
			r := newRig(t)
			fresh := r.sled("fresh", story.kind)
			start := r.copied(t, fresh, "start")
			for line := range strings.SplitSeq(story.before, ", ") {
				switch line {
				case "":
				case "CHANGE":
					change(t, start)
				default:
					r.run(t, start, line)
				}
			}
			whole := r.copied(t, start, "whole")
			steps, before := r.watched(t, whole, story.line)
			want := found(t, whole)
			if found(t, start) == want {
				t.Fatal("it changes nothing")
			}
			seen := map[string]bool{}
			for _, at := range killedAt(len(steps), every(41)) {
				r.again(t, seen, before(at), story.line, want)
				if halves(steps[at-1]) {
					sled := r.copied(t, start, fmt.Sprint("halved", at))
					r.run(t, sled, story.line, fmt.Sprint("KILL_AT=", at), "HALF=1")
					r.again(t, seen, sled, story.line, want)
				}
			}
		})
	}
}

// watched runs a line on a sled, and returns its steps, and where the sled lies as it
// was before each: as it is if the installer is killed there.
func (r rig) watched(t *testing.T, sled, line string) (steps []string, before func(at int) string) {
	t.Helper()
	dir := t.TempDir()
	steps = r.run(t, sled, line, "BEFORE="+dir)
	if len(steps) < 5 {
		t.Fatalf("only the steps %q", steps)
	}
	return steps, func(at int) string { return filepath.Join(dir, fmt.Sprint(at)) }
}

// again runs what was killed again, unless it was seen with what is left. There is no
// sled of a step that begins together with the next, in a pipe.
func (r rig) again(t *testing.T, seen map[string]bool, sled, line, want string) {
	t.Helper()
	if _, err := os.Stat(sled); err != nil {
		return
	}
	left := found(t, sled)
	if seen[left] {
		return
	}
	seen[left] = true
	r.run(t, sled, line)
	if got := found(t, sled); got != want {
		t.Errorf("%s, killed at %s, and run again:\n%s", line, filepath.Base(sled), difference(want, got))
	}
}

// killedAt are the steps of some that the installer is killed at: the first, those at a
// distance, and the last.
func killedAt(steps, distance int) []int {
	var at []int
	for n := 1; n < steps; n += distance {
		at = append(at, n)
	}
	return append(at, steps)
}

// every is the distance of the steps that the installer is killed at: a soak takes each
// one, a test each fifth, a short one those at the distance that it gives.
func every(short int) int {
	switch {
	case testing.Short():
		return short
	case sledtest.Soak():
		return 1
	}
	return 5
}

// difference are the lines that one of two texts has alone.
func difference(want, got string) string {
	var b strings.Builder
	for _, side := range [][3]string{{"-", want, got}, {"+", got, want}} {
		for line := range strings.Lines(side[1]) {
			if !strings.Contains("\n"+side[2], "\n"+line) {
				b.WriteString(side[0] + " " + line)
			}
		}
	}
	return b.String()
}

// change alters the configuration.
func change(t *testing.T, sled string) {
	t.Helper()
	name := filepath.Join(sled, "root/etc/sledctl/config.toml")
	if _, err := os.Stat(filepath.Join(sled, "ramdisk")); err == nil {
		name = filepath.Join(sled, "root/opt/sledctl/config.toml")
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("# changed\n"); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// After an install that was killed, uninstall leaves nothing, either.
func TestUninstallAfterAnInstallThatWasKilled(t *testing.T) {
	if sledtest.Quick() {
		t.Skip("takes seconds")
	}
	for _, kind := range []string{"pool", "ramdisk", "smartos"} {
		t.Run(kind, func(t *testing.T) {
			sledtest.Sample(t, kind)
			t.Parallel()
			r := newRig(t)
			fresh := r.sled("fresh", kind)
			line := "v1 install"
			if kind == "ramdisk" {
				line += " --pool tank"
			}
			whole := r.copied(t, fresh, "whole")
			steps, before := r.watched(t, whole, line)
			r.run(t, whole, "v1 uninstall --purge")
			want := found(t, whole)
			seen := map[string]bool{}
			for _, at := range killedAt(len(steps), every(19)) {
				r.again(t, seen, before(at), "v1 uninstall --purge", want)
			}
		})
	}
}
