package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/engine/operation"
)

// A change is noted with the user of the process, and with what sudo, a login and
// the service manager add.
func TestCallerTakesTheRestFromTheEnvironment(t *testing.T) {
	for _, c := range []struct {
		environ []string
		from    string
		via     operation.Via
	}{
		{nil, "", operation.ViaCommand},
		{[]string{"LOGNAME=" + userName(os.Getuid())}, "", operation.ViaCommand},
		{[]string{"LOGNAME=anna-of-before"}, "anna-of-before", operation.ViaCommand},
		{[]string{"LOGNAME=other", "SUDO_USER=anna-of-before", "SSH_CONNECTION=192.0.2.7 51234 192.0.2.1 22"}, "anna-of-before@192.0.2.7", operation.ViaCommand},
		{[]string{"SSH_CONNECTION=192.0.2.7 51234 192.0.2.1 22"}, "192.0.2.7", operation.ViaCommand},
		{[]string{"SMF_FMRI=svc:/site/sledctl:default"}, "", operation.ViaService},
	} {
		by := caller(c.environ)
		if by.From != c.from || by.Via != c.via || by.UID != os.Getuid() || by.User == "" {
			t.Errorf("%q: %+v, want from %q via %q", c.environ, by, c.from, c.via)
		}
	}
}

// What is kept of a command line has no password and no document in it.
func TestArgvHasNoSecret(t *testing.T) {
	words := []string{"instance", "migrate", "web1", "--to-command", "sshpass -p hush ssh b", "--to-command=sshpass -p hush", "--agent", "https://me:hush@sled:1", `{"base64":"hush"}`, "--wait", "https://h/disk?signature=hush"}
	kept := strings.Join(argv(words), " ")
	if strings.Contains(kept, "hush") {
		t.Errorf("kept: %s", kept)
	}
	if want := "instance migrate web1 --to-command (a command) --to-command=(a command) --agent https://...@sled:1 (a document) --wait https://h/disk?..."; kept != want {
		t.Errorf("kept: %s\nwant: %s", kept, want)
	}
}
