package peers

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// Way is one in which a peer misbehaves.
type Way struct {
	Name string
	// Only are the peers that can; none: all.
	Only []Peer
	// Whole is of no use from a later request on: not each answer says whose it is.
	Whole bool
	// answer says something on the line, in place of what the peer would say.
	answer func(*line) error
}

// Of are the ways of a peer.
func Of(p Peer) []Way {
	return slices.DeleteFunc(ways(), func(w Way) bool { return len(w.Only) > 0 && !slices.Contains(w.Only, p) })
}

// ways are data: what differs is what is said.
func ways() []Way {
	return []Way{
		{Name: "says what is no HTTP", answer: says("\x16\x03\x01\x02\x00 not at home\r\n\r\n")},
		{Name: "is a proxy's page", answer: says(ok("text/html", "<html><body>Sign in, please</body></html>"))},
		{Name: "says nothing as JSON", answer: says(ok("application/json", "null"))},
		{Name: "says an empty object", answer: says(ok("application/json", "{}"))},
		{Name: "says JSON of other types", answer: says(ok("application/json", `{"instance":7,"gen":"one","state":[],"items":{},"properties":false,"mac":{},"data":"x"}`))},
		{Name: "hangs up", answer: says("")},
		{Name: "says half of an answer", answer: half},
		{Name: "hangs", answer: func(l *line) error { return l.hang() }},
		{Name: "hangs in its answer", answer: func(l *line) error {
			_, err := io.WriteString(l.to, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4096\r\n\r\n{")
			return firstOf(err, l.hang)
		}},
		{Name: "drips", answer: drips},
		{Name: "has an endless head", answer: endless("HTTP/1.1 200 OK\r\n", strings.Repeat("X-More: and more\r\n", 200))},
		{Name: "has an endless body", answer: endless("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[", strings.Repeat(" ", 64<<10))},
		{Name: "has endless interim answers", answer: endless("", strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 200))},
		{Name: "answers 500", answer: says(status("500 Internal Server Error", `{"request_id":"r-500","error_code":"Internal","code":"InternalError","message":"Internal Server Error"}`))},
		{Name: "sends elsewhere", answer: says("HTTP/1.1 307 Temporary Redirect\r\nLocation: http://" + Elsewhere + "/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")},
		{Name: "has data of another", Only: []Peer{Propolis, NAPI}, Whole: true, answer: foreign},
	}
}

// Elsewhere is where nobody is to be sent.
const Elsewhere = "192.0.2.99:80"

func ok(kind, body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", kind, len(body), body)
}

func status(line, body string) string {
	return strings.Replace(ok("application/json", body), "200 OK", line, 1)
}

// says says one text, and hangs up.
func says(text string) func(*line) error {
	return func(l *line) error {
		_, err := io.WriteString(l.to, text)
		return err
	}
}

// endless says something, and then the same again and again.
func endless(first, again string) func(*line) error {
	return func(l *line) error {
		_, err := io.WriteString(l.to, first)
		for err == nil {
			_, err = io.WriteString(l.to, again)
		}
		return err
	}
}

// drips says a byte a second.
func drips(l *line) error {
	_, err := io.WriteString(l.to, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
	for err == nil && l.pause() {
		_, err = l.to.Write([]byte{' '})
	}
	return err
}

// half says the first half of what the peer answers.
func half(l *line) error {
	head, body, err := l.real()
	if err != nil {
		return err
	}
	if len(body) == 0 {
		head = head[:len(head)/2]
	}
	_, err = l.to.Write(append(head, body[:len(body)/2]...))
	return err
}

// foreign is the peer's answer about another VM, or another sled.
func foreign(l *line) error {
	head, body, err := l.real()
	if err != nil {
		return err
	}
	for _, id := range l.host.Ours {
		body = bytes.ReplaceAll(body, []byte(id), []byte(Another))
	}
	_, err = l.to.Write(append(head, body...))
	return err
}

// Another is the id of that VM or sled.
const Another = "0badc0de-0bad-4bad-8bad-0badc0de0bad"

// firstOf does what follows if nothing has failed.
func firstOf(err error, then func() error) error {
	if err != nil {
		return err
	}
	return then()
}

// head is the head of an answer as it was.
func head(r *http.Response, length int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", r.StatusCode, http.StatusText(r.StatusCode))
	r.Header.Del("Transfer-Encoding")
	r.Header.Set("Connection", "close")
	if r.StatusCode != http.StatusNoContent {
		r.Header.Set("Content-Length", fmt.Sprint(length))
	}
	_ = r.Header.Write(&b)
	b.WriteString("\r\n")
	return b.Bytes()
}
