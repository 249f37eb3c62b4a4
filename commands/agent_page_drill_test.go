package commands_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/test/sledtest"
)

// On the drill sled the page has every problem with its command and every VM, and needs
// no more width than a window has.
func TestThePageOfTheDrill(t *testing.T) {
	if sledtest.Quick() {
		t.Skip("making the drill sled takes seconds")
	}
	b := startBrowser(t)
	dir := t.TempDir()
	sled, tokens, token := filepath.Join(dir, "drill"), filepath.Join(dir, "tokens"), strings.Repeat("r", 32)
	if err := os.WriteFile(tokens, []byte("reader "+token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(ctx context.Context, words ...string) sledtest.Answer {
		p := terminal.Pretended{Environ: []string{"SLEDCTL_HOST=sim:" + sled, "TERM=dumb", "HOME=" + dir}}
		streams, out, errs := terminal.Buffers(p)
		exit := commands.Run(ctx, cli.NewEnv(streams, p.Environ, ""), words)
		return sledtest.Answer{Exit: exit, Out: out.String(), Errs: errs.String()}
	}
	if a := run(t.Context(), "sim", "drill", sled); a.Exit != 0 {
		t.Fatal(a.Errs)
	}
	port, end := listening(t, "127.0.0.1", func(ctx context.Context, at string) sledtest.Answer {
		return run(ctx, "agent", "--listen", at, "--token-file", tokens)
	})
	defer end()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.call("Page.navigate", map[string]any{"url": "http://127.0.0.1:" + port + "/"}, nil)
	b.until(`document.querySelector('#ask') && !document.querySelector('#ask').hidden`)
	b.eval(`document.querySelector('#token').value = '` + token + `'; document.querySelector('#ask button').click()`)
	b.until(`!document.querySelector('#main').hidden`)
	text := b.eval(`document.body.innerText`)
	for _, want := range []string{
		"TROUBLE", "c14t0d0", "sledctl instance ensure mail01", "sledctl instance ensure web01", "sledctl instance ensure web06",
		"sledctl instance get web10 --diff", "35 of 38 wanted are up", "git01", "dev-6", "10 VMs: its pool oxp_6eb758c7 is UNAVAIL",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	if beyond := b.eval(`document.documentElement.scrollWidth - document.documentElement.clientWidth`); beyond != "0" {
		t.Errorf("the page is %s pixels wider than its window", beyond)
	}
	b.screenshot("page")
}
