package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// standins stand for the programs of IPS. Each takes what its manual page says, in the forms that
// OmniOS' pages have (pkgrepo.1, pkgsend.1 and pkgrecv.1 of omniosorg/pkg5), and refuses all
// else with their exit 2; what they need to find they look for, and fail with exit 1.
func standins() map[string]string {
	const prelude = "#!/bin/sh\nname=${0##*/}\necho \"$name $*\" >>\"$CALLS\"\n" +
		"usage() { echo \"$name: $*\" >&2; exit 2; }\nfail() { echo \"$name: $*\" >&2; exit 1; }\n"
	return map[string]string{
		"pkgrepo": prelude + `
case $1 in
create) # pkgrepo create [--version ver] uri_or_path
	[ $# = 2 ] || usage "$*"
	[ ! -e "$2" ] || fail "$2 exists" # of a directory that is there the page says nothing
	mkdir "$2" && echo 4 >"$2/pkg5.repository" ;;
set) # pkgrepo set [-p publisher]... -s repo_uri_or_path section/property=[value] ...
	[ $# = 4 ] && [ "$2" = -s ] || usage "$*"
	[ -f "$3/pkg5.repository" ] || fail "no repository $3"
	case $4 in publisher/prefix=[a-z0-9A-Z]*) echo "${4#*=}" >"$3/prefix" ;; *) usage "$4" ;; esac ;;
*) usage "$*" ;;
esac
`,
		"pkgsend": prelude + `
# pkgsend publish [-d source]... [-s repo_uri_or_path] [manifest ...]
[ $# = 6 ] && [ "$1 $2 $4" = "publish -s -d" ] || usage "$*"
[ -f "$3/prefix" ] || fail "$3 has no publisher, nor has the manifest"
[ -d "$5" ] && [ -f "$6" ] || fail "no $5 or $6"
while read -r action payload _; do
	case $action in file | license) [ -f "$5/$payload" ] || fail "no $payload in $5" ;; esac
done <"$6"
sed -n 's,^set name=pkg.fmri value="pkg:/\(.*\)@.*"$,\1,p' "$6" >"$3/stem"
[ -s "$3/stem" ] || fail "no pkg.fmri in $6"
cp "$6" "$3/manifest"
[ -z "$PUBLISH_FAILS" ] || fail "as the test wants it"
`,
		"pkgrecv": prelude + `
# pkgrecv [-aknrv] [-s src] [-d dest] (fmri|pattern) ...
[ $# = 6 ] && [ "$1 $3 $4" = "-s -a -d" ] || usage "$*"
[ ! -e "$5" ] || fail "$5 exists" # "cannot already exist"
[ "$(cat "$2/stem")" = "$6" ] || fail "no package matches $6"
cp "$2/manifest" "$5"
`,
	}
}

// publish.sh calls the programs of IPS as their pages say: the archive has the package of the
// distribution, also where one was there before, and nothing else is left.
func TestPublishCallsIPSAsItsPagesSay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a directory")
	temporary := t.TempDir()
	files, err := ips(example())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range standins() {
		files = append(files, file{"bin/" + name, 0o755, []byte(text)})
	}
	for _, f := range files {
		name := filepath.Join(dir, f.name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, f.data, f.mode)); err != nil {
			t.Fatal(err)
		}
	}
	publish := func(variable string, args ...string) (int, string) {
		c := exec.Command("/bin/sh", append([]string{filepath.Join(dir, "publish.sh")}, args...)...)
		c.Env = []string{"PATH=" + filepath.Join(dir, "bin") + ":/usr/bin:/bin", "CALLS=" + filepath.Join(dir, "calls"), "TMPDIR=" + temporary, variable}
		out, err := c.CombinedOutput()
		if left, lerr := os.ReadDir(temporary); lerr != nil || len(left) > 0 {
			t.Errorf("publish.sh %v left %v: %v", args, left, lerr)
		}
		if c.ProcessState == nil {
			t.Fatal(err)
		}
		return c.ProcessState.ExitCode(), string(out)
	}
	for _, kind := range []string{"omnios", "helios", "omnios"} {
		if exit, out := publish("", kind); exit != 0 {
			t.Fatalf("publish.sh %s: exit %d: %s", kind, exit, out)
		}
		want, err := os.ReadFile(filepath.Join(dir, "sledctl-"+kind+".p5m"))
		got, gerr := os.ReadFile(filepath.Join(dir, "sledctl-"+kind+".p5p"))
		if err != nil || gerr != nil || string(got) != string(want) {
			t.Errorf("%s: the archive has another package: %v %v", kind, err, gerr)
		}
	}
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	if n := strings.Count(string(calls), "\n"); err != nil || n != 3*4 {
		t.Errorf("%d calls: %v\n%s", n, err, calls)
	}
	if exit, out := publish("PUBLISH_FAILS=yes", "helios"); exit != 1 || !strings.Contains(out, "as the test wants it") {
		t.Errorf("pkgsend fails: exit %d: %s", exit, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "sledctl-helios.p5p")); err != nil {
		t.Errorf("pkgsend fails, and the archive before is gone: %v", err)
	}
	for _, args := range [][]string{nil, {"smartos"}, {"omnios", "helios"}} {
		if exit, out := publish("", args...); exit != 2 || !strings.Contains(out, "usage: publish.sh omnios|helios") {
			t.Errorf("publish.sh %v: exit %d: %s", args, exit, out)
		}
	}
}
