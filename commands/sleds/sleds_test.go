package sleds

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	f := File{Current: "sled2", Sleds: map[string]Sled{
		"sled2": {Agent: "https://sled2.example:12410", Cert: "me.pem", Key: "me.key", CA: "ca.pem", Token: "token"},
		"sled3": {SSH: "root@sled3 pfexec sledctl"},
		"drill": {Host: "sim:/tmp/drill"},
	}}
	text, err := f.Text()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse("sleds.toml", text)
	if diff := cmp.Diff(f, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestAnErrorNamesTheField(t *testing.T) {
	for text, want := range map[string]string{
		"[sleds.a]\nhots = \"x\"": "f: line 2: unknown key sleds.a.hots",
		"current = 3":             "f: line 1: not TOML, or a value that is no text",
		"[sleds.a":                "f: line 1: not TOML",
		"current = \"b\"\n[sleds.a]\nhost = \"sim\"": `f: current: no sled "b"`,
		"[sleds.a]":                             "f: sleds.a: want one of host, agent and ssh",
		"[sleds.a]\nhost=\"sim\"\nssh=\"a\"":    "f: sleds.a: want one of",
		"[sleds.a]\nhost=\"sim\"\ntls_ca=\"a\"": "f: sleds.a: tls_cert, tls_key, tls_ca and token_file are for agent",
		"[sleds.a]\nssh=\"-oProxyCommand=x\"":   "f: sleds.a: ssh \"-oProxyCommand=x\": want the machine first",
		"[sleds.a]\nssh=\"  \"":                 "f: sleds.a: ssh \"  \": want the machine first",
		"[sleds.a]\nssh=\" -oProxyCommand=x\"":  "f: sleds.a: ssh \" -oProxyCommand=x\": want the machine first",
		"[sleds.local]\nssh=\"x\"":              `a sled cannot be called "local"`,
		"[sleds.\"a b\"]\nssh=\"x\"":            `sled "a b": want lower-case letters`,
	} {
		if _, err := Parse("f", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestTheCommandLineOfSSH(t *testing.T) {
	words := []string{"instance", "ensure", "web1", "--filter", "a b'c"}
	for _, test := range []struct {
		ssh      string
		terminal bool
		want     string
	}{
		{"root@sled2", false, `ssh root@sled2 sledctl instance ensure web1 --filter 'a b'\''c'`},
		{"root@sled2 pfexec /opt/sledctl", true, `ssh -t root@sled2 pfexec /opt/sledctl instance ensure web1 --filter 'a b'\''c'`},
	} {
		if got := strings.Join(Sled{SSH: test.ssh}.Command(words, test.terminal), " "); got != test.want {
			t.Errorf("%s\nwant %s", got, test.want)
		}
	}
}

// Since when a sled is as it is, is what it reports about its first problem, and nothing else.
func TestSinceWhenIsWhatTheSledSays(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	f := File{Sleds: map[string]Sled{"a": {SSH: "a"}}}
	for _, w := range []struct{ says, since, age string }{
		{`{"verdict":"TROUBLE","problems":[{"text":"x","since":"2026-11-26T11:42:00Z"},{"text":"y","since":"2026-11-20T11:42:00Z"}]}`, "2026-11-26T11:42:00Z", "18m"},
		{`{"verdict":"TROUBLE","problems":[{"text":"x","since":null}]}`, "-", "-"},
		{`{"verdict":"OK","problems":[]}`, "-", "-"},
		{`no answer`, "-", "-"},
	} {
		asked := f.Ask(t.Context(), func(context.Context, []string) (string, string, int, error) { return w.says, "", 0, nil }, []string{"a"})
		list := List(true, now)
		since := list.Columns[len(list.Columns)-1]
		if got := []string{since.Value(asked[0]), since.Human(asked[0])}; since.Name != "since" || got[0] != w.since || got[1] != w.age {
			t.Errorf("%s: %s %q", w.says, since.Name, got)
		}
	}
}
