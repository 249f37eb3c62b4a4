package agent

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/sledctl/sledctl/agent/api"
)

// pagePath is where the page is. It says nothing about the sled, so that a browser can
// load it before its user has given a token: what it shows, it asks for with that.
const pagePath = "/"

//go:embed page.html
var page string

// policy is the page's Content-Security-Policy: its own script and style, by their
// digests, and requests to the agent alone. Trusted types keep the script from turning
// a text into markup.
func policy(page string) string {
	return strings.Join([]string{
		"default-src 'none'", "script-src " + digest(page, "script"), "style-src " + digest(page, "style"), "connect-src 'self'",
		"base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
	}, "; ")
}

// digest is that of the contents of the only element of a kind.
func digest(page, kind string) string {
	_, rest, _ := strings.Cut(page, "<"+kind+">")
	text, _, _ := strings.Cut(rest, "</"+kind+">")
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// page answers with the page.
func (*server) page(w http.ResponseWriter, _ call) *api.Error {
	for key, value := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy(page), "Cache-Control": "no-store",
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
	} {
		w.Header().Set(key, value)
	}
	_, _ = w.Write([]byte(page))
	return nil
}
