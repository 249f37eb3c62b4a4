package commands_test

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/sledtest"
)

// The page of the agent in a browser: it asks for a token, shows the sled as status has
// it, follows what happens without being loaded again, and shows markup in the sled's texts as
// the letters it is made of.
func TestThePageShowsTheSled(t *testing.T) {
	if sledtest.Quick() {
		t.Skip("starting a browser takes seconds")
	}
	t.Parallel()
	const markup = `<img/src=x/onerror=document.title='owned'><b/id=planted>bold</b>`
	b := startBrowser(t)
	s := sledtest.New(t, sledtest.Small(), sledtest.TunedConfig)
	s.Run("bootstrap")
	s.Run("instance ensure web1 --memory 2G")
	s.Run("instance ensure web2")
	faults(s, func(tx *world.Tx) {
		tx.Arm(world.Fault{Name: world.FaultFail, Match: "zoneadm clone", Text: markup, Exit: 1})
	})
	if a := s.Try("instance ensure web3"); a.Exit == 0 {
		t.Fatal("a clone that fails does not fail")
	}
	tokens, token := filepath.Join(t.TempDir(), "tokens"), strings.Repeat("r", 32)
	if err := os.WriteFile(tokens, []byte("reader "+token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	port, end := onTCP(s, t, "127.0.0.1", " --token-file "+tokens)
	defer end()
	at := "http://127.0.0.1:" + port + "/"

	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": true}, nil)
	b.call("Page.navigate", map[string]any{"url": at}, nil)
	b.until(`document.querySelector('#ask') && !document.querySelector('#ask').hidden`)
	if text := b.eval(`document.body.innerText`); strings.Contains(text, "web1") || !strings.Contains(text, "wants a token") {
		t.Errorf("before a token is given:\n%s", text)
	}
	give := func(token string) {
		t.Helper()
		b.eval(`document.querySelector('#token').value = '` + token + `'; document.querySelector('#ask button').click()`)
	}
	give(strings.Repeat("x", 32))
	b.until(`document.body.innerText.includes('does not know this token')`)
	give(token)
	b.until(`!document.querySelector('#main').hidden`)
	if broken := b.eval(`[...document.querySelectorAll("th")].filter(e => e.offsetHeight > 30).length`); broken != "0" {
		t.Errorf("%s words are broken on a narrow screen", broken)
	}

	text := b.eval(`document.body.innerText`)
	var now struct {
		Verdict  string
		Problems []struct {
			Text string
			Next []string
		}
		Pools []struct{ Name string }
		Disks []struct{ Name string }
	}
	if err := json.Unmarshal([]byte(s.Run("status -o json")), &now); err != nil {
		t.Fatal(err)
	}
	wanted := []string{now.Verdict, "running", "web1", "2G", "2 of 2 wanted are up", "Memory", "ensure web3", "failed", markup}
	for _, p := range now.Problems {
		wanted = append(append(wanted, p.Text), p.Next...)
	}
	for _, d := range now.Disks {
		wanted = append(wanted, d.Name)
	}
	for _, p := range now.Pools {
		wanted = append(wanted, p.Name[:min(12, len(p.Name))])
	}
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if len(now.Problems) == 0 || len(now.Disks) == 0 || t.Failed() {
		t.Errorf("the page:\n%s", text)
	}
	if planted := b.eval(`document.querySelectorAll('#planted, img').length + document.title`); !strings.HasPrefix(planted, "0") || strings.Contains(planted, "owned") {
		t.Errorf("markup in a text has become a part of the page: %s", planted)
	}
	if wide := b.eval(`document.documentElement.scrollWidth`); wide != "390" {
		t.Errorf("on a screen of 390 pixels the page is %s wide", wide)
	}

	b.eval(`window.loaded = 'once'`)
	s.Run("instance stop web2")
	b.until(`document.body.innerText.includes('1 of 1 wanted are up') && document.querySelector('#vms').innerText.includes('stopped')`)
	if b.eval(`window.loaded`) != "once" {
		t.Error("the page was loaded again")
	}
	for scheme, paper := range map[string]string{"light": "rgb(255, 255, 255)", "dark": "rgb(22, 22, 22)"} {
		b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
		if is := b.eval(`getComputedStyle(document.body).backgroundColor`); is != paper {
			t.Errorf("%s: the paper is %s", scheme, is)
		}
		b.screenshot(scheme)
	}
}

// screenshot writes what is seen to a file, if SLEDCTL_SCREENSHOTS names a folder.
func (b *browser) screenshot(name string) {
	b.t.Helper()
	dir := os.Getenv("SLEDCTL_SCREENSHOTS")
	if dir == "" {
		return
	}
	var shot struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}, &shot)
	data, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), data, 0o666)
	}
	if err != nil {
		b.t.Error(err)
	}
}

// Without credentials there is the page and nothing else, and none of it comes from, or
// goes to, elsewhere.
func TestThePageIsOneFile(t *testing.T) {
	s := sledtest.New(t, sledtest.Small(), sledtest.TunedConfig)
	s.Run("bootstrap")
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("reader "+strings.Repeat("r", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	port, end := onTCP(s, t, "127.0.0.1", " --token-file "+tokens)
	defer end()
	get := func(method, path, host string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:"+port+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		text, err := io.ReadAll(reply.Body)
		if err != nil {
			t.Fatal(err)
		}
		return reply, string(text)
	}
	reply, text := get("GET", "/", "")
	policy := reply.Header.Get("Content-Security-Policy")
	if reply.StatusCode != 200 || !strings.HasPrefix(policy, "default-src 'none'; script-src 'sha256-") || strings.Contains(policy, "unsafe") {
		t.Errorf("GET /: %d, policy %s", reply.StatusCode, policy)
	}
	for _, never := range []string{"://", "innerHTML", "outerHTML", "document.write", "insertAdjacentHTML", "eval(", "localStorage", "PUT", "POST", "DELETE"} {
		if strings.Contains(text, never) {
			t.Errorf("the page has %q in it", never)
		}
	}
	for path, want := range map[string]int{"/status": 401, "/operations": 401, "/events": 401, "/page.html": 401} {
		if reply, _ := get("GET", path, ""); reply.StatusCode != want {
			t.Errorf("GET %s: %d, want %d", path, reply.StatusCode, want)
		}
	}
	if reply, _ := get("PUT", "/", ""); reply.StatusCode != 401 {
		t.Errorf("PUT /: %d", reply.StatusCode)
	}
	if reply, _ := get("GET", "/", "evil.example"); reply.StatusCode != 421 {
		t.Errorf("GET / by another name: %d", reply.StatusCode)
	}
}
