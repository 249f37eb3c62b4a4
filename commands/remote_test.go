package commands_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/test/sledtest"
)

// What an agent is asked for by sledctl elsewhere prints the same, and ends with
// the same exit code, as on the sled itself.
func TestAnAgentIsAskedFromElsewhere(t *testing.T) {
	if sledtest.Quick() {
		t.Skip("takes seconds")
	}
	t.Parallel() // it waits for the clock
	s := sledtest.New(t, sledtest.Small(), "")
	s.Run("bootstrap")
	a := s.StartAgent(t, s.Host())
	far := sledtest.New(t, sledtest.Small(), "") // a machine that has nothing to do with it
	remote := func(line string) sledtest.Answer {
		t.Helper()
		return far.Try(line + " --agent unix:" + a.Socket)
	}
	s.Run("instance ensure web1")
	s.Run("instance ensure web2 --protect")
	same := func(line string, exit int) {
		t.Helper()
		there, here := remote(line), s.Try(line)
		there.Errs = strings.ReplaceAll(there.Errs, " --agent unix:"+a.Socket, "") // of the commands that it names
		if there.Exit != exit || here.Exit != exit || there.Out != here.Out {
			t.Errorf("%s: exit %d here and %d there, want %d\n%s%s\n%s%s", line, here.Exit, there.Exit, exit, here.Out, here.Errs, there.Out, there.Errs)
		}
		if exit != 0 && hint(there.Errs) != hint(here.Errs) {
			t.Errorf("%s: here: %s\nthere: %s", line, here.Errs, there.Errs)
		}
	}
	same("instance list -o json", 0)
	same("instance get web1 -o json", 0)
	same("instance get web9", 4)
	same("instance get web9 -o json", 4)
	same("instance start web9", 4)
	same("instance get web1 --diff --detailed-exitcode", 0)
	same("instance get web9 --diff", 4)
	same("instance get web1 -o toml", 0)
	same("instance get web9 -o toml", 4)
	same("instance get web1 web2 --diff", 2)
	same("instance start Web", 2)
	same("instance stop web1 -H --columns name,state", 0)
	same("instance reboot web1", 5)
	same("instance delete web9", 0)
	same("instance delete web9 --must-exist", 4)
	same("instance delete web2", 8)
	if there := remote("instance start web1 -H --columns state"); there.Exit != 0 || there.Out != "running\n" {
		t.Errorf("start: %+v", there)
	}
	if there := remote("instance reboot web1 -o name"); there.Exit != 0 || there.Out != "web1\n" {
		t.Errorf("reboot: %+v", there)
	}
	if there := remote("instance delete web1"); there.Exit != 0 || s.Try("instance get web1").Exit != 4 {
		t.Errorf("delete: %+v", there)
	}

	same("instance ensure web2 --cpus 999", 2)
	same("instance ensure Web --cpus 1", 2)
	same("instance ensure web2 --cpus 8", 5)
	same("instance ensure web2 --protect --no-protect", 2)
	same("instance wait web2 --for running -o json", 0)
	same("instance wait web2 web2 --for failed --timeout 1s", 7)
	same("instance wait web2 web9 --for running", 4)
	same("instance wait web9 --for absent", 0)
	same("instance wait web2", 2)
	zone := strings.TrimSpace(s.Run("instance get web2 -H --columns zone"))
	s.Command("zoneadm -z " + zone + " halt")
	same("instance get web2 --diff --detailed-exitcode", 10)
	same("instance get web2 --diff -o json", 0)
	same("instance wait web2 --for running", 1)
	s.Run("instance ensure web2")
	same("instance watch web2 -H --columns name,state --timeout 1s", 7)
	same("instance watch web9", 4)
	same("instance list --filter last=ok -o name", 0)
	same("instance list --filter last!=ok -o name", 0)
	same("instance ensure --failed", 0)

	// What an agent cannot be asked for, it is not.
	for _, line := range []string{
		"instance start web2 -n", "instance stop --all", "instance stop web2 --grace 1s", "instance delete web2 --yes", "instance delete web2 --migration-id 11111111-2222-4333-8444-555555555555", "instance reboot web2 --explain",
		"instance ensure web2 -n", "instance ensure --all", "instance ensure web2 --migrate-from 10.0.0.1:1",
	} {
		if there := remote(line); there.Exit != 2 || !strings.Contains(there.Errs, "an agent cannot be asked") {
			t.Errorf("%s: %+v", line, there)
		}
	}
	for address, exit := range map[string]int{"unix:/nowhere": 1, "unix:sock": 2, "tcp:127.0.0.1:1": 2, "http://127.0.0.1": 2, "http://u@127.0.0.1:1": 2} {
		if there := far.Try("instance list --agent " + address); there.Exit != exit {
			t.Errorf("%s: %+v, want exit %d", address, there, exit)
		}
	}
	if here := far.Try("instance list"); here.Exit != 8 { // nothing was prepared there
		t.Errorf("the machine that asked: %+v", here)
	}
}

