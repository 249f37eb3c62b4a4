package commands_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// browser is a page of a headless Chromium, spoken to over its pipe (DevTools protocol).
type browser struct {
	t       *testing.T
	in      *os.File
	out     *bufio.Reader
	session string
	asked   int
}

// startBrowser opens an empty page, or skips the test where there is no browser.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	var program string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		t.Skip("there is no chromium, chromium-browser or google-chrome")
	}
	theirsIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirsOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "browser")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--no-proxy-server",
		"--disable-background-networking", "--user-data-dir="+dir, "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{theirsIn, theirsOut}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirsIn.Close()
	theirsOut.Close()
	t.Cleanup(func() {
		in.Close() // it ends when nobody can speak to it
		out.Close()
		ended := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		ended.Stop()
		_ = os.RemoveAll(dir)
	})
	_ = out.SetReadDeadline(time.Now().Add(2 * time.Minute))
	b := &browser{t: t, in: in, out: bufio.NewReader(out)}
	var target struct{ TargetID, SessionID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	b.session = target.SessionID
	return b
}

// call calls a method, and gives what it returns.
func (b *browser) call(method string, params map[string]any, result any) {
	b.t.Helper()
	b.asked++
	said, err := json.Marshal(map[string]any{"id": b.asked, "method": method, "params": params, "sessionId": b.session})
	if b.session == "" {
		said, err = json.Marshal(map[string]any{"id": b.asked, "method": method, "params": params})
	}
	if err == nil {
		_, err = b.in.Write(append(said, 0))
	}
	for err == nil {
		var data []byte
		if data, err = b.out.ReadBytes(0); err != nil {
			break
		}
		var answer struct {
			ID     int
			Result json.RawMessage
			Error  json.RawMessage
		}
		if err = json.Unmarshal(data[:len(data)-1], &answer); err != nil || answer.ID != b.asked {
			continue // it is an event
		}
		if answer.Error != nil {
			b.t.Fatalf("%s: %s", method, answer.Error)
		}
		if result != nil {
			err = json.Unmarshal(answer.Result, result)
		}
		break
	}
	if err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
}

// eval evaluates an expression in the page.
func (b *browser) eval(expression string) string {
	b.t.Helper()
	var said struct {
		Result           struct{ Value any }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &said)
	if said.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, said.ExceptionDetails)
	}
	return fmt.Sprint(said.Result.Value)
}

// until waits until an expression is true.
func (b *browser) until(expression string) {
	b.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); b.eval("Boolean("+expression+")") != "true"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("not yet: %s; the page is:\n%s", expression, b.eval("document.body.innerText"))
		}
	}
}