// hint is what an error says, and what to do about it.
func hint(errs string) string {
	var kept []string
	for line := range strings.Lines(errs) {
		if strings.Contains(line, "error:") || strings.Contains(line, "hint:") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// textFile is a file with a text.
func textFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// An instance is described where the command runs, by flags and a file there, and
// created where the agent is. A second run changes nothing, and a failure reads as it
// does on the sled.
func TestAnInstanceIsMadeFromElsewhere(t *testing.T) {
	t.Parallel()
	s := sledtest.New(t, sledtest.Small(), "")
	s.Run("bootstrap")
	a := s.StartAgent(t, s.Host())
	far := sledtest.New(t, sledtest.Small(), "")
	described := textFile(t, "name = 'web1'\ncpus = 2\nmemory = '1G'\n[[nics]]\nvlan = 7\n")
	ensure := "instance ensure --file " + described + " --cpus 3 --protect -H --columns name,state,cpus,memory,protected --agent unix:" + a.Socket
	for range 2 {
		if there := far.Try(ensure); there.Exit != 0 || there.Out != "web1\trunning\t3\t1073741824\ttrue\n" {
			t.Fatalf("%+v", there)
		}
	}
	before := s.Run("instance get web1 -o json")
	if s.Run("instance ensure --file " + described + " --cpus 3"); s.Run("instance get web1 -o json") != before {
		t.Error("on the sled it is another one")
	}
	const id = "6f1c2f3e-0d4a-4a55-9b0e-5f3d2c1b0a99"
	if there := far.Try("instance ensure " + id + " --name other --agent unix:" + a.Socket + " -H --columns id,name"); there.Out != id+"\tother\n" {
		t.Errorf("by an id: %+v", there)
	}
	if there := far.Try("instance ensure web1 --cpus 4 --no-protect --recreate -H --columns cpus,protected --agent unix:" + a.Socket); there.Out != "4\tfalse\n" {
		t.Errorf("rebuilt: %+v", there)
	}
}

// A machine as a whole is read where the command runs, from whichever file or
// document, and made where the agent is: what is wrong with it is told with the
// same words and lines as on the sled, whose volumes are meant.
func TestAMachineAsAWholeIsSent(t *testing.T) {
	t.Parallel()
	s := sledtest.New(t, sledtest.Small(), "")
	s.Run("bootstrap")
	pool := s.Value("base list -H --columns pool")
	s.Command("zfs create -V 1G " + pool + "/web1")
	a := s.StartAgent(t, s.Host())
	far := sledtest.New(t, sledtest.Small(), "") // a machine that has nothing to do with it, nor those volumes
	dir := t.TempDir()
	file := func(name, text string) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	config := file("web1.toml", "# the machine\n[block_dev.image]\ntype = \"file\"\npath = \"/dev/zvol/rdsk/"+pool+"/web1\"\n[dev.boot]\ndriver = \"pci-nvme\"\nblock_dev = \"image\"\npci-path = \"0.16.0\"\n"+
		"[dev.net0]\ndriver = \"pci-virtio-viona\"\nvnic = \"web0\"\npci-path = \"0.8.0\"\n[main]\nbootrom = \"/elsewhere\"\n")
	ask := func(line string, stdin string) migration.Answer {
		return far.Answers(t.Context(), far.Host(), strings.Fields(line+" --agent unix:"+a.Socket), []byte(stdin))
	}
	here := func(line string, stdin string) migration.Answer {
		return s.Answers(t.Context(), s.Host(), strings.Fields(line), []byte(stdin))
	}
	said := func(got migration.Answer) string { // without the times, and the agent in the commands that are named
		return regexp.MustCompile(` --agent unix:`+regexp.QuoteMeta(a.Socket)+`|\(after [^)]*\)|"elapsed_ms":[0-9]+`).ReplaceAllString(string(got.Stderr), "")
	}

	// It is made as it would have been there, and then there is nothing to do.
	for range 2 {
		if there := ask("instance ensure web1 --spec "+config+" --nic over=net0,vlan=7 -H --columns name,state", ""); there.Exit != 0 || string(there.Stdout) != "web1\trunning\n" || !strings.Contains(string(there.Stderr), "bootrom") {
			t.Fatalf("exit %d: %s%s", there.Exit, there.Stdout, there.Stderr)
		}
	}
	before := s.Run("instance get web1 -o json")
	if again := here("instance ensure web1 --spec "+config+" --nic over=net0,vlan=7", ""); again.Exit != 0 || s.Run("instance get web1 -o json") != before {
		t.Errorf("on the sled it is another one: exit %d %s", again.Exit, again.Stderr)
	}
	if there := far.Try("instance get web1 --agent unix:" + a.Socket + " -o json"); !strings.Contains(there.Out, pool+"/web1") {
		t.Errorf("its disks are not those of the spec: %s", there.Out)
	}

	// By whichever way it comes, and whatever is wrong with it.
	sent := s.Run("propolis spec show web1 -o json")
	for name, line := range map[string]struct{ line, stdin string }{
		"another machine":           {"instance ensure web1 --spec " + file("none.toml", "[main]\ncpus = 2\n"), ""},
		"from standard input":       {"instance ensure web1 --spec - --nic over=net0,vlan=7", sent},
		"next to its document":      {"instance ensure --file " + file("doc.toml", "name = 'web1'\nspec = 'web1.toml'\n[[nics]]\nover = 'net0'\nvlan = 7\n"), ""},
		"in its document":           {"instance ensure --file " + file("doc.json", "{\n\"name\": \"web1\",\n\"nics\": [{\"over\": \"net0\", \"vlan\": 7}],\n\"spec\": "+sent+"}"), ""},
		"a document of nowhere":     {"instance ensure --file " + dir + "/nowhere.json", ""},
		"a file of nowhere":         {"instance ensure web1 --spec " + dir + "/nowhere.json", ""},
		"both standard input":       {"instance ensure --file - --spec -", ""},
		"disks next to it":          {"instance ensure web1 --spec " + config + " --disk /x", ""},
		"what is no machine":        {"instance ensure web2 --spec " + file("no.json", "{"), ""},
		"wrong in lines":            {"instance ensure web2 --spec " + file("bad.toml", "[dev.boot]\ndriver = \"pci-nvme\"\nblock_dev = \"image\"\npci-path = \"0.40.0\"\n\n[dev.net0]\ndriver = \"e1000\"\n"), ""},
		"wrong in lines of JSON":    {"instance ensure web2 --spec " + file("bad.json", "{\n\n\"board\": {\"cpus\": 2},\n\"parts\": {}}"), ""},
		"wrong in its document":     {"instance ensure --file " + file("baddoc.json", "{\"name\": \"web2\",\n\"spec\": {\n\"parts\": {}}}"), ""},
		"a volume of the asker's":   {"instance ensure web2 --spec " + file("far.toml", "[block_dev.image]\ntype = \"file\"\npath = \"/dev/zvol/rdsk/rpool/nowhere\"\n[dev.boot]\ndriver = \"pci-nvme\"\nblock_dev = \"image\"\npci-path = \"0.16.0\"\n"), ""},
		"a foreign volume":          {"instance ensure web2 --spec " + config, ""},
		"wrong, and told as JSON":   {"instance ensure web2 --spec " + dir + "/bad.toml -o json", ""},
		"more memory than there is": {"instance ensure web1 --memory 900G --spec " + config, ""},
	} {
		t.Run(name, func(t *testing.T) {
			there, here := ask(line.line, line.stdin), here(line.line, line.stdin)
			if there.Exit != here.Exit || string(there.Stdout) != string(here.Stdout) || said(there) != said(here) {
				t.Errorf("on the sled: exit %d: %s%s\nfrom elsewhere: exit %d: %s%s", here.Exit, here.Stdout, said(here), there.Exit, there.Stdout, said(there))
			}
		})
	}

	// What is sent by others than sledctl may be the spec itself, and is no name.
	for body, want := range map[string]struct {
		status int
		says   string
	}{
		`{"spec": "/etc/passwd"}`:                                       {400, `key \"spec\": want the spec itself`},
		`{"spec": {}, "machine": {"file": "x", "text": ""}}`:            {400, `key \"machine\": want none with a spec`},
		`{"machine": {"txt": ""}}`:                                      {400, `key \"machine.txt\": unknown key`},
		`{"spec": {"parts": 1}}`:                                        {400, "spec of the body"},
		`{"nics": [{"over": "net0", "vlan": 7}], "spec": ` + sent + `}`: {200, `"name":"web1"`},
	} {
		if status, said := a.Send("PUT", "/instances/web1", sledtest.LatestAPI, body); status != want.status || !strings.Contains(said, want.says) {
			t.Errorf("%s: %d %s", body, status, said)
		}
	}
}

// What changes is printed elsewhere as on the sled, until ^C; a wait ends when its
// state has come.
func TestInstancesAreWatchedFromElsewhere(t *testing.T) {
	t.Parallel()
	s := sledtest.New(t, sledtest.Small(), "")
	s.Run("bootstrap")
	s.Run("instance ensure web1")
	a := s.StartAgent(t, s.Host())
	far := sledtest.New(t, sledtest.Small(), "")
	at := " -H --columns name,state,reason --agent unix:" + a.Socket
	printed := func(w *watched, want string) {
		t.Helper()
		var got string
		for until := time.Now().Add(30 * time.Second); got != want && time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
			got = arrived(w.printed())
		}
		if got != want {
			t.Errorf("printed %q, want %q", got, want)
		}
	}
	w := beginOf(far, far.Host(), "instance watch"+at)
	printed(w, "web1\trunning\t-\n")
	wait := beginOf(far, far.Host(), "instance wait web1 --for stopped"+at)
	s.Run("propolis stop --instance web1")
	if end := <-wait.done; end.Exit != 0 {
		t.Errorf("the wait: %+v", end)
	}
	printed(wait, "web1\tdestroyed\t-\n")
	printed(w, "web1\trunning\t-\nweb1\tdestroyed\t-\n")
	s.Run("instance delete web1")
	printed(w, "web1\trunning\t-\nweb1\tdestroyed\t-\nweb1\tabsent\tit was deleted\n")
	if end := w.end(); end.Exit != 130 {
		t.Errorf("^C: %+v", end)
	}
}

// A client that watches or waits continues after the agent is restarted. It reports
// the restart once, and then what has changed or gone: it misses nothing, and reports
// nothing twice.
func TestWhoWatchesFromElsewhereOutlivesTheAgent(t *testing.T) {
	if sledtest.Quick() {
		t.Skip("takes seconds")
	}
	t.Parallel() // it waits for the clock
	s := sledtest.New(t, sledtest.Small(), "")
	s.Run("bootstrap")
	for _, name := range []string{"web1", "web2", "web4"} {
		s.Run("instance ensure " + name)
	}
	socket := filepath.Join(t.TempDir(), "agent.sock")
	begin := func() *watched {
		t.Helper()
		w := beginOf(s, s.Host(), "agent --listen unix:"+socket)
		for until := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			if conn, err := net.Dial("unix", socket); err == nil {
				conn.Close()
				return w
			}
			if time.Now().After(until) {
				t.Fatal("the agent does not answer")
			}
		}
	}
	far := sledtest.New(t, sledtest.Small(), "")
	at := " -H --columns name,state,reason --agent unix:" + socket
	said := map[*watched]string{}
	prints := func(when string, w *watched, want ...string) {
		t.Helper()
		var lines []string
		for until := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			all := w.printed()
			lines = strings.Split(strings.TrimSuffix(arrived(strings.TrimPrefix(all, said[w])), "\n"), "\n")
			if len(lines) >= len(want) && lines[0] != "" || time.Now().After(until) {
				said[w] = all
				break
			}
		}
		if slices.Sort(lines); !slices.Equal(lines, want) {
			t.Errorf("%s: printed %q, want %q", when, lines, want)
		}
	}
	agent := begin()
	all, some := beginOf(far, far.Host(), "instance watch"+at), beginOf(far, far.Host(), "instance watch web1 web2"+at)
	prints("at first", all, "web1\trunning\t-", "web2\trunning\t-", "web4\trunning\t-")
	prints("at first, by names", some, "web1\trunning\t-", "web2\trunning\t-")
	stopped, gone := beginOf(far, far.Host(), "instance wait web1 --for stopped"+at), beginOf(far, far.Host(), "instance wait web2 --for absent"+at)
	short := beginOf(far, far.Host(), "instance watch web4 --timeout 5s"+at)
	prints("at first, for a short time", short, "web4\trunning\t-")
	late := beginOf(far, far.Host(), "instance wait web4 --for stopped --timeout 5s"+at)
	asked := regexp.MustCompile(`sledctl_http_requests_total\{endpoint="/healthz",method="GET",status="200"\} ([3-9])`)
	a := &sledtest.Agent{T: t, Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}}
	for until := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) { // the three who wait have been answered once
		if _, figures := a.Ask("GET", "/metrics", ""); asked.MatchString(figures) {
			break
		} else if time.Now().After(until) {
			t.Fatal(figures)
		}
	}

	agent.end()
	s.Run("instance stop web1")
	s.Run("instance delete web2")
	s.Run("instance ensure web3")
	for name, w := range map[string]*watched{"watch": short, "wait": late} {
		end := <-w.done
		if end.Exit != 7 || strings.Count(end.Errs, "asked again until it answers") != 1 {
			t.Errorf("%s, while the agent is away: %+v", name, end)
		}
	}
	agent = begin()
	prints("after it", all, "web1\tstopped\t-", "web2\tabsent\tit was deleted", "web3\trunning\t-")
	prints("after it, by names", some, "web1\tstopped\t-", "web2\tabsent\tit was deleted")
	for name, w := range map[string]*watched{"stopped": stopped, "absent": gone} {
		if end := <-w.done; end.Exit != 0 || strings.Count(end.Errs, "asked again until it answers") != 1 {
			t.Errorf("the wait for %s: %+v", name, end)
		}
	}
	s.Run("instance ensure web2")
	prints("made again", all, "web2\trunning\t-")
	prints("made again, by names", some, "web2\trunning\t-")

	agent.end()
	agent = begin()
	s.Run("instance stop web4")
	prints("after another restart", all, "web4\tstopped\t-")
	for _, w := range []*watched{all, some} {
		if end := w.end(); end.Exit != 130 || strings.Count(end.Errs, "asked again until it answers") != 2 {
			t.Errorf("^C: %+v", end)
		}
	}
	agent.end()
	if end := far.Try("instance watch" + at); end.Exit != 1 || !strings.Contains(end.Errs, "the agent cannot be asked") {
		t.Errorf("an agent that was never there: %+v", end)
	}
}

// printed is all that was.
func (w *watched) printed() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines.String()
}

// arrived are the lines but for those of what is on its way: whether that is seen
// depends on who is quicker.
func arrived(text string) (lines string) {
	for line := range strings.Lines(text) {
		if !slices.ContainsFunc([]string{"has not ended", "\tstopping\t", "\tcreating\t", "\tPropolis cannot be asked: GET /instance: the connection was broken off: "}, func(passing string) bool { return strings.Contains(line, passing) }) {
			lines += line
		}
	}
	return lines
}
